"""Debits as calls of `lua/spend.lua`: those that are alike go together.

What a turn of the event loop asks for is mostly the same charge to many people. On one server such
debits are one call, whatever their shards; in a cluster those of one shard are. A call is as long
as the store may be busy with one thing.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from discreet.state import checks, scripts
from discreet.state.client import StoreCommand, Word
from discreet.state.codec import ACCOUNT_BYTES, pack_terms
from discreet.state.fence import StoreFence
from discreet.state.keys import StoreKeys, open_name
from discreet.state.redis_commands import FencedCall
from discreet.state.stores import (
    NO_CHARGE,
    SHARDS,
    Debit,
    FeedbackRecord,
    OpenDecision,
    shard_of,
)

E = TypeVar("E", Debit, FeedbackRecord)

MOST_TOGETHER = 64
"""Debits, or records of few amounts, of one call: about a millisecond of the store."""


def debit_calls(
    debits: Sequence[Debit], keys: StoreKeys, fence: StoreFence, *, one_server: bool
) -> list[FencedCall]:
    """Return calls that make these debits, in this order; raise `InvalidArgument` for what no
    ledger can take."""
    calls = []
    for some in together(debits, _alike, one_server=one_server):
        first = None
        for debit in some:
            first = checks.debit(debit, first)
        calls.append(_call(some, keys, fence))
    return calls


def together(
    entries: Sequence[E],
    alike: Callable[[E, E], bool],
    *,
    one_server: bool,
    work: Callable[[E], int] = lambda _: 1,
) -> Iterator[Sequence[E]]:
    """Cut entries where one cannot go with those before it; their order stays.

    `work` says for how many debits an entry counts.
    """
    start = busy = 0
    for end, entry in enumerate(entries):
        first, more = entries[start], work(entry)
        if end > start and (
            busy + more > MOST_TOGETHER
            or not alike(first, entry)
            or not (one_server or _shard(entry) == _shard(first))
        ):
            yield entries[start:end]
            start, busy = end, 0
        busy += more
    if entries:
        yield entries[start:]


def _shard(entry: Debit | FeedbackRecord) -> int:
    return shard_of(checks.digest("principal", entry.principal))


def _alike(one: Debit, other: Debit) -> bool:
    return (
        one[1:4] == other[1:4]
        and one[5:8] == other[5:8]
        and (one.marker is None) == (other.marker is None)
        and (one.opened is None) == (other.opened is None)
    )


def _call(debits: Sequence[Debit], keys: StoreKeys, fence: StoreFence) -> FencedCall:
    _, charge, limit, account, marked, marker_ttl, window, purpose, _ = debits[0]
    terms = pack_terms(charge, limit)
    paid_for = bytes((account,)) + terms[:ACCOUNT_BYTES]
    named: list[bytes] = []
    words: list[Word] = []
    places: dict[int, int] = {}
    which = bytearray()
    for principal, _, _, _, marker, _, _, _, opened in debits:
        shard = shard_of(principal)
        which.append(places.setdefault(shard, len(places) + 1))
        if marker is None:
            named.append(keys.ledger(principal))
        else:
            named += keys.ledger_and_markers(principal)
            words.append(marker + paid_for)
        if opened is not None:
            named += (keys.open(shard, opened.generation), keys.contents(shard, opened.generation))
            words += _opened(principal, opened)
    lives = 0 if marked is None else marker_ttl * 1000
    call = scripts.SPEND.call(
        [*named, *map(keys.fence, places)],
        *(terms, int(account), window, purpose, lives, bytes(which)),
        *words,
        fence.carried(places),
    )
    # Running it twice would debit twice, unless there are markers, or nothing to debit.
    repeatable = marked is not None or charge == NO_CHARGE
    return FencedCall(StoreCommand(named[0], call, repeatable), tuple(places), len(debits))


def _opened(principal: bytes, opened: OpenDecision) -> tuple[Word, ...]:
    _, decision, items, content, due, most, sooner = opened
    return (
        open_name(principal, decision),
        items.to_bytes(2, "little") + content,
        math.ceil(due * 1000),
        -(-most // SHARDS),
        b"LT" if sooner else b"GT",
    )
