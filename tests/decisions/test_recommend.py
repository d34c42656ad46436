"""The order of one recommendation, and what it costs."""

import asyncio
import math
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

import pytest

from discreet.families.p_dap.contract import Decision
from discreet.decisions.clients import budget_of
from discreet.families.p_dap.answering import Ask
from discreet.decisions.recommend import recommend, recommend_batch
from discreet.decisions.runtime import Runtime
from discreet.errors import (
    BudgetExhausted,
    EventReused,
    InvalidArgument,
    SeededNoiseRefused,
    StoreUnavailable,
    Underpaid,
    UnknownRecommender,
)
from discreet.privacy.events import RandomisedResponse
from discreet.privacy.noise import SystemNoise
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import document

pytestmark = pytest.mark.anyio

ASK = Ask(recommender="films", client="someone", context=[0.2, 0.8])


async def spent(runtime: Runtime, client: str = "someone", recommender: str = "films") -> float:
    report = await budget_of(runtime, recommender=recommender, client=client)
    assert report.spent is not None
    return report.spent.epsilon


async def test_an_answer_is_an_item_and_its_price(runtime: Runtime) -> None:
    answer = await recommend(runtime, ASK)
    assert answer.items[0] in {"a", "b", "c", "d"}
    assert answer.personalised
    assert answer.privacy.epsilon == 1.0
    assert answer.privacy.spent is not None
    assert answer.privacy.spent.epsilon == 1.0
    assert answer.privacy.remaining is not None
    assert answer.privacy.remaining.epsilon == 4.0
    assert answer.expires_at == 1_800_000_000 + 86_400


async def test_a_budget_for_five_personalises_five_times_however_many_ask(runtime: Runtime) -> None:
    answers = await asyncio.gather(*(recommend(runtime, ASK) for _ in range(40)))
    assert sum(answer.personalised for answer in answers) == 5
    degraded = [answer for answer in answers if not answer.personalised]
    assert {answer.privacy.epsilon for answer in degraded} == {0.0}
    assert await spent(runtime) == 5.0


async def test_clients_have_ledgers_of_their_own(runtime: Runtime) -> None:
    await recommend(runtime, ASK)
    assert await spent(runtime, "somebody else") == 0.0


async def test_a_refusing_recommender_says_so(runtime: Runtime) -> None:
    await runtime.registry.put(
        "strict",
        document(privacy={"epsilon": 1, "budget": {"epsilon": 1}, "on_exhausted": "refuse"}),
    )
    await recommend(runtime, ASK._replace(recommender="strict"))
    with pytest.raises(BudgetExhausted):
        await recommend(runtime, ASK._replace(recommender="strict"))


async def test_a_list_is_drawn_without_repeats_and_charged_per_draw(runtime: Runtime) -> None:
    answer = await recommend(runtime, ASK._replace(limit=3))
    assert len(set(answer.items)) == 3
    assert answer.privacy.epsilon == 3.0
    assert await spent(runtime) == 3.0


async def test_the_last_of_a_whole_catalogue_is_no_choice_and_costs_nothing(
    runtime: Runtime,
) -> None:
    answer = await recommend(runtime, ASK._replace(limit=10))
    assert set(answer.items) == {"a", "b", "c", "d"}
    assert answer.privacy.epsilon == 3.0


async def test_a_single_item_is_no_choice_and_costs_nothing(runtime: Runtime) -> None:
    answer = await recommend(runtime, ASK._replace(candidates=["b"]))
    assert answer.items == ("b",)
    assert answer.privacy.epsilon == 0.0


async def test_excluded_and_hidden_items_are_never_answered(runtime: Runtime) -> None:
    await runtime.registry.put("big", document(privacy={"budget": {"epsilon": 1e6}}))
    await runtime.registry.hide_item("big", "a", True)
    await runtime.registry.remove_item("big", "b")
    ask = ASK._replace(recommender="big", exclude=["c", "unheard of"])
    for _ in range(50):
        assert (await recommend(runtime, ask)).items == ("d",)


async def test_nothing_left_is_an_empty_answer_that_costs_nothing(runtime: Runtime) -> None:
    answer = await recommend(runtime, ASK._replace(exclude=["a", "b", "c", "d"]))
    assert answer.items == ()
    assert not answer.personalised
    assert await spent(runtime) == 0.0


