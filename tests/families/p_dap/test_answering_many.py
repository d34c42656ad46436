"""Many answers at once keep the order of one: nothing is released that was not paid for."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet.families.p_dap.adaptive_partition import AdaptivePartition
from discreet.families.p_dap.adaptive_partition_many import plan_many
from discreet.families.p_dap.contract import Decision, Deeper
from discreet.families.questions import Ask
from discreet.families.p_dap import answering_many
from discreet.decisions.runtime import Runtime
from discreet.decisions.tokens import open_decision
from discreet.privacy.events import RandomisedResponse
from tests.decisions.conftest import document
from tests.families.p_dap.patchy import (
    WAYS,
    Watch,
    Way,
    kinds,
    learner_in,
    open_patchy,
    principal,
    spent,
    split_root,
    store_of,
)

pytestmark = pytest.mark.anyio

PLACES = [[0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9], [0.5, 0.5], [1.0, 0.0]]
CLIENTS = ["ada", "bob", "cid", "dot", "eve", "fay"]
TORN, FINE = "StoreUnavailable", "personalised"
IN_ONE_QUARTER_TORN = [FINE, TORN, FINE, FINE, FINE, TORN]
"""The second place and the last lie in the same quarter."""


@pytest.fixture
async def runtime(anyio_backend: str) -> AsyncIterator[Runtime]:
    opened = await open_patchy()
    await opened.registry.put("films", document(partition={"base": 10.0}))
    refusing = {"epsilon": 1.0, "budget": {"epsilon": 2.0}, "on_exhausted": "refuse"}
    await opened.registry.put("strict", document(privacy=refusing))
    yield opened
    await opened.close()


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(monkeypatch)


def asks(*clients: str, recommender: str = "films") -> list[Ask]:
    return [
        Ask(recommender=recommender, client=client, context=place)
        for client, place in zip(clients or CLIENTS, PLACES, strict=False)
    ]


@WAYS
async def test_all_of_them_are_decided_in_one_go(
    runtime: Runtime, watch: Watch, ask_all: Way
) -> None:
    answers = await ask_all(runtime, asks())
    assert kinds(answers) == ["personalised"] * 6
    assert watch.rows == [0, 1, 2, 3, 4, 5]
    assert store_of(runtime).lots == [6]


@WAYS
async def test_nothing_is_decided_for_a_row_whose_debit_failed_or_is_unknown(
    runtime: Runtime, watch: Watch, ask_all: Way
) -> None:
    store = store_of(runtime)
    store.refusing = {principal(runtime, "bob"), principal(runtime, "fay")}
    store.losing = {principal(runtime, "dot")}
    answers = await ask_all(runtime, asks())
    assert kinds(answers) == [FINE, TORN, FINE, TORN, FINE, TORN]
    assert watch.rows == [0, 2, 4]
    assert await spent(runtime, "bob") == 0.0
    assert await spent(runtime, "dot") == 1.0  # paid, and nothing was released


@WAYS
async def test_when_no_debit_is_known_nothing_is_decided_at_all(
    runtime: Runtime, watch: Watch, ask_all: Way
) -> None:
    store_of(runtime).losing = {principal(runtime, client) for client in CLIENTS}
    assert kinds(await ask_all(runtime, asks())) == ["StoreUnavailable"] * 6
    assert watch.rows == []


@WAYS
async def test_a_budget_that_ends_within_a_batch_ends_there(
    runtime: Runtime, watch: Watch, ask_all: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one client are debited in order; those that cannot be paid ignore the context."""
    plain: list[Any] = []
    honest = AdaptivePartition.decide_without

    def noted(self: AdaptivePartition, **given: Any) -> Decision:
        plain.append(given["request"].context.tolist())
        return honest(self, **given)

    monkeypatch.setattr(AdaptivePartition, "decide_without", noted)
    many = [
        Ask(
            recommender="films",
            client="ada" if row % 2 else f"other {row}",
            context=[0.2, row / 20],
        )
        for row in range(16)
    ]
    answers = await ask_all(runtime, many)
    personalised = [row for row in range(16) if row % 2 == 0 or row < 10]
    assert [
        row for row, kind in enumerate(kinds(answers)) if kind == "personalised"
    ] == personalised
    assert watch.rows == personalised
    assert plain == [[0.2, row / 20] for row in (11, 13, 15)]
    assert [one.privacy.epsilon for one in answers[1::2]] == [1.0] * 5 + [0.0] * 3
    told = [one.privacy.spent.epsilon for one in answers[1::2]]
    assert told == [1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0, 5.0]
    assert await spent(runtime, "ada") == 5.0
    assert await spent(runtime, "other 4") == 1.0
    for row, one in enumerate(answers):
        pending = open_decision(runtime.sealer, one.recommendation_id)
        assert pending.decision.personalised == (row in personalised)
        assert pending.nano_epsilon == (10**9 if row in personalised else 0)


