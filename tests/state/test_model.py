"""Redis against memory on random histories, and addition that forgets its order."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import DiscreetError
from discreet.privacy.charges import UNLIMITED, Charge, Limit
from discreet.state.codec import pack_vector
from discreet.state.memory import MemoryStore
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.stores import Store

NAMESPACES = (f"model-{number}" for number in itertools.count())

AMOUNT = st.sampled_from([0, 1, 2, 5, 2**52, UNLIMITED - 1, UNLIMITED])
NAME = st.sampled_from([b"a", b"b}", b"c" * 32])
INT64 = st.one_of(st.integers(-3, 3), st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63)]))
INCREMENTS = st.lists(st.tuples(st.integers(0, 4), INT64), max_size=4)
OFFSET = st.sampled_from([0, 1, 2, 3, 5, 9, 200])
DOCUMENT = st.sampled_from([b"one", b"two", b"\x00\xff"])

Operation = tuple[str, dict[str, Any]]


def calls(method: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Operation]:
    return st.tuples(st.just(method), st.fixed_dictionaries(arguments))


# No time to live here may end within an example: the clocks differ.
OPERATIONS = st.one_of(
    calls(
        "spend",
        principal=NAME,
        charge=st.builds(Charge, AMOUNT, AMOUNT, AMOUNT),
        limit=st.builds(Limit, AMOUNT, AMOUNT, AMOUNT),
        marker=st.none() | NAME,
    ),
    calls("balance", principal=NAME),
    calls("forget_markers", principal=NAME),
    calls("read", addresses=st.lists(NAME, max_size=4)),
    calls(
        "learn",
        address=NAME,
        increments=INCREMENTS,
        claim=NAME,
        reward=st.sampled_from([0, 1, -1]),
        claim_ttl=st.just(3600),
    ),
    calls("index_cell", index=NAME, address=NAME, level=st.integers(0, 3)),
    calls("cells", index=NAME, most=st.just(10)),
    calls("count_cells", index=NAME),
    calls("remove_cells", index=NAME),
    calls("claim_event", event=NAME, fingerprint=NAME, ttl=st.just(3600)),
    calls("answer_event", event=NAME, answer=DOCUMENT, ttl=st.just(3600)),
    calls("find_event", event=NAME),
    calls("forget_event", event=NAME),
    calls("post_letter", queue=NAME, letter=NAME, content=DOCUMENT),
    calls("letters", queue=NAME, most=st.just(10)),
    calls("discard_letter", queue=NAME, letter=NAME),
    calls("count_letters", queue=NAME),
    calls("load", keys=st.lists(NAME, max_size=3)),
    calls("save", key=NAME, content=DOCUMENT, expected=st.none() | st.integers(0, 3)),
    calls("read_page", page=NAME, start=OFFSET, end=st.none() | OFFSET),
    calls(
        "write_page",
        page=NAME,
        writes=st.lists(st.tuples(OFFSET, st.binary(max_size=4)), max_size=5),
        guard=st.none() | st.tuples(OFFSET, st.sampled_from([b"\x00", b"o", b"ne"])),
    ),
    calls("append_page", page=NAME, content=DOCUMENT, expected=st.none() | OFFSET),
    calls("erase", keys=st.lists(NAME, max_size=2)),
    calls("enrol", roster=NAME, names=st.lists(NAME, max_size=4)),
    calls("number_of", roster=NAME, names=st.lists(NAME, max_size=4)),
    calls("roster_size", roster=NAME),
    calls("strike_roster", roster=NAME),
    calls("hold", lease=NAME, holder=NAME, seconds=st.just(3600)),
    calls("let_go", lease=NAME, holder=NAME),
    calls("epoch"),
    calls("registry"),
    calls(
        "put_document",
        name=st.sampled_from(["x", "y"]),
        document=DOCUMENT,
        expected=st.none() | DOCUMENT,
    ),
    calls("remove_document", name=st.sampled_from(["x", "y"])),
    calls("secret", name=st.sampled_from(["x", "y"]), proposal=DOCUMENT),
)


async def outcome(store: Store, operation: Operation) -> Any:
    """Return what became of an operation, in a form that compares."""
    method, arguments = operation
    try:
        result = await getattr(store, method)(**arguments)
    except DiscreetError as error:
        return type(error)
    if method == "read":
        return [pack_vector(vector) for vector in result]
    if method == "forget_markers":
        return sorted(result)
    return result


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as loop:
        yield loop


Fresh = Callable[[], RedisStore]


@pytest.fixture(scope="module")
def fresh(embedded_url: str, runner: asyncio.Runner) -> Iterator[Fresh]:
    """Give stores that are empty, each in a namespace of its own, closed at the end."""
    opened = []

    def make() -> RedisStore:
        store = open_store(embedded_url, namespace=next(NAMESPACES), timeout=30)
        runner.run(store.open())
        opened.append(store)
        return store

    yield make
    for store in opened:
        runner.run(store.close())


@given(history=st.lists(OPERATIONS, max_size=40))
@settings(max_examples=150, deadline=None)
def test_redis_and_memory_agree_on_any_history(
    history: list[Operation], runner: asyncio.Runner, fresh: Fresh
) -> None:
    model, real = MemoryStore(), fresh()

    async def both() -> None:
        for number, operation in enumerate(history):
            expected, found = await outcome(model, operation), await outcome(real, operation)
            assert found == expected, f"they differ at {number}: {operation}"

    runner.run(both())


@st.composite
def shuffled_sums(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[list[tuple[int, int]]]]:
    """Return increments, and the same ones in another order, cut into several updates."""
    terms = st.tuples(st.integers(0, 6), st.integers(-(2**50), 2**50))
    increments = draw(st.lists(terms, min_size=1, max_size=12))
    mixed = draw(st.permutations(increments))
    cuts = sorted(draw(st.lists(st.integers(0, len(mixed)), max_size=4)))
    bounds = [0, *cuts, len(mixed)]
    return increments, [mixed[start:stop] for start, stop in itertools.pairwise(bounds)]


@given(sums=shuffled_sums())
@settings(max_examples=60, deadline=None)
def test_increments_in_any_order_and_partition_reach_the_same_bytes(
    sums: tuple[list[tuple[int, int]], list[list[tuple[int, int]]]],
    runner: asyncio.Runner,
    fresh: Fresh,
) -> None:
    increments, parts = sums
    direct = np.zeros(max(field for field, _ in increments) + 1, dtype=np.int64)
    for field, amount in increments:
        direct[field] += amount

    async def learn_all(store: Store, updates: list[list[tuple[int, int]]]) -> bytes:
        # All in flight at once: the store decides on the order.
        pending = [
            store.learn(
                address=b"cell", increments=update, claim=b"%d" % i, reward=0, claim_ttl=3600
            )
            for i, update in enumerate(updates)
        ]
        for each in pending:
            await each
        (vector,) = await store.read(addresses=[b"cell"])
        return pack_vector(vector)

    for store in (MemoryStore(), fresh()):
        assert runner.run(learn_all(store, parts)) == pack_vector(direct)
    assert runner.run(learn_all(fresh(), [increments])) == pack_vector(direct)
