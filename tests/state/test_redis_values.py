"""Values that no store of ours wrote are an error, not nothing."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from discreet.errors import StoreUnavailable
from discreet.state.keys import StoreKeys
from discreet.state.redis_store import RedisStore, open_store

pytestmark = pytest.mark.anyio

NAMESPACE = "values"
KEYS = StoreKeys(NAMESPACE)


@pytest.mark.parametrize(
    ("key", "call"),
    [
        (KEYS.blob(b"k"), lambda store: store.load(keys=[b"fine", b"k"])),
        (KEYS.blob(b"k"), lambda store: store.versions(keys=[b"fine", b"k"])),
        (KEYS.blob(b"k"), lambda store: store.save(key=b"k", content=b"c")),
        (KEYS.roster(b"k"), lambda store: store.enrol(roster=b"k", names=[b"n"])),
        (KEYS.roster(b"k"), lambda store: store.number_of(roster=b"k", names=[b"n"])),
        (KEYS.event(b"k"), lambda store: store.find_event(event=b"k")),
        (KEYS.queue(b"k"), lambda store: store.messages(queue=b"k", most=1)),
    ],
)
async def test_what_cannot_be_read_is_an_error_and_is_not_written_over(
    embedded_url: str, key: bytes, call: Callable[[RedisStore], Awaitable[Any]]
) -> None:
    store = open_store(embedded_url, namespace=NAMESPACE, timeout=60)
    await store.open()
    with redis.Redis.from_url(embedded_url) as server:
        server.set(key, b"short")
        with pytest.raises(StoreUnavailable):
            await call(store)
        assert server.get(key) == b"short"
        server.delete(key)
    await store.close()


async def test_a_value_of_another_type_among_others_is_an_error(embedded_url: str) -> None:
    """It may be an erasure, or an answer that was paid for: absent would be the wrong guess."""
    store = open_store(embedded_url, namespace=NAMESPACE, timeout=60)
    await store.open()
    with redis.Redis.from_url(embedded_url) as server:
        server.rpush(KEYS.blob(b"k"), b"a list")
        with pytest.raises(StoreUnavailable):
            await store.load(keys=[b"fine", b"k", b"also fine"])
        server.delete(KEYS.blob(b"k"))
    await store.close()