@WAYS
async def test_who_refuses_refuses_only_those_whose_budget_is_spent(
    runtime: Runtime, watch: Watch, ask_all: Way
) -> None:
    many = asks("ada", "ada", "bob", "ada", "ada", "bob", recommender="strict")
    answers = await ask_all(runtime, many)
    refused = "BudgetExhausted"
    assert kinds(answers) == ["personalised"] * 3 + [refused] * 2 + ["personalised"]
    assert watch.rows == [0, 1, 2, 5]
    assert await spent(runtime, "ada", "strict") == 2.0


@WAYS
async def test_an_unreadable_cell_fails_its_own_rows_and_they_release_nothing(
    runtime: Runtime, watch: Watch, ask_all: Way
) -> None:
    await split_root(runtime)
    learner = await learner_in(runtime)
    await ask_all(runtime, asks(*(f"first {row}" for row in range(6))))  # the split is known now
    torn = learner.partition.route(np.array([0.9, 0.1])).address(1).key
    store_of(runtime).unreadable = {torn}
    watch.lots.clear()
    answers = await ask_all(runtime, asks())
    assert kinds(answers) == IN_ONE_QUARTER_TORN
    assert watch.rows == [0, 2, 3, 4]
    assert await spent(runtime, "bob") == 1.0


@WAYS
@pytest.mark.parametrize("surveyed", [False, True], ids=["looking deeper", "reading ahead"])
async def test_a_cell_that_cannot_be_read_further_down_fails_its_own_rows(
    runtime: Runtime, watch: Watch, ask_all: Way, surveyed: bool
) -> None:
    await split_root(runtime)
    learner = await learner_in(runtime)
    torn = learner.partition.route(np.array([0.9, 0.1])).address(1)
    if surveyed:
        learner.survey(cells={torn: np.array([1])})
    store_of(runtime).unreadable = {torn.key}
    assert kinds(await ask_all(runtime, asks())) == IN_ONE_QUARTER_TORN
    assert watch.rows == ([0, 2, 3, 4] if surveyed else [0, 1, 2, 3, 4, 5])


@WAYS
async def test_rows_that_look_deeper_are_answered_from_their_own_cells(
    runtime: Runtime, ask_all: Way
) -> None:
    await split_root(runtime)
    learner = await learner_in(runtime)
    answers = await ask_all(runtime, asks())
    for one, place in zip(answers, PLACES, strict=True):
        decision = open_decision(runtime.sealer, one.recommendation_id).decision
        assert decision.address == learner.partition.route(np.array(place)).address(1)
        assert decision.personalised


@WAYS
async def test_a_decision_that_released_something_else_than_was_paid_for_is_withheld(
    runtime: Runtime, watch: Watch, ask_all: Way
) -> None:
    def greedy(one: Decision | Deeper) -> Decision:
        assert isinstance(one, Decision)
        return replace(one, events=(RandomisedResponse(2.0),))

    watch.change = greedy
    assert kinds(await ask_all(runtime, asks())) == ["Underpaid"] * 6
    # Unlike an answer alone, one in a batch that says nothing was released is withheld too.
    watch.change = lambda one: replace(one, events=()) if isinstance(one, Decision) else one
    assert kinds(await ask_all(runtime, asks())) == ["Underpaid"] * 6


@WAYS
async def test_looking_deeper_must_not_change_the_price(
    runtime: Runtime, watch: Watch, ask_all: Way
) -> None:
    await split_root(runtime)

    def dearer(one: Decision | Deeper) -> Deeper:
        assert isinstance(one, Deeper)
        return Deeper(replace(one.plan, events=(RandomisedResponse(2.0),)))

    watch.change = dearer
    assert kinds(await ask_all(runtime, asks())) == ["Underpaid"] * 6
    assert store_of(runtime).looked == 0


@WAYS
async def test_an_answer_without_the_context_that_releases_something_is_withheld(
    runtime: Runtime, ask_all: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = AdaptivePartition.decide_without

    def greedy(self: AdaptivePartition, **given: Any) -> Decision:
        return replace(honest(self, **given), events=(RandomisedResponse(1.0),))

    monkeypatch.setattr(AdaptivePartition, "decide_without", greedy)
    answers = await ask_all(runtime, asks(*["ada"] * 6))
    assert kinds(answers) == ["Underpaid"] * 6


@WAYS
async def test_a_plan_that_costs_nothing_is_not_begun(
    runtime: Runtime, watch: Watch, ask_all: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        answering_many,
        "plan_many",
        lambda *args, **given: replace(plan_many(*args, **given), events=()),
    )
    assert kinds(await ask_all(runtime, asks())) == ["Underpaid"] * 6
    assert watch.lots == []
    assert store_of(runtime).lots == []
