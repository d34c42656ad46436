"""A recommender of this family: questions, answers, feedback, prices and erasure."""

import math
from typing import Any

import numpy as np
import pytest

from discreet.errors import BudgetExhausted, InvalidArgument, RewardConflict, UnknownRecommender
from discreet.families.fclub.by_observation import ObservationReading
from discreet.families.fclub.by_person import PersonReading
from discreet.families.fclub.features import FEATURE_STEPS, coordinates, decoded
from discreet.families.fclub.model import BUDGET_SPENT, EXACT_ANSWERS, NO_FEEDBACK
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.fclub.sums import SumsEncoding
from discreet.families.fclub.sync.global_server import GlobalReading, UpdatesFromServers
from discreet.families.observer import AnswerOutcome
from discreet.families.questions import Candidate, Sparse
from discreet.privacy.charges import UNLIMITED
from tests.families.fclub.servers import (
    BY_OBSERVATION,
    ITEMS,
    RIGHT,
    UNPROTECTED,
    Clock,
    answer,
    asked,
    built,
    give,
    local,
    merging,
    own_sums,
    pending,
    play,
    release,
)

pytestmark = pytest.mark.anyio

ENCODING = SumsEncoding(dimensions=2)
PRIVATE = {"answers": {"epsilon": 1.0, "personal_slots": 2, "budget": {"epsilon": 2.0, "delta": 0}}}


@pytest.mark.parametrize(
    ("recommender", "kind"),
    [
        (built(), PersonReading),
        (built(local(privacy=BY_OBSERVATION)), ObservationReading),
        (built(local(privacy=UNPROTECTED)), ObservationReading),
        (built(merging()), GlobalReading),
    ],
)
def test_the_document_says_how_models_are_released(
    recommender: ClusterRecommender, kind: type
) -> None:
    assert isinstance(recommender.reading, kind)
    assert recommender.guarantee().closed_loop is (kind is PersonReading)


async def test_a_client_learns_what_it_likes() -> None:
    """A uniform choice earns 0.5 in the mean; the best item 0.95.

    400 rounds at 0.7 or less would have a mean above 0.8 with probability below 1e-5.
    """
    shop = built()
    assert await play(shop, "ada", RIGHT, 400, np.random.default_rng(1)) > 0.8
    found = await answer(shop)
    assert (found.decision.items, found.decision.reason) == (("right",), EXACT_ANSWERS)
    assert found.decision.personalised
    assert (await answer(shop, limit=4)).decision.items[0] == "right"


async def test_a_stranger_gets_something_that_does_not_depend_on_them() -> None:
    shop = built()
    await play(shop, "ada", RIGHT, 50, np.random.default_rng(2))
    found = [(await answer(shop, f"stranger-{n}", limit=2)).decision for n in range(5)]
    assert {one.items for one in found} == {found[0].items}
    assert all((one.personalised, one.reason) == (False, NO_FEEDBACK) for one in found)


async def test_feedback_counts_once_and_exactly() -> None:
    shop = built()
    held = pending(shop, await answer(shop, candidates=("up",)))
    assert not (await give(shop, held, 1.0)).duplicate
    assert (await give(shop, held, 1.0)).duplicate
    with pytest.raises(RewardConflict):
        await give(shop, held, 0.0)
    x = decoded(coordinates((0.0, 0.9), dimensions=2, scale=False, field="f"))
    expected = ENCODING.observation(x=x, reward=1.0).tolist()
    assert await own_sums(shop, "ada") == expected


async def test_feedback_for_one_of_several() -> None:
    shop = built()
    found = await answer(shop, limit=3)
    held = pending(shop, found)
    with pytest.raises(InvalidArgument, match="must name the item"):
        await give(shop, held, 1.0)
    with pytest.raises(InvalidArgument, match="not one of the items"):
        await give(shop, held, 1.0, "elsewhere")
    for item in found.decision.items:
        assert not (await give(shop, held, 0.5, item)).duplicate
        assert (await give(shop, held, 0.5, item)).duplicate
    assert (await own_sums(shop, "ada"))[0] == 3


async def test_feedback_goes_to_what_was_shown_though_features_have_changed() -> None:
    shop = built()
    held = pending(shop, await answer(shop, candidates=("up",)))
    moved = [{"id": "up", "features": [0.5, 0.0]}]
    changed = built(local(items=moved), like=shop)
    await give(changed, held, 1.0)
    assert await own_sums(changed, "ada") == await own_sums(shop, "ada")
    gram = ENCODING.sums(await own_sums(shop, "ada")).gram
    assert np.allclose(gram, [[0.0, 0.0], [0.0, 0.81]], atol=2 / FEATURE_STEPS)


