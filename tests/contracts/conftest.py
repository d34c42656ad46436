"""The stores that the contract is run against: memory, embedded Valkey, six-node cluster."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from discreet.state.embedded import EmbeddedStore
from discreet.state.memory import MemoryStore
from discreet.state.redis_store import open_store
from discreet.state.stores import Store
from tests.state.places import Place
from tests.state.servers import cluster

NAMESPACES = (f"contract-{number}" for number in itertools.count())


@pytest.fixture(scope="session")
def embedded_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with EmbeddedStore(tmp_path_factory.mktemp("embedded")) as url:
        yield url


@pytest.fixture(scope="session")
def cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster")) as six:
        yield six.url


@pytest.fixture(params=["memory", "embedded", "cluster"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    namespace = next(NAMESPACES)
    if request.param == "memory":
        now = 1000.0

        async def elapse(seconds: float) -> None:
            nonlocal now
            now += seconds

        yield Place(MemoryStore(clock=lambda: now), elapse, None, namespace)
        return
    url = request.getfixturevalue(f"{request.param}_url")
    store = open_store(url, namespace=namespace, timeout=20)
    await store.open()
    yield Place(store, asyncio.sleep, url, namespace)
    await store.close()


@pytest.fixture
def store(place: Place) -> Store:
    return place.store
