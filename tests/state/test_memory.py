"""Redis against memory on random histories, and addition that forgets its order."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import DiscreetError
from discreet.privacy.charges import NEVER, UNLIMITED, Charge, Limit
from discreet.state.codec import pack_vector
from discreet.state.memory import MemoryStore
from discreet.state.redis_store import RedisStore, open_store
from discreet.state.stores import OWN, Account, Debit, FeedbackRecord, OwnRow, PageWrite, Store

NAMESPACES = (f"model-{number}" for number in itertools.count())

NAME = st.sampled_from([b"a", b"a}", b"\xa1" * 32])
"""All on one shard: only there do both stores see an overflow at the same moment."""
AMOUNT = st.sampled_from([0, 1, 2, 5, 2**52, UNLIMITED - 1, UNLIMITED])
MOST = st.sampled_from([NEVER, 0, 1, 2, 5, 12, 2**52, UNLIMITED - 1, UNLIMITED])
CHARGE = st.builds(Charge, AMOUNT, AMOUNT, AMOUNT)
LIMIT = st.builds(Limit, MOST, MOST, AMOUNT)
INT64 = st.one_of(st.integers(-3, 3), st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63)]))
INCREMENTS = st.lists(st.tuples(st.integers(0, 4), INT64), min_size=1, max_size=4)
NUMBERS = st.lists(INT64, min_size=1, max_size=3).map(partial(np.array, dtype=np.int64))
NUMBER = st.integers(1, 4)
OFFSET = st.sampled_from([0, 1, 2, 3, 5, 9, 200])
DOCUMENT = st.sampled_from([b"one", b"two", b"\x00\xff"])

Operation = tuple[str, tuple[Any, ...], dict[str, Any]]


def calls(
    method: str, *arguments: st.SearchStrategy[Any], **named: st.SearchStrategy[Any]
) -> st.SearchStrategy[Operation]:
    return st.tuples(st.just(method), st.tuples(*arguments), st.fixed_dictionaries(named))


# No time to live and no window here may end within an example: the clocks differ.
WINDOW = st.sampled_from([0, 10**8, 2 * 10**8, 3 * 10**8])
PURPOSE = st.sampled_from([b"", b"films", b"\x00\xff"])
DEBIT = st.builds(
    Debit,
    NAME,
    CHARGE,
    LIMIT,
    st.sampled_from(list(Account)),
    st.none() | NAME,
    window=WINDOW,
    purpose=PURPOSE,
)
RECORD = st.builds(
    FeedbackRecord,
    NAME,
    generation=NAME,
    claim=st.binary(min_size=1, max_size=1),
    reward=st.sampled_from([0, 1, -1]),
    claim_ttl=st.just(3600),
    increments=st.dictionaries(
        st.sampled_from([OWN, b"x", b"y"]), INCREMENTS, min_size=1, max_size=3
    )
    | st.fixed_dictionaries({OWN: st.builds(OwnRow, st.integers(1, 3), NUMBERS)}),
    charge=st.just(Charge()) | CHARGE,
    limit=st.just(Limit()) | LIMIT,
    window=WINDOW,
    purpose=PURPOSE,
)
SUMS = st.one_of(
    calls("spend", st.lists(DEBIT, max_size=3)),
    calls("ledgers", st.lists(NAME, max_size=3)),
    calls("forget_markers", NAME),
    calls("days", NAME),
    calls("forget_days", NAME),
    calls("learn", st.lists(RECORD, max_size=4)),
    calls("freeze", generation=NAME, number=NUMBER),
    calls("frozen", generation=NAME, number=NUMBER),
    calls("discard", generation=NAME, number=NUMBER),
    calls("own", generation=NAME, principals=st.lists(NAME, max_size=3)),
    calls("owners", generation=NAME),
    calls("forget_own", generation=NAME, principal=NAME),
    calls("fold_own", generation=NAME, principal=NAME, before=NUMBERS, after=NUMBERS),
    calls("erase_sums", generation=NAME),
)
PAGE_WRITE = st.builds(
    PageWrite,
    NAME,
    OFFSET,
    st.binary(max_size=4),
    st.sampled_from([(), ((0, b"o"),), ((0, b"\x00"), (1, b"\x00\x00"))]),
    st.none() | OFFSET,
)
VALUES = st.one_of(
    calls("load", keys=st.lists(NAME, max_size=3)),
    calls("versions", keys=st.lists(NAME, max_size=3)),
    calls("save", key=NAME, content=DOCUMENT, expected=st.none() | st.integers(0, 3)),
    calls("read_page", page=NAME, start=OFFSET, end=st.none() | OFFSET),
    calls(
        "write_page",
        page=NAME,
        writes=st.lists(st.tuples(OFFSET, st.binary(max_size=4)), max_size=5),
        guard=st.none() | st.tuples(OFFSET, st.sampled_from([b"\x00", b"o", b"ne"])),
    ),
    calls(
        "read_pages",
        pages=st.just([b"a" * 16, b"b" * 16]),
        head=st.integers(0, 3),
        starts=st.tuples(OFFSET, OFFSET),
    ),
    calls("write_pages", st.lists(PAGE_WRITE, max_size=4)),
    calls("erase", keys=st.lists(NAME, max_size=2)),
    calls("enrol", roster=NAME, names=st.lists(NAME, max_size=4)),
    calls("number_of", roster=NAME, names=st.lists(NAME, max_size=4)),
    calls("roster_size", roster=NAME),
    calls("remove_roster", roster=NAME),
    calls("hold", lease=NAME, holder=NAME, seconds=st.just(3600)),
    calls("let_go", lease=NAME, holder=NAME),
)
TITLE = st.sampled_from(["x", "y"])
DOCUMENTS = st.one_of(
    calls("claim_event", event=NAME, fingerprint=NAME, ttl=st.just(3600)),
    calls("answer_event", event=NAME, answer=DOCUMENT, ttl=st.just(3600)),
    calls("find_event", event=NAME),
    calls("forget_event", event=NAME),
    calls("forget_answer", event=NAME, answer=DOCUMENT),
    calls("put_message", queue=NAME, name=NAME, content=DOCUMENT),
    calls("messages", queue=NAME, most=st.just(10)),
    calls("remove_message", queue=NAME, name=NAME),
    calls("count_messages", queue=NAME),
    calls("epoch"),
    calls("registry"),
    calls("put_document", name=TITLE, document=DOCUMENT, expected=st.none() | DOCUMENT),
    calls("remove_document", name=TITLE, expected=DOCUMENT),
    calls("secret", name=TITLE, proposal=DOCUMENT),
)


async def outcome(store: Store, operation: Operation) -> Any:
    """Return what became of an operation, in a form that compares."""
    method, arguments, named = operation
    try:
        result = await getattr(store, method)(*arguments, **named)
    except DiscreetError as error:
        return type(error)
    if method == "own":
        return [pack_vector(vector) for vector in result]
    if method == "frozen":
        return [(block, pack_vector(vector)) for block, vector in result.items()]
    if method in ("spend", "learn", "write_pages"):
        return [type(each) if isinstance(each, DiscreetError) else each for each in result]
    return sorted(result) if method == "forget_markers" else result


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


@pytest.mark.parametrize("operations", [SUMS, VALUES, DOCUMENTS], ids=["sums", "values", "others"])
def test_redis_and_memory_agree_on_any_history(
    operations: st.SearchStrategy[Operation], runner: asyncio.Runner, fresh: Fresh
) -> None:
    @given(history=st.lists(operations, max_size=40))
    @settings(max_examples=120)
    def agree(history: list[Operation]) -> None:
        model, real = MemoryStore(clock=time.time), fresh()

        async def both() -> None:
            for number, operation in enumerate(history):
                expected, found = await outcome(model, operation), await outcome(real, operation)
                assert found == expected, f"they differ at {number}: {operation}"

        runner.run(both())

    agree()


@st.composite
def shuffled_sums(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[list[tuple[int, int]]]]:
    """Return increments, and the same ones in another order, cut into several records."""
    terms = st.tuples(st.integers(0, 6), st.integers(-(2**50), 2**50))
    increments = draw(st.lists(terms, min_size=1, max_size=12))
    mixed = draw(st.permutations(increments))
    cuts = sorted(draw(st.lists(st.integers(0, len(mixed)), max_size=4)))
    bounds = [0, *cuts, len(mixed)]
    parts = [mixed[start:stop] for start, stop in itertools.pairwise(bounds)]
    return increments, [part for part in parts if part]


@given(sums=shuffled_sums(), principals=st.permutations([bytes([n]) for n in range(12)]))
@settings(max_examples=60)
def test_increments_in_any_order_and_partition_reach_the_same_bytes(
    sums: tuple[list[tuple[int, int]], list[list[tuple[int, int]]]],
    principals: list[bytes],
    runner: asyncio.Runner,
    fresh: Fresh,
) -> None:
    increments, parts = sums
    direct = np.zeros(max(field for field, _ in increments) + 1, dtype=np.int64)
    for field, amount in increments:
        direct[field] += amount

    async def learn_all(store: Store, parts: list[list[tuple[int, int]]]) -> bytes:
        # All in flight at once: the store decides on the order.
        records = [
            FeedbackRecord(who, b"g", b"c", 0, 3600, {b"block": part})
            for who, part in zip(principals, parts, strict=False)
        ]
        for each in [store.learn([one]) for one in records]:
            await each
        await store.freeze(generation=b"g", number=1)
        return pack_vector((await store.frozen(generation=b"g", number=1))[b"block"])

    for store in (MemoryStore(), fresh()):
        assert runner.run(learn_all(store, parts)) == pack_vector(direct)
    assert runner.run(learn_all(fresh(), [increments])) == pack_vector(direct)
