"""The order of one recommendation, and what it costs."""

import asyncio
import math
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest

from discreet.decisions import changes
from discreet.decisions.services import DecisionServices, open_services
from discreet.errors import (
    BudgetExhausted,
    DiscreetError,
    EventReused,
    InvalidArgument,
    SeededNoiseRefused,
    StoreUnavailable,
    UnknownRecommender,
)
from discreet.families.questions import Ask, Recommendation
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from discreet.state.ready import Failed
from discreet.state.stores import Debit, Debited
from tests.decisions.conftest import document, opened, privacy

pytestmark = pytest.mark.anyio

ASK = Ask(recommender="films", client="someone", context=[0.2, 0.8])


async def spent(
    services: DecisionServices, client: str = "someone", recommender: str = "films"
) -> float:
    report = await services.clients.budget(recommender=recommender, client=client)
    assert report.answers.spent is not None
    return report.answers.spent.epsilon


async def test_an_answer_is_an_item_and_its_price(services: DecisionServices) -> None:
    answer = await services.recommend.recommend(ASK)
    assert answer.items[0] in {"a", "b", "c", "d"}
    assert answer.personalised
    assert answer.privacy.epsilon == 1.0
    assert answer.privacy.spent is not None
    assert answer.privacy.spent.epsilon == 1.0
    assert answer.privacy.remaining is not None
    assert answer.privacy.remaining.epsilon == 4.0
    assert answer.expires_at == 1_800_000_000 + 86_400


async def test_a_budget_for_five_personalises_five_times_however_many_ask(
    services: DecisionServices,
) -> None:
    answers = await asyncio.gather(*(services.recommend.recommend(ASK) for _ in range(40)))
    assert sum(answer.personalised for answer in answers) == 5
    degraded = [answer for answer in answers if not answer.personalised]
    assert {answer.privacy.epsilon for answer in degraded} == {0.0}
    assert await spent(services) == 5.0


async def test_clients_have_ledgers_of_their_own(services: DecisionServices) -> None:
    await services.recommend.recommend(ASK)
    assert await spent(services, "somebody else") == 0.0


async def test_a_refusing_recommender_says_so(services: DecisionServices) -> None:
    await services.registry.put(
        "strict",
        document(privacy=privacy(budget=1.0, on_exhausted="refuse")),
    )
    await services.recommend.recommend(ASK._replace(recommender="strict"))
    with pytest.raises(BudgetExhausted):
        await services.recommend.recommend(ASK._replace(recommender="strict"))


async def test_a_list_is_personal_in_its_first_item_whatever_its_length(
    services: DecisionServices,
) -> None:
    """A budget of five pays for five lists of any length, not for one."""
    for place in range(6):
        answer = await services.recommend.recommend(ASK._replace(limit=100))
        assert set(answer.items) == {"a", "b", "c", "d"}
        assert answer.personalised == (place < 5)
        assert (answer.reason is None) == (place < 5)
    assert await spent(services) == 5.0


async def test_a_list_is_drawn_without_repeats_and_charged_per_draw(
    services: DecisionServices,
) -> None:
    await services.registry.put("films", document(privacy=privacy(budget=5.0, personal_slots=9)))
    answer = await services.recommend.recommend(ASK._replace(limit=3))
    assert len(set(answer.items)) == 3
    assert answer.privacy.epsilon == 3.0
    assert await spent(services) == 3.0


async def test_the_last_of_a_whole_catalogue_is_no_choice_and_costs_nothing(
    services: DecisionServices,
) -> None:
    await services.registry.put("films", document(privacy=privacy(budget=5.0, personal_slots=9)))
    answer = await services.recommend.recommend(ASK._replace(limit=10))
    assert set(answer.items) == {"a", "b", "c", "d"}
    assert answer.privacy.epsilon == 3.0


async def test_a_single_item_is_no_choice_and_costs_nothing(services: DecisionServices) -> None:
    answer = await services.recommend.recommend(ASK._replace(candidates=["b"]))
    assert answer.items == ("b",)
    assert answer.privacy.epsilon == 0.0


async def test_excluded_and_hidden_items_are_never_answered(services: DecisionServices) -> None:
    await services.registry.put("big", document(privacy=privacy(budget=1e6)))
    await services.registry.change("big", changes.change_item("a", {"hidden": True}))
    await services.registry.change("big", changes.remove_item("b"))
    ask = ASK._replace(recommender="big", exclude=["c", "unheard of"])
    for _ in range(50):
        assert (await services.recommend.recommend(ask)).items == ("d",)


async def test_nothing_left_is_an_empty_answer_that_costs_nothing(
    services: DecisionServices,
) -> None:
    answer = await services.recommend.recommend(ASK._replace(exclude=["a", "b", "c", "d"]))
    assert answer.items == ()
    assert not answer.personalised
    assert await spent(services) == 0.0


