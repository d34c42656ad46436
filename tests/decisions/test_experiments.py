"""One name, several recommenders: who gets which, who pays, and what came of it."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from discreet.decisions.services import DecisionServices
from discreet.errors import InvalidArgument, NotAllowed, UnknownRecommender
from discreet.families.experiments import ExperimentDocument
from discreet.families.observer import AnswerOutcome, NullObserver
from discreet.families.questions import Ask, Feedback, Recommendation
from discreet.families.registration import read_document
from discreet.state.memory import MemoryStore
from tests.contracts.samples import SAMPLES
from tests.decisions.conftest import Clock, document, opened, privacy

pytestmark = pytest.mark.anyio

SHARES = {"champion": 0.6, "popular": 0.1, "challenger": 0.3}
GROUP = "shop"


class OutcomeObserver(NullObserver):
    """Counts answers by recommender and outcome."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, AnswerOutcome]] = Counter()

    def recommendation(
        self, *, recommender: str, outcome: AnswerOutcome, answers: int = 1, **_: Any
    ) -> None:
        self.answers[recommender, outcome] += answers


@pytest.fixture
def watching() -> OutcomeObserver:
    return OutcomeObserver()


@pytest.fixture
async def shop(
    anyio_backend: str, store: MemoryStore, clock: Clock, watching: OutcomeObserver
) -> AsyncIterator[DecisionServices]:
    services = await opened(store, clock, observer=watching)
    for name in SHARES:
        await services.registry.put(name, document(ledger=GROUP))
    await services.experiments.put("home", experiment(holdout=["popular"]))
    yield services
    await services.close()


def experiment(**changes: Any) -> ExperimentDocument:
    return ExperimentDocument.model_validate({"traffic": SHARES, **changes})


def question(client: str, **more: Any) -> Ask:
    return Ask("home", client, **{"context": [0.2, 0.8], **more})


async def arm_of(services: DecisionServices, client: str) -> str:
    return services.experiments.arm_of("home", await services.experiments.show("home"), client)


async def whose(services: DecisionServices, answer: Recommendation) -> str:
    recommender, _, _ = await services.feedback.find(answer.recommendation_id, None)
    return recommender.name


async def test_a_client_gets_one_arm_whatever_the_context(shop: DecisionServices) -> None:
    for client in ("ada", "bob", "eve"):
        expected = await arm_of(shop, client)
        for context in ([0.0, 0.0], [1.0, 1.0], [0.4, 0.6]):
            answer = await shop.recommend.recommend(question(client, context=context))
            assert await whose(shop, answer) == expected


async def test_shares_are_kept(shop: DecisionServices) -> None:
    """False alarm: each count is binomial and may be six standard deviations off, 6e-9 in all;
    the smallest share wrong by 30% is seven off."""
    counts = Counter([await arm_of(shop, f"client {n}") for n in range(5_000)])
    for arm, share in SHARES.items():
        assert abs(counts[arm] - 5_000 * share) < 6 * (5_000 * share * (1 - share)) ** 0.5


async def test_batches_are_divided_in_the_same_way(
    shop: DecisionServices, watching: OutcomeObserver
) -> None:
    asks = [question(f"client {n}", event_id=f"e{n}" if n % 3 == 0 else None) for n in range(60)]
    answers = await shop.recommend.recommend_many([*asks, Ask("nobody", "x")])
    assert isinstance(answers.pop(), UnknownRecommender)
    for ask, answer in zip(asks, answers, strict=True):
        assert isinstance(answer, Recommendation)
        assert await whose(shop, answer) == await arm_of(shop, ask.client)
    held = {name for name, outcome in watching.answers if outcome is AnswerOutcome.HOLDOUT}
    assert held == {"popular"}


async def client_of(services: DecisionServices, arm: str) -> str:
    for number in range(1_000):
        if await arm_of(services, f"client {number}") == arm:
            return f"client {number}"
    raise AssertionError("no such client")


async def test_a_holdout_is_free_and_does_not_look_at_the_client(shop: DecisionServices) -> None:
    client = await client_of(shop, "popular")
    answer = await shop.recommend.recommend(question(client))
    assert (answer.personalised, answer.privacy.epsilon) == (False, 0.0)
    assert answer.reason is not None
    assert "held out" in answer.reason
    assert answer.items
    report = await shop.clients.budget(recommender="popular", client=client)
    assert report.answers.spent is not None
    assert report.answers.spent.epsilon == 0.0
    direct = await shop.recommend.recommend(Ask("popular", client, [0.2, 0.8]))
    assert direct.personalised, "it is held out of the experiment, and nowhere else"


async def test_feedback_teaches_the_arm(shop: DecisionServices, store: MemoryStore) -> None:
    client = await client_of(shop, "challenger")
    answer = await shop.recommend.recommend(question(client))
    await shop.feedback.record(Feedback(1.0, answer.recommendation_id))
    for name in SHARES:
        generation = (await shop.registry.find(name)).generation
        await store.freeze(generation=generation, number=1)
        frozen = await store.frozen(generation=generation, number=1)
        assert bool(frozen) == (name == "challenger")


async def test_a_holdout_awaits_its_reward(
    anyio_backend: str, store: MemoryStore, clock: Clock
) -> None:
    services = await opened(store, clock)
    await services.registry.put("popular", document(ledger=GROUP, reward={"wait": "1m"}))
    whole = ExperimentDocument(traffic={"popular": 1.0}, holdout=["popular"])
    await services.experiments.put("home", whole)
    assert (await services.recommend.recommend(question("ada"))).awaiting is True