async def test_candidates_may_bring_their_features() -> None:
    shop = built()
    await play(shop, "ada", RIGHT, 200, np.random.default_rng(3))
    good, bad = Candidate("new/good", (0.95, 0.1)), Candidate("new/bad", (-0.95, 0.1))
    found = await answer(shop, candidates=(bad, good, "left", "gone"), limit=4)
    assert found.decision.items[0] == "new/good"
    assert set(found.decision.items) == {"new/good", "new/bad", "left"}
    before = (await own_sums(shop, "ada"))[0]
    await give(shop, pending(shop, found), 1.0, "new/good")
    assert (await own_sums(shop, "ada"))[0] == before + 1


async def test_excluded_and_hidden_items_are_left_out() -> None:
    items = [item | {"hidden": item["id"] == "up"} for item in ITEMS]
    shop = built(local(items=items))
    assert set((await answer(shop, limit=10, exclude=("left",))).decision.items) == {
        "right",
        "down",
    }
    assert (await answer(shop, candidates=("up", "down"), limit=2)).decision.items == ("down",)
    nothing = await answer(shop, candidates=("down",), exclude=("down",))
    assert (nothing.decision.items, nothing.outcome) == ((), AnswerOutcome.EMPTY)
    with pytest.raises(InvalidArgument, match="empty"):
        await give(shop, pending(shop, nothing), 1.0)