@pytest.mark.parametrize(
    ("change", "argument"),
    [({"context": [0.5]}, "context"), ({"candidates": ["unheard of"]}, "candidates")],
)
async def test_bad_input_is_named_and_costs_nothing(
    services: DecisionServices, change: dict[str, Any], argument: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await services.recommend.recommend(ASK._replace(event_id="e", **change))
    assert caught.value.argument == argument
    assert await spent(services) == 0.0
    assert (await services.recommend.recommend(ASK._replace(event_id="e"))).personalised


async def test_an_unknown_recommender_is_said(services: DecisionServices) -> None:
    with pytest.raises(UnknownRecommender):
        await services.recommend.recommend(ASK._replace(recommender="nobody"))


async def test_exact_answers_are_booked_as_unlimited_for_good(services: DecisionServices) -> None:
    exact = document(privacy={**privacy(), "answers": "exact"})
    await services.registry.put("films", exact)
    answer = await services.recommend.recommend(ASK)
    assert answer.privacy.epsilon is None
    assert answer.reason is not None
    await services.registry.put("films", document())
    after = await services.recommend.recommend(ASK)
    assert not after.personalised
    assert after.privacy.spent is not None
    assert math.isinf(after.privacy.spent.epsilon)


async def test_a_spent_budget_says_why(services: DecisionServices) -> None:
    answers = [await services.recommend.recommend(ASK) for _ in range(6)]
    assert answers[-1].reason == "the client's budget for answers is spent"
    assert {answer.reason for answer in answers[:-1]} == {None}


async def test_a_retry_gets_the_same_answer_and_pays_once(services: DecisionServices) -> None:
    ask = ASK._replace(event_id="click-1")
    first = await services.recommend.recommend(ask)
    again = await asyncio.gather(*(services.recommend.recommend(ask) for _ in range(20)))
    assert set(again) == {first}
    assert await spent(services) == 1.0


async def test_parallel_firsts_agree_and_pay_once(services: DecisionServices) -> None:
    ask = ASK._replace(event_id="click-2")
    answers = await asyncio.gather(*(services.recommend.recommend(ask) for _ in range(20)))
    assert len(set(answers)) == 1
    assert await spent(services) == 1.0


@pytest.mark.parametrize(
    "change",
    [{"client": "another"}, {"limit": 2}],
)
async def test_an_event_id_for_another_question_is_refused_and_costs_nothing(
    services: DecisionServices, change: dict[str, Any]
) -> None:
    await services.recommend.recommend(ASK._replace(event_id="click-3"))
    other = ASK._replace(event_id="click-3", **change)
    with pytest.raises(EventReused):
        await services.recommend.recommend(other)
    assert await spent(services) == 1.0
    assert await spent(services, "another") == 0.0


class Faltering(MemoryStore):
    """A store that fails at one named step, once."""

    fails: str | None = None

    def _fails_at(self, step: str) -> bool:
        failing = self.fails == step
        if failing:
            self.fails = None
        return failing

    def answer_event(self, **given: Any) -> Awaitable[bytes]:
        if self._fails_at("answer_event"):
            return Failed(StoreUnavailable())
        return super().answer_event(**given)

    def spend(self, debits: Sequence[Debit]) -> Awaitable[Sequence[Debited | DiscreetError]]:
        if self._fails_at("spend"):
            return Failed(StoreUnavailable())
        return super().spend(debits)


@pytest.fixture
async def faltering(anyio_backend: str) -> DecisionServices:
    found = await opened(Faltering())
    await found.registry.put("films", document())
    return found


async def test_a_crash_between_paying_and_answering_is_not_paid_twice(
    faltering: DecisionServices,
) -> None:
    assert isinstance(faltering.store, Faltering)
    faltering.store.fails = "answer_event"
    ask = ASK._replace(event_id="click-4")
    with pytest.raises(StoreUnavailable):
        await faltering.recommend.recommend(ask)
    assert (await faltering.recommend.recommend(ask)).personalised
    assert await spent(faltering) == 1.0


async def test_a_store_that_fails_releases_nothing(faltering: DecisionServices) -> None:
    assert isinstance(faltering.store, Faltering)
    faltering.store.fails = "spend"
    with pytest.raises(StoreUnavailable):
        await faltering.recommend.recommend(ASK)


class Patchy(MemoryStore):
    """A store that loses the debits of one client, as a cluster loses those of one shard."""

    lost: bytes | None = None

    async def spend(  # type: ignore[override]
        self, debits: Sequence[Debit]
    ) -> Sequence[Debited | DiscreetError]:
        made = await super().spend(debits)
        return [
            StoreUnavailable() if debit.principal == self.lost else one
            for debit, one in zip(debits, made, strict=True)
        ]


async def test_a_debit_whose_fate_is_unknown_releases_nothing_and_fails_alone() -> None:
    services = await opened(Patchy())
    await services.registry.put("films", document())
    assert isinstance(services.store, Patchy)
    services.store.lost = (await services.registry.find("films")).principal("unlucky")
    asks = [ASK._replace(client=client) for client in ("one", "unlucky", "two")]
    answers = await services.recommend.recommend_many(asks)
    assert [type(one) for one in answers] == [Recommendation, StoreUnavailable, Recommendation]


async def test_a_batch_answers_each_by_itself_in_order(services: DecisionServices) -> None:
    answers = await services.recommend.recommend_many(
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
    assert await spent(services) == 2.0


async def test_reproducible_noise_never_serves(store: MemoryStore) -> None:
    with pytest.raises(SeededNoiseRefused):
        await open_services(store=store, noise=SeededNoise(1))


async def test_a_ledger_survives_its_recommender(services: DecisionServices) -> None:
    await services.recommend.recommend(ASK)
    await services.registry.remove("films")
    await services.registry.put("films", document())
    assert await spent(services) == 1.0


async def test_a_long_batch_is_answered_in_order(services: DecisionServices) -> None:
    await services.registry.put("one", document(items=["x"]))
    asks = [
        ASK._replace(recommender="one" if place % 3 else "films", client=f"c{place}")
        for place in range(700)
    ]
    answers = await services.recommend.recommend_many(asks)
    found = [isinstance(one, Recommendation) and one.items == ("x",) for one in answers]
    assert found == [bool(place % 3) for place in range(700)]
    assert await services.recommend.recommend_many([]) == []