@pytest.mark.parametrize(
    ("change", "argument"),
    [({"context": [0.5]}, "context"), ({"candidates": ["unheard of"]}, "candidates")],
)
async def test_bad_input_is_named_and_costs_nothing(
    runtime: Runtime, change: dict[str, Any], argument: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await recommend(runtime, ASK._replace(event_id="e", **change))
    assert caught.value.argument == argument
    assert await spent(runtime) == 0.0
    assert (await recommend(runtime, ASK._replace(event_id="e"))).personalised


async def test_an_unknown_recommender_is_said(runtime: Runtime) -> None:
    with pytest.raises(UnknownRecommender):
        await recommend(runtime, ASK._replace(recommender="nobody"))


async def test_no_protection_is_answered_without_a_ledger(runtime: Runtime) -> None:
    await runtime.registry.put("open", document(privacy={"mode": "none"}))
    for _ in range(30):
        answer = await recommend(runtime, ASK._replace(recommender="open"))
    assert answer.privacy.epsilon is None
    assert answer.privacy.spent is None


async def test_a_retry_gets_the_same_answer_and_pays_once(runtime: Runtime) -> None:
    ask = ASK._replace(event_id="click-1")
    first = await recommend(runtime, ask)
    again = await asyncio.gather(*(recommend(runtime, ask) for _ in range(20)))
    assert set(again) == {first}
    assert await spent(runtime) == 1.0


async def test_parallel_firsts_agree_and_pay_once(runtime: Runtime) -> None:
    ask = ASK._replace(event_id="click-2")
    answers = await asyncio.gather(*(recommend(runtime, ask) for _ in range(20)))
    assert len(set(answers)) == 1
    assert await spent(runtime) == 1.0


@pytest.mark.parametrize(
    "change",
    [{"client": "another"}, {"context": [0.3, 0.8]}, {"limit": 2}, {"exclude": ["a"]}],
)
async def test_an_event_id_for_another_question_is_refused_and_costs_nothing(
    runtime: Runtime, change: dict[str, Any]
) -> None:
    await recommend(runtime, ASK._replace(event_id="click-3"))
    other = ASK._replace(event_id="click-3", **change)
    with pytest.raises(EventReused):
        await recommend(runtime, other)
    assert await spent(runtime) == 1.0
    assert await spent(runtime, "another") == 0.0


class Faltering(MemoryStore):
    """A store that fails at one named step, once."""

    fails: str | None = None

    def _once(self, step: str) -> None:
        if self.fails == step:
            self.fails = None
            raise StoreUnavailable

    def answer_event(self, **given: Any) -> Awaitable[bytes]:
        self._once("answer_event")
        return super().answer_event(**given)

    def spend(self, **given: Any) -> Awaitable[Any]:
        self._once("spend")
        return super().spend(**given)

    def read(self, **given: Any) -> Awaitable[Any]:
        self._once("read")
        return super().read(**given)


@pytest.fixture
async def faltering(anyio_backend: str) -> Runtime:
    opened = await Runtime.open(
        store=Faltering(), noise=SystemNoise(), lease_seconds=math.inf, survey_seconds=math.inf
    )
    await opened.registry.put("films", document())
    return opened


async def test_a_crash_between_paying_and_answering_is_not_paid_twice(faltering: Runtime) -> None:
    assert isinstance(faltering.store, Faltering)
    faltering.store.fails = "answer_event"
    ask = ASK._replace(event_id="click-4")
    with pytest.raises(StoreUnavailable):
        await recommend(faltering, ask)
    assert (await recommend(faltering, ask)).personalised
    assert await spent(faltering) == 1.0


@pytest.mark.parametrize("step", ["spend", "read"])
async def test_a_store_that_fails_releases_nothing(faltering: Runtime, step: str) -> None:
    assert isinstance(faltering.store, Faltering)
    faltering.store.fails = step
    with pytest.raises(StoreUnavailable):
        await recommend(faltering, ASK)


async def test_a_learner_that_releases_more_than_it_said_is_not_answered(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = (await runtime.registry.find("films")).learner
    honest = type(learner).decide

    def greedy(self: Any, **given: Any) -> Any:
        decision = honest(self, **given)
        assert isinstance(decision, Decision)
        return replace(decision, events=(RandomisedResponse(2.0),))

    monkeypatch.setattr(type(learner), "decide", greedy)
    with pytest.raises(Underpaid):
        await recommend(runtime, ASK)


async def test_a_batch_answers_each_by_itself_in_order(runtime: Runtime) -> None:
    answers = await recommend_batch(
        runtime,
        [
            ASK,
            ASK._replace(recommender="nobody"),
            ASK._replace(context=[0.1]),
            ASK._replace(event_id="click-5"),
            ASK._replace(event_id="click-5"),
            ASK._replace(client="another", limit=2),
        ],
    )
    assert [type(answer).__name__ for answer in answers] == [
        "Recommendation",
        "UnknownRecommender",
        "InvalidArgument",
        "Recommendation",
        "Recommendation",
        "Recommendation",
    ]
    assert answers[3] == answers[4]
    assert await spent(runtime) == 2.0


async def test_reproducible_noise_never_serves(store: MemoryStore) -> None:
    with pytest.raises(SeededNoiseRefused):
        await Runtime.open(store=store, noise=SeededNoise(1))


async def test_a_ledger_survives_its_recommender(runtime: Runtime) -> None:
    await recommend(runtime, ASK)
    await runtime.registry.remove("films")
    await runtime.registry.put("films", document())
    assert await spent(runtime) == 1.0
