"""A server that the tests of the state share; those that hurt one start their own."""

from collections.abc import Iterator

import pytest

from discreet.state.embedded import EmbeddedStore


@pytest.fixture(scope="session")
def embedded_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with EmbeddedStore(tmp_path_factory.mktemp("embedded")) as url:
        yield url
