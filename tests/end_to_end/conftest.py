"""One server for all tests of a file that do not hurt it. It ends with them: idling costs, too."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.servers import Server, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running