async def test_one_budget_pays_for_all_arms(shop: DecisionServices) -> None:
    client = await client_of(shop, "champion")
    for _ in range(5):
        assert (await shop.recommend.recommend(question(client))).personalised
    await shop.experiments.put("home", ExperimentDocument(traffic={"challenger": 1.0}))
    moved = await shop.recommend.recommend(question(client))
    assert await whose(shop, moved) == "challenger"
    assert not moved.personalised, "what the champion spent is spent"


async def test_a_key_of_the_experiment_reaches_its_arms(shop: DecisionServices) -> None:
    answer = await shop.recommend.recommend(question("ada"))
    for bound in (frozenset({"home"}), frozenset({await arm_of(shop, "ada")})):
        told = Feedback(1.0, answer.recommendation_id, recommenders=bound)
        await shop.feedback.record(told)
    other = Feedback(1.0, answer.recommendation_id, recommenders=frozenset({"books"}))
    with pytest.raises(NotAllowed):
        await shop.feedback.record(other)


async def test_what_would_break_the_promise_is_refused(shop: DecisionServices) -> None:
    await shop.registry.put("alone", document())
    await shop.registry.put("apart", document(ledger="another"))
    await shop.registry.put("patient", document(ledger=GROUP, reward={"wait": "1m"}))
    collaborative = {"algorithm": "collaborative", **SAMPLES["collaborative"].document}
    await shop.registry.put("alike", read_document({**collaborative, "ledger": "alike"}))
    for traffic, holdout, said in (
        ({"champion": 0.5, "nobody": 0.5}, [], "create it first"),
        ({"champion": 0.5, "alone": 0.5}, [], "ledger of its own"),
        ({"champion": 0.5, "apart": 0.5}, [], "another ledger group"),
        ({"champion": 0.5, "patient": 0.5}, [], "another `reward`"),
        ({"alike": 1.0}, ["alike"], "cannot answer without a client"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            await shop.experiments.put(
                "second", ExperimentDocument(traffic=traffic, holdout=holdout)
            )
    assert await shop.experiments.names() == ["home"]


async def test_a_shadow_needs_a_model_and_a_log(shop: DecisionServices) -> None:
    collaborative = {"algorithm": "collaborative", **SAMPLES["collaborative"].document}
    await shop.registry.put("alike", read_document({**collaborative, "ledger": "alike"}))
    await shop.registry.put("newcomer", document())
    for shadow, said in (
        (["nobody"], "create it first"),
        (["alike"], "keeps of each client"),
        (["newcomer"], "give it `log:`"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            await shop.experiments.put("second", experiment(shadow=shadow))
    assert await shop.experiments.names() == ["home"]


async def test_names_are_of_one_thing(shop: DecisionServices) -> None:
    with pytest.raises(InvalidArgument, match="recommender's"):
        await shop.experiments.put("champion", experiment())
    with pytest.raises(InvalidArgument, match="experiment's"):
        await shop.registry.put("home", document())
    with pytest.raises(InvalidArgument, match="arm of the experiment home"):
        await shop.registry.remove("champion")
    await shop.experiments.remove("home")
    await shop.registry.remove("champion")
    with pytest.raises(UnknownRecommender):
        await shop.recommend.recommend(question("ada"))
    with pytest.raises(UnknownRecommender):
        await shop.experiments.remove("home")


async def test_changes_are_told_from_creation_and_repetition(shop: DecisionServices) -> None:
    assert await shop.experiments.put("second", experiment())
    assert not await shop.experiments.put("second", experiment())
    assert not await shop.experiments.put("second", experiment(holdout=["popular"]))
    assert (await shop.experiments.show("second")).holdout == ["popular"]


async def test_results_come_from_releases(anyio_backend: str, clock: Clock) -> None:
    """Two arms liked by half and by nine in ten, of 400 records each: the intervals hold the truth
    but for one run in twenty each, with noise of the operating system and clients divided by
    chance; they are asserted three times as wide, 5.9 deviations, false alarm 2e-8 in all."""
    services = await opened(MemoryStore(clock=clock), clock)
    reward = {"range": [-1, 1]}
    dials = privacy(budget=1e6, feedback={"epsilon": 4.0, "budget": {"epsilon": 8.0}})
    for name in ("half", "most"):
        await services.registry.put(name, document(ledger=GROUP, reward=reward, privacy=dials))
    await services.experiments.put("home", ExperimentDocument(traffic={"half": 0.5, "most": 0.5}))
    before = await services.experiments.results("home")
    assert [(arm.recommender, arm.release, arm.mean) for arm in before] == [
        ("half", 0, None),
        ("most", 0, None),
    ]
    truth, rng = {"half": 0.5, "most": 0.9}, np.random.default_rng(7)
    for number in range(800):
        answer = await services.recommend.recommend(question(f"client {number}"))
        liked = rng.random() < truth[await whose(services, answer)]
        await services.feedback.record(Feedback(1.0 if liked else -1.0, answer.recommendation_id))
    for name in truth:
        await services.releaser.release(await services.registry.find(name))
    half, most = await services.experiments.results("home")
    for arm in (half, most):
        assert arm.release == 1
        assert arm.mean is not None
        assert arm.low is not None
        assert arm.high is not None
        expected = 2 * truth[arm.recommender] - 1
        assert abs(arm.mean - expected) < 1.5 * (arm.high - arm.low)
        assert arm.high - arm.low < 0.6, "it also says something"
    assert half.ahead is None
    assert most.ahead is not None
    ahead, low, high = most.ahead
    assert abs(ahead - 0.8) < 1.5 * (high - low)
    # The lower end is 0.63 on average, with a deviation of 0.085: seven of them above 0.
    assert low > 0, "the better arm is seen to be better"