@pytest.mark.parametrize(
    ("fields", "culprit"),
    [
        ({"context": (0.5,)}, "context"),
        ({"features": (0.5, 0.5)}, "features"),
        ({"candidates": ("gone",)}, "candidates"),
        ({"candidates": (Candidate("x", (0.5,)),)}, "candidates[0].features"),
        ({"candidates": ("up", Candidate("x", (0.8, 0.8)))}, "candidates[1].features"),
        ({"candidates": (Candidate("x", Sparse((0,), (1.0,))),)}, "candidates[0].features"),
        ({"candidates": (Candidate("x", (math.inf, 0.0)),)}, "candidates[0].features"),
        ({"limit": 10_000}, "limit"),
    ],
)
def test_questions_that_cannot_be_asked_are_named(fields: dict[str, Any], culprit: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        built().question(asked(**fields))
    assert caught.value.argument == culprit


@pytest.mark.parametrize(
    "item",
    [
        {"id": "a"},
        {"id": "a", "features": [1.0]},
        {"id": "a", "features": [1.0, 0.1]},
        {"id": "a", "features": {"indices": [0], "values": [1.0]}},
    ],
)
def test_items_need_features_that_can_be_used(item: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"items\[4\]\.features: "):
        local(items=[*ITEMS, item])


async def test_long_vectors_are_scaled_where_the_document_says_so() -> None:
    shop = built(local(norms="scale"))
    found = await answer(shop, candidates=(Candidate("x", (3.0, -4.0)),))
    await give(shop, pending(shop, found), 1.0)
    gram = ENCODING.sums(await own_sums(shop, "ada")).gram
    assert np.allclose(gram, [[0.36, -0.48], [-0.48, 0.64]], atol=2 / FEATURE_STEPS)


def test_a_global_server_answers_no_client() -> None:
    with pytest.raises(InvalidArgument, match="ask a local server"):
        built(merging()).question(asked())


async def test_exact_answers_are_booked_as_unlimited_and_say_so() -> None:
    shop = built()
    found = await answer(shop)
    assert shop.report(found).epsilon is None
    assert found.outcome is AnswerOutcome.UNPROTECTED
    (ledger,) = await shop.store.ledgers([shop.principal("ada")])
    assert ledger.answers.nano_epsilon == UNLIMITED
    # One item is no choice: the answer tells nothing, and nothing is booked.
    only = await answer(shop, "bob", candidates=("up",))
    assert shop.price(shop.question(asked(candidates=("up",)))) == only.charge
    (ledger,) = await shop.store.ledgers([shop.principal("bob")])
    assert ledger.answers.nano_epsilon == 0


async def test_private_answers_cost_epsilon_an_item_and_end_with_the_budget() -> None:
    shop = built(local(privacy=PRIVATE))
    first = await answer(shop, limit=2)
    assert shop.report(first).epsilon == pytest.approx(2.0)
    assert first.outcome is AnswerOutcome.PERSONALISED
    spent = await answer(shop)
    assert spent.outcome is AnswerOutcome.DEGRADED
    assert (spent.decision.personalised, spent.decision.reason) == (False, BUDGET_SPENT)
    refusing = built(local(privacy={"answers": PRIVATE["answers"] | {"on_exhausted": "refuse"}}))
    await answer(refusing, limit=2)
    with pytest.raises(BudgetExhausted):
        await answer(refusing)


@pytest.mark.parametrize("privacy", [UNPROTECTED, BY_OBSERVATION])
async def test_feedback_that_serves_others_exactly_is_booked_as_unlimited(
    privacy: dict[str, Any],
) -> None:
    shop = built(local(privacy=privacy))
    await play(shop, "ada", RIGHT, 1, np.random.default_rng(4))
    (ledger,) = await shop.store.ledgers([shop.principal("ada")])
    assert ledger.feedback.nano_epsilon == UNLIMITED
    assert (await shop.budgets("ada"))[1].epsilon is None


async def test_prices_do_not_depend_on_what_a_client_did() -> None:
    shop = built(local(privacy=PRIVATE))
    await play(shop, "ada", RIGHT, 1, np.random.default_rng(5))
    assert shop.price(shop.question(asked("ada"))) == shop.price(shop.question(asked("new")))


async def test_erasing_a_client_leaves_the_ledger_and_nothing_else() -> None:
    shop = built()
    await play(shop, "ada", RIGHT, 3, np.random.default_rng(6))
    shop.asked = False
    assert await shop.forget("ada") == 1
    assert await shop.store.owners(generation=shop.generation) == []
    assert await shop.forget("ada") == 0
    assert shop.asked, "exact clusters lose the client at the next release, so there must be one"
    (ledger,) = await shop.store.ledgers([shop.principal("ada")])
    assert ledger.answers.nano_epsilon == UNLIMITED
    assert await built(merging()).forget("ada") == 0


async def test_workers_share_what_clients_taught() -> None:
    one = built()
    other = built(like=one)
    rng = np.random.default_rng(7)
    for _ in range(10):
        await play(one, "ada", np.array([0.0, 0.5]), 10, rng)
        await play(other, "ada", np.array([0.0, 0.5]), 10, rng)
    assert (await own_sums(other, "ada"))[0] == 200
    assert (await answer(one)).decision.items == (await answer(other)).decision.items == ("up",)


async def test_erasing_leaves_no_sums_and_no_messages() -> None:
    shop = built(local(privacy=BY_OBSERVATION))
    await play(shop, "ada", RIGHT, 5, np.random.default_rng(8))
    await shop.forget("bob")
    await shop.store.save(key=shop.key(b"merged"), content=b"{}")
    await shop.store.save(key=shop.key(b"delivered"), content=bytes(8))
    await release(shop)
    await shop.erase()
    assert await shop.store.owners(generation=shop.generation) == []
    assert await shop.store.load(keys=[shop.key(b"merged"), shop.key(b"delivered")]) == [None, None]
    closed = await shop.store.number_of(roster=shop.key(b"closed"), names=[shop.principal("bob")])
    assert list(closed) == [None]


def test_releases_follow_the_clock_and_merging_does_not_slow_down() -> None:
    clock = Clock()
    releases = {"seconds": 2.0, "growth": 0.5, "longest": 100.0}
    shop = built(local(releases=releases), clock=clock)
    hub = built(merging(releases=releases), clock=clock)
    start = clock.now
    for one in (shop, hub):
        assert not one.due(start + 1.9)
        assert one.due(start + 2.0)
        one.adopt(number=1, released_at=start + 40.0, model=one.current.model)
    assert (shop.due(start + 45.0), hub.due(start + 45.0)) == (False, True)
    assert shop.due(start + 60.0)


def test_the_global_servers_address_is_known_by_its_name() -> None:
    assert built().address_of("hub") == "http://hub:8000"
    assert built().address_of("other") is None
    assert built(local(global_server=None)).address_of("hub") is None


def test_every_role_has_the_part_that_routes_look_for() -> None:
    assert built().part(UpdatesFromServers) is not built(merging()).part(UpdatesFromServers)
    with pytest.raises(UnknownRecommender):
        built().part(int)
