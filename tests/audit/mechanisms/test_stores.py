"""What the audit asks both stores, and what it makes of one that refuses."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from discreet.audit.mechanisms.stores import (
    QUESTIONS,
    SCHEDULES,
    claims,
    examine_store,
    memory,
)
from discreet.errors import DiscreetError, StoreUnavailable
from discreet.state.memory import MemoryStore
from discreet.state.stores import FeedbackRecord, Learned, Store


def test_both_stores_are_asked_every_question() -> None:
    names = {claim.name for claim in claims()}
    assert names == {f"store, {kind}: {q}" for kind in ("memory", "scripts") for q in QUESTIONS}


def test_the_schedules_hold_records_alone_and_together_and_over_the_limit() -> None:
    """Room is for forty first records; six in one release are charged 36."""
    assert any(max(schedule) == 1 < len(schedule) for schedule in SCHEDULES)
    assert any(sum(schedule) == 3 and len(schedule) == 1 for schedule in SCHEDULES)
    assert any(max(schedule) > 6 for schedule in SCHEDULES)


class _RefusingStore(MemoryStore):
    """Learns nothing, with an error for every record."""

    def _learn(self, one: FeedbackRecord) -> Learned | DiscreetError:
        return StoreUnavailable()


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_store_that_refuses_every_record_is_not_taken_for_a_good_one(question: object) -> None:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Store]:
        yield _RefusingStore()

    assert callable(question)
    with pytest.raises(StoreUnavailable):
        examine_store(opened, question)


def test_a_number_below_0_is_reported_as_0_and_one_above_does_not_hold() -> None:
    async def below(_: Store) -> float:
        return -1.0

    async def above(_: Store) -> float:
        return 1e-9

    assert examine_store(memory, below).measured == 0
    assert not examine_store(memory, above).holds
