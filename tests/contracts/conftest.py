"""The stores that the contract is run against: memory, embedded Valkey, six-node cluster."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import redis

from discreet.state.memory import MemoryStore
from discreet.state.redis_store import open_store
from discreet.state.stores import Store
from discreet.state.urls import StoreKind, parse
from tests.state.conftest import embedded_url  # noqa: F401  pytest finds fixtures by name
from tests.state.places import Place
from tests.state.servers import cluster

NAMESPACES = (f"contract-{number}" for number in itertools.count())


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


@pytest.fixture
def server(place: Place) -> Iterator[Any]:
    """Yield a plain client of the same server or cluster, to write what no store writes."""
    assert place.url is not None
    location = parse(place.url)
    if location.kind is StoreKind.CLUSTER:
        node = location.nodes[0]
        client: Any = redis.RedisCluster(host=node.host, port=node.port)
    else:
        client = redis.Redis.from_url(place.url)
    with client:
        yield client
