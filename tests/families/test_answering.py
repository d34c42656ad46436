"""The order of an answer: debit, then decide; what was refused is never looked at."""

from collections.abc import Sequence
from typing import Any

import pytest

from discreet.errors import BudgetExhausted, DiscreetError, InvalidArgument, StoreUnavailable
from discreet.families.observer import AnswerOutcome
from discreet.families.questions import Answered, Ask, Decision, RetryMark
from discreet.state.memory import MemoryStore
from discreet.state.stores import Debit, Debited
from tests.families.p_dap.places import recommender

pytestmark = pytest.mark.anyio


class Ordered(MemoryStore):
    """Writes down when it was asked to debit."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []
        self.lost: set[bytes] = set()

    async def spend(  # type: ignore[override]
        self, debits: Sequence[Debit]
    ) -> Sequence[Debited | DiscreetError]:
        made = await super().spend(debits)
        self.steps.append("debited")
        return [
            StoreUnavailable() if debit.principal in self.lost else one
            for debit, one in zip(debits, made, strict=True)
        ]


def watched(store: Ordered, **changes: Any) -> Any:
    one = recommender(store=store, **changes)
    decide = one.decide

    def deciding(model: Any, questions: Any, own: Any, noise: Any) -> list[Decision]:
        store.steps.append(f"decided {len(questions)}")
        return decide(model, questions, own, noise)

    one.decide = deciding  # type: ignore[method-assign]
    return one


def questions(one: Any, *clients: str) -> list[Any]:
    return [one.question(Ask("films", client, (0.1, 0.9))) for client in clients]


async def test_nothing_is_decided_before_it_is_paid_for() -> None:
    store = Ordered()
    one = watched(store)
    await one.answer(questions(one, "a", "b"), [None, None])
    assert store.steps == ["debited", "decided 2"]


async def test_a_lost_debit_is_not_decided_and_harms_nobody() -> None:
    store = Ordered()
    one = watched(store)
    store.lost.add(one.principal("b"))
    answers = await one.answer(questions(one, "a", "b", "c"), [None] * 3)
    assert store.steps == ["debited", "decided 2"]
    assert [type(each) for each in answers] == [Answered, StoreUnavailable, Answered]


async def test_a_spent_budget_is_answered_without_the_client_or_refused() -> None:
    for rule, expected in (("degrade", Answered), ("refuse", BudgetExhausted)):
        store = Ordered()
        answers = {"epsilon": 1.0, "budget": {"epsilon": 1.0}, "on_exhausted": rule}
        one = watched(store, privacy={"answers": answers})
        await one.answer(questions(one, "a"), [None])
        (second,) = await one.answer(questions(one, "a"), [None])
        assert type(second) is expected
        assert store.steps == ["debited", "decided 1", "debited"]
        if isinstance(second, Answered):
            assert second.outcome is AnswerOutcome.DEGRADED
            assert not second.decision.personalised
            assert second.charge.nano_epsilon == 0


async def test_a_marker_pays_once() -> None:
    store = Ordered()
    one = watched(store)
    for _ in range(3):
        (answer,) = await one.answer(questions(one, "a"), [RetryMark(b"event", 60)])
    assert answer.ledger.answers.nano_epsilon == 10**9 // 4


def test_available_items_are_ascending_and_visible() -> None:
    one = recommender(items=["a", {"id": "b", "hidden": True}, "c", "d"])
    assert one.available(exclude=["c"], candidates=None).tolist() == [0, 3]
    assert one.available(exclude=[], candidates=["d", "a", "b"]).tolist() == [0, 3]
    with pytest.raises(InvalidArgument, match="no candidate is a visible item"):
        one.available(exclude=[], candidates=["b", "unknown"])
