"""Feedback as calls of `lua/learn.lua`: records that are alike go together (see `debits`)."""

from collections.abc import Sequence

import numpy as np

from discreet.state import checks, scripts
from discreet.state.client import StoreCommand, Word
from discreet.state.codec import pack_row, pack_terms, pack_vector
from discreet.state.debits import together
from discreet.state.fence import StoreFence
from discreet.state.keys import StoreKeys, open_name
from discreet.state.redis_commands import FencedCall
from discreet.state.stores import NO_CHARGE, FeedbackRecord, OwnRow, shard_of

_AMOUNTS = 32
"""Of a record that take the store as long as one debit."""


def record_calls(
    records: Sequence[FeedbackRecord], keys: StoreKeys, fence: StoreFence, *, one_server: bool
) -> list[FencedCall]:
    """Return calls that learn from these records, in this order; raise `InvalidArgument` for what
    cannot be claimed or added."""
    last = None
    for record in records:
        last = checks.feedback_record(record, last)
    calls = together(records, _alike, one_server=one_server, work=_work)
    return [_call(some, keys, fence) for some in calls]


def _work(record: FeedbackRecord) -> int:
    """Return for how many debits a record counts: thousands of amounts keep the store busy."""
    return 1 + sum(map(len, record.increments.values())) // _AMOUNTS


def _alike(one: FeedbackRecord, other: FeedbackRecord) -> bool:
    return (
        one.generation == other.generation
        and one[6:10] == other[6:10]
        and bool(one.awaited) == bool(other.awaited)
    )


def _call(records: Sequence[FeedbackRecord], keys: StoreKeys, fence: StoreFence) -> FencedCall:
    _, generation, _, _, _, _, charge, limit, window, purpose, awaited, _, _ = records[0]
    named: list[bytes] = []
    words: list[Word] = []
    places: dict[int, int] = {}
    which = bytearray()
    for record in records:
        principal, claim = record.principal, record.claim
        shard = shard_of(principal)
        which.append(places.setdefault(shard, len(places) + 1))
        named += (keys.ledger(principal), keys.claim(principal, claim))
        words += (record.reward, record.claim_ttl * 1000, len(record.increments))
        if awaited:
            named.append(keys.contents(shard, generation))
            settled = b"-" if record.held is None else b"%d" % record.held
            words += (open_name(principal, record.awaited), open_name(principal, claim))
            words.append(settled if record.settles else b"")
        for block, amounts in record.increments.items():
            if isinstance(amounts, OwnRow):
                numbers = pack_vector(amounts.numbers)
                words += (block, b">", amounts.head, amounts.made_at, numbers)
                continue
            if isinstance(amounts, np.ndarray):
                content = amounts.astype(">i4").tobytes()
                words += (block, b"+", 0, content) if amounts.ndim == 1 else (block, b"*", content)
                continue
            row = pack_row(amounts)
            if row is not None:
                words += (block, b"+", *row)
                continue
            words += (block, len(amounts))
            for pair in amounts:
                words += pair
    call = scripts.LEARN.call(
        [*named, *map(keys.fence, places)],
        b"" if charge == NO_CHARGE else pack_terms(charge, limit),
        *(window, purpose, bytes(which), generation),
        *words,
        fence.carried(places),
    )
    # Repeatable: the claims make it so. A repetition answers DUPLICATE, not COUNTED.
    return FencedCall(StoreCommand(named[0], call), tuple(places), len(records))
