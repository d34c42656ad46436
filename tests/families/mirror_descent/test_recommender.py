"""A node at work: what is answered and paid for, learned once, released, and survives."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.errors import BudgetExhausted, InvalidArgument, RewardConflict
from discreet.families.budgets import FREE
from discreet.families.mirror_descent.recommender import (
    BUDGET_SPENT,
    NO_FEATURES_GIVEN,
    NOTHING_LEARNED,
    NOTHING_TO_CHOOSE,
    RANKED_EXACTLY,
    MirrorDescentRecommender,
)
from discreet.families.observer import AnswerOutcome
from discreet.families.questions import Sparse
from discreet.privacy.charges import NANO
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from discreet.state.redis_store import open_store
from discreet.state.stores import EXACT
from tests.families.mirror_descent.nodes import (
    PAIR,
    SMALL,
    answer,
    ask,
    built,
    gathered,
    give_feedback,
    load,
    node,
    pending,
    release,
    teach,
)
from tests.families.mirror_descent.test_reading import CROSSED, full

pytestmark = pytest.mark.anyio

PRIVATE = {"answers": {"epsilon": 2.0, "budget": {"epsilon": 4.0, "delta": 0.0}}}
GENEROUS = {"feedback": {"epsilon": 20.0, "budget": {"epsilon": 50.0, "delta": 1e-6}}}


def knowing(recommender: MirrorDescentRecommender, **weights: float) -> None:
    """Have a worker answer from a model with these weights, by feature (`f7=1.0`)."""
    vector = np.zeros(recommender.learner.dimension, dtype=np.float32)
    for name, weight in weights.items():
        vector[int(name[1:])] = weight
    current = recommender.current
    model = replace(current.model, weights=vector)
    recommender.current = replace(current, model=model)


# Answers.


async def test_without_a_model_the_order_is_random_and_free() -> None:
    """40 answers of one order have probability 2**-39."""
    recommender = built(noise=SeededNoise(0))
    answers = [await answer(recommender, limit=2) for _ in range(40)]
    assert {one.decision.items for one in answers} == {("tea", "milk"), ("milk", "tea")}
    assert {one.decision.personalised for one in answers} == {False}
    assert answers[0].decision.reason == NOTHING_LEARNED
    assert answers[-1].ledger is not None
    assert answers[-1].ledger.answers == FREE


async def test_exact_answers_are_booked_as_unlimited_and_say_why() -> None:
    recommender = built()
    knowing(recommender, f7=1.0)
    found = await answer(recommender, limit=2)
    assert found.decision.items == ("tea", "milk")
    assert found.decision.personalised
    assert found.decision.reason == RANKED_EXACTLY
    assert found.outcome is AnswerOutcome.UNPROTECTED
    assert recommender.report(found).epsilon is None
    assert found.ledger is not None
    assert found.ledger.answers == EXACT


async def test_private_answers_are_paid_for_and_then_degrade() -> None:
    recommender = built(node(privacy=PRIVATE), noise=SeededNoise(1))
    knowing(recommender, f7=1.0)
    for left in (2.0, 0.0):
        found = await answer(recommender)
        assert (found.decision.personalised, found.decision.reason) == (True, None)
        report = recommender.report(found)
        assert report.epsilon == 2.0
        assert report.remaining is not None
        assert report.remaining.epsilon == left
    spent = [await answer(recommender) for _ in range(40)]
    assert {one.decision.reason for one in spent} == {BUDGET_SPENT}
    assert {one.outcome for one in spent} == {AnswerOutcome.DEGRADED}
    assert {one.charge for one in spent} == {FREE}
    # The candidates' features are not looked at any more: 40 alike have probability 2**-39.
    assert {one.decision.items for one in spent} == {("tea",), ("milk",)}


async def test_a_spent_client_may_be_refused() -> None:
    refusing = {"answers": {**PRIVATE["answers"], "on_exhausted": "refuse"}}
    recommender = built(node(privacy=refusing))
    knowing(recommender, f7=1.0)
    for _ in range(2):
        await answer(recommender)
    with pytest.raises(BudgetExhausted):
        await answer(recommender)


async def test_a_spent_client_gets_the_catalogue_as_anybody_does() -> None:
    recommender = built(node(**CROSSED, privacy=PRIVATE))
    knowing(recommender, f3=1.0, f12=50.0)  # opera in general; rock for client feature 1
    rock = Sparse([1], [1.0])
    for _ in range(2):
        await answer(recommender, candidates=None, features=rock)
    spent = await answer(recommender, candidates=None, features=rock)
    assert spent.decision.items == ("opera",)
    assert spent.decision.reason == BUDGET_SPENT


async def test_what_looks_at_nobody_is_free_and_not_personalised() -> None:
    recommender = built(node(**CROSSED, privacy=PRIVATE))
    knowing(recommender, f3=1.0)
    for _ in range(5):
        found = await answer(recommender, candidates=None, limit=9)
        assert found.decision.items == ("opera", "rock")
        assert (found.decision.personalised, found.charge) == (False, FREE)
        assert found.decision.reason == NO_FEATURES_GIVEN
    alone = await answer(recommender, candidates=["rock"], features=Sparse([0], [1.0]))
    assert (alone.decision.items, alone.charge) == (("rock",), FREE)
    assert (alone.decision.personalised, alone.decision.reason) == (False, NOTHING_TO_CHOOSE)
    nothing = await answer(recommender, candidates=None, exclude=["rock", "opera"])
    assert (nothing.decision.items, nothing.outcome) == ((), AnswerOutcome.EMPTY)


@pytest.mark.parametrize(
    "client", [Sparse([], []), Sparse([0], [1.0]), Sparse([0, 1, 2], [-9.0, 9.0, 0.5])]
)
async def test_price_reason_and_length_do_not_depend_on_features(client: Sparse) -> None:
    recommender = built(node(**CROSSED, privacy=PRIVATE))
    knowing(recommender, f3=1.0)
    question = recommender.question(ask(candidates=None, features=client))
    assert recommender.price(question).nano_epsilon == 2 * NANO
    (decision,) = recommender.decide(recommender.current.model, [question], [None], SeededNoise(0))
    assert (decision.personalised, decision.reason, len(decision.note)) == (True, None, 20)


async def test_a_list_pays_for_every_draw_but_one_that_has_no_choice() -> None:
    recommender = built(node(privacy=PRIVATE))
    knowing(recommender, f7=1.0)
    prices = [recommender.price(recommender.question(ask(limit=limit))) for limit in (1, 2, 9)]
    assert [price.nano_epsilon // NANO for price in prices] == [2, 2, 2]


async def test_nobody_is_told_which_answers_explored() -> None:
    """Half of 40 answers explore; a flag that followed them would show it but once in 2**39."""
    recommender = built(node(exploration={"rate": 0.5}), noise=SeededNoise(2))
    knowing(recommender, f7=1.0)
    answers = [await answer(recommender) for _ in range(40)]
    assert {one.decision.items for one in answers} == {("tea",), ("milk",)}
    assert {(one.decision.personalised, one.decision.reason) for one in answers} == {
        (True, RANKED_EXACTLY)
    }


# Feedback.


async def test_a_record_is_clipped_paid_for_and_added_once() -> None:
    recommender = built()
    answered = await answer(recommender, candidates=[PAIR[0]])
    decision = pending(recommender, answered)
    first = await give_feedback(recommender, decision, 1.0)
    again = await give_feedback(recommender, decision, 1.0)
    assert (first.duplicate, again.duplicate, first.learned) == (False, True, True)
    with pytest.raises(RewardConflict):
        await give_feedback(recommender, decision, 0.0)
    learned = await gathered(recommender)
    length = math.sqrt(1.25)
    assert learned[0] == 1
    assert np.flatnonzero(learned[1:]).tolist() == [7, 5_000]
    assert learned[1 + 7] == pytest.approx(1 / length, abs=1e-5)
    assert learned[1 + 5_000] == pytest.approx(0.5 / length, abs=1e-5)
    _, feedback = await recommender.budgets("ada")
    assert feedback.spent is not None
    assert feedback.spent.epsilon == pytest.approx(1.0, abs=1e-3)


async def test_records_between_two_releases_share_their_noise_and_cost_the_square() -> None:
    """With the defaults six records of a client fit, not 43; after a release they count anew."""
    recommender = built(node(features={"dimension": 100}))
    receipts = await teach(recommender, 8, client="ada", pair=SMALL)
    assert [one.learned for one in receipts] == [True] * 6 + [False] * 2
    (ledger,) = await recommender.store.ledgers([recommender.principal("ada")])
    each = recommender._record_price.nano_rho
    assert each == 24_355_970
    assert ledger.feedback.nano_rho == 36 * each
    assert (await gathered(recommender))[0] == 6
    await release(recommender, SeededNoise(0))
    (receipt,) = await teach(recommender, 1, client="ada", pair=SMALL)
    assert receipt.learned
    (ledger,) = await recommender.store.ledgers([recommender.principal("ada")])
    assert ledger.feedback.nano_rho == 37 * each


async def test_feedback_that_is_not_paid_for_is_not_learned() -> None:
    tight = {"feedback": {"budget": {"epsilon": 1.0, "delta": 1e-6}}}
    recommender = built(node(privacy=tight))
    receipts = [(await teach(recommender, 1, client="ada"))[0] for _ in range(3)]
    assert [one.learned for one in receipts] == [True, False, False]
    await teach(recommender, 1, client="bob")
    learned = await gathered(recommender)
    assert learned[0] == 2
    assert learned[1 + 7] == pytest.approx(2 / math.sqrt(1.25), abs=1e-4)


async def test_exact_feedback_is_booked_as_unlimited() -> None:
    recommender = built(node(privacy={"feedback": "exact"}))
    await teach(recommender, 1, client="ada")
    (ledger,) = await recommender.store.ledgers([recommender.principal("ada")])
    assert ledger.feedback == EXACT


async def test_a_record_costs_the_same_whatever_it_is() -> None:
    recommender = built()
    knowing(recommender, f7=5.0)
    lessons = []
    for item, reward in ((0, 1.0), (0, 0.0), (1, 1.0)):
        decision = pending(recommender, await answer(recommender, candidates=[PAIR[item]]))
        lessons.append(recommender.learn(decision, 0, reward))
    # The first is right by a margin and teaches nothing.
    amounts = [[len(pairs) for pairs in one.increments.values()] for one in lessons]
    assert amounts == [[1], [3], [3]]
    assert len({one.charge for one in lessons}) == 1


async def test_a_reward_between_0_and_1_teaches_less_and_any_other_nothing() -> None:
    recommender = built()
    decision = pending(recommender, await answer(recommender, candidates=[PAIR[0]]))
    with pytest.raises(InvalidArgument, match="reward"):
        await give_feedback(recommender, decision, 1.5)
    assert not (await gathered(recommender)).any()
    (liked, partly) = (recommender.learn(decision, 0, reward) for reward in (1.0, 0.75))
    assert liked.charge == partly.charge
    ((block, pairs),) = partly.increments.items()
    whole = np.array(liked.increments[block])
    assert pairs[0] == pytest.approx(whole[0]), "the count"
    assert np.array_equal(np.array(pairs)[1:], whole[1:] // [1, 2])


async def test_the_best_is_drawn_by_randomised_response_if_the_document_says_so() -> None:
    """400 answers: a share off by 0.13 is over five deviations."""
    answers = {"epsilon": 2.0, "budget": {"epsilon": 4.0, "delta": 0.0}, "draw": "best"}
    recommender = built(node(privacy={"answers": answers}), noise=SeededNoise(2))
    knowing(recommender, f7=0.01)
    price = recommender.price(recommender.question(ask()))
    assert (price.nano_epsilon, price.nano_rho) == (2 * NANO, 2 * NANO)
    found = [await answer(recommender, client=f"client {n}") for n in range(400)]
    share = sum(one.decision.items == ("tea",) for one in found) / 400
    assert share == pytest.approx(math.exp(2) / (math.exp(2) + 1), abs=0.13)
    assert "randomised response" in recommender.guarantee().answers.mechanism
    for weight in (0.01, 0.0):
        knowing(recommender, f7=weight)
        nothing = await answer(recommender, exclude=["tea", "milk"])
        assert nothing.decision.items == ()


async def test_feedback_names_one_of_several_candidates() -> None:
    recommender = built()
    many = [full(f"item {n}") for n in range(13)]
    decision = pending(recommender, await answer(recommender, candidates=many, limit=13))
    await give_feedback(recommender, decision, 1.0, "item 7")
    with pytest.raises(InvalidArgument, match="item"):
        await give_feedback(recommender, decision, 1.0, "other")
    with pytest.raises(InvalidArgument, match="must name the item"):
        await give_feedback(recommender, decision, 1.0)


async def test_feedback_on_a_catalogue_item_adds_the_products() -> None:
    recommender = built(node(**CROSSED))
    found = await answer(recommender, candidates=["opera"], features=Sparse([1], [2.0]))
    await give_feedback(recommender, pending(recommender, found), 0.0, "opera")
    # Client feature 1; item features 0 and 2; products 11 and 13; all with a minus, norm 1.
    expected = np.zeros(19)
    expected[[1, 3, 5, 11, 13]] = [-2, -1, -0.5, -2, -1]
    learned = await gathered(recommender)
    assert learned[1:] == pytest.approx(expected / np.linalg.norm(expected), abs=1e-5)


async def test_an_item_without_features_any_more_is_named() -> None:
    item = {"id": "tea", "features": {"indices": [7], "values": [1.0]}}
    recommender = built(node(items=[item]))
    decision = pending(recommender, await answer(recommender, candidates=None))
    changed = built(node(items=[{"id": "tea"}]), like=recommender)
    with pytest.raises(InvalidArgument, match="no features any more"):
        await give_feedback(changed, decision, 1.0)


# Releases.


async def test_what_is_released_is_the_sum_with_noise_and_ranks() -> None:
    """10,000 draws: the deviation within 5% but for chance 1e-11; none of them 0."""
    recommender = built(node(privacy=GENEROUS), noise=SeededNoise(7))
    await teach(recommender, 60)
    before = (await gathered(recommender))[1:]
    assert await release(recommender)
    own = recommender.current.model.own
    assert own.count == pytest.approx(60, abs=2)
    error = own.theta - before
    assert error.std() == pytest.approx(recommender.learner.scale, rel=0.05)
    assert (error != 0).all()
    found = await answer(recommender, limit=2)
    assert found.decision.items == ("tea", "milk")


async def test_records_are_released_once() -> None:
    recommender = built(node(features={"dimension": 100}, privacy={"feedback": "exact"}))
    await teach(recommender, 4, pair=SMALL)
    for _ in range(3):
        assert await release(recommender)
    theta = recommender.current.model.own.theta
    assert (theta[7], theta[8]) == pytest.approx((2.0, -2.0), abs=1e-5)
    assert recommender.current.number == 3


async def test_a_release_that_is_tried_again_is_made_from_the_same_sums() -> None:
    recommender = built(node(features={"dimension": 100}))
    await teach(recommender, 4, pair=SMALL)
    first = await gathered(recommender)
    await teach(recommender, 2, client="late {}", pair=SMALL)
    assert ((await gathered(recommender)) == first).all()
    assert await release(recommender)
    assert (await gathered(recommender))[0] == 2


async def test_two_who_release_at_once_cannot_both_store() -> None:
    recommender = built(node(features={"dimension": 100}))
    other = built(recommender.document, like=recommender)
    await teach(recommender, 2, pair=SMALL)
    assert await release(recommender)
    assert not await release(other)
    assert other.current.number == 0
    await load(other)
    assert (other.current.model.weights == recommender.current.model.weights).all()


async def test_releases_come_by_the_clock() -> None:
    recommender = built(node(releases={"seconds": 10}))
    created = recommender.stored.created
    assert not recommender.due(created + 9)
    assert recommender.due(created + 10)
    recommender.adopt(number=1, released_at=created + 100, model=recommender.current.model)
    assert not recommender.due(created + 199)
    assert recommender.due(created + 200)


async def test_answers_depend_on_the_model_and_not_on_sums() -> None:
    taught, untaught = built(noise=SeededNoise(3)), built(noise=SeededNoise(3))
    await teach(taught, 6)
    noises = SeededNoise(4), SeededNoise(4)
    for one, noise in zip((taught, untaught), noises, strict=True):
        knowing(one, f7=0.2, f8=0.1)
        one.noise = noise
    answers = [
        [(await answer(one, limit=2)).decision.items for _ in range(5)]
        for one in (taught, untaught)
    ]
    assert answers[0] == answers[1]


async def test_a_model_comes_back_and_another_one_is_refused() -> None:
    recommender = built()
    await teach(recommender, 6)
    await release(recommender, SeededNoise(1))
    model = recommender.current.model
    again = recommender.decode(recommender.encode(model))
    assert (again.weights == model.weights).all()
    for content in (b"", bytes(8), recommender.encode(model)[:-8]):
        with pytest.raises(ValueError, match="sums"):
            recommender.decode(content)


async def test_exact_feedback_releases_exact_sums() -> None:
    recommender = built(node(privacy={"feedback": "exact"}))
    await teach(recommender, 10)
    before = (await gathered(recommender))[1:]
    await release(recommender)
    assert recommender.current.model.own.theta == pytest.approx(before, rel=1e-6)
    found = await answer(recommender, limit=2)
    assert found.decision.items == ("tea", "milk")


async def test_removal_erases_sums_and_what_was_mixed() -> None:
    recommender = built(node(features={"dimension": 100}))
    await teach(recommender, 3, pair=SMALL)
    await recommender.store.save(key=recommender.key(b"mixture"), content=b"x")
    await recommender.erase()
    assert not (await gathered(recommender)).any()
    assert await recommender.store.load(keys=[recommender.key(b"mixture")]) == [None]


async def test_a_real_store_reaches_the_same_model_as_memory(embedded_url: str) -> None:
    """Records of many clients, on many shards, in two releases with the same seeded noise."""
    real = open_store(embedded_url, namespace="mirror-descent", timeout=20)
    await real.open()
    contents = []
    for store in (real, MemoryStore()):
        recommender = built(node(privacy=GENEROUS), store=store)
        for number in range(2):
            await teach(recommender, 30)
            assert await release(recommender, SeededNoise(number))
        contents.append(recommender.encode(recommender.current.model))
    await real.close()
    assert contents[0] == contents[1]
