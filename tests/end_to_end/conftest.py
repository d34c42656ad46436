"""One server for all tests that do not hurt it."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.servers import Server, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server")) as running:
        yield running
