"""Answers and feedback of a local server."""

import math
import time

import numpy as np
import pytest
from discreet.families.fclub.vectors import STEPS, coordinates, decoded, filled
from pydantic import ValidationError

from discreet.decisions.clients import budget_of, erase_client
from discreet.decisions.feedback import give_feedback
from discreet.errors import InvalidArgument, RewardConflict
from discreet.families.fclub.document import FederatedClustersDocument
from discreet.families.questions import Candidate, Feedback, Sparse
from discreet.privacy.accountants import Budget
from tests.families.fclub.servers import GLOBAL, LOCAL, NAME, Server

pytestmark = pytest.mark.anyio


async def tell(server: Server, token: str, reward: float, item: str | None = None) -> bool:
    feedback = Feedback(reward=reward, recommendation_id=token, item=item)
    return (await give_feedback(server.runtime, feedback)).duplicate


async def address_of(server: Server, client: str) -> bytes:
    return (await server.found()).user(server.runtime.principals.client(NAME, client))


async def sums(server: Server, client: str) -> list[int]:
    recommender = await server.found()
    (found,) = await server.store.read(addresses=[await address_of(server, client)])
    return filled(found, recommender.privatizer.fields).tolist() if len(found) else []


async def test_a_client_learns_what_it_likes(shop: Server) -> None:
    """A uniform choice earns 0.5 in the mean; the best item 0.95.

    400 rounds at 0.7 or less would have a mean above 0.8 with probability below 1e-5.
    """
    rng = np.random.default_rng(1)
    assert await shop.play("ada", np.array([0.5, 0.0]), 400, rng) > 0.8
    answer = await shop.ask("ada")
    assert answer.items == ("right",)
    assert answer.personalised
    assert (await shop.ask("ada", limit=4)).items[0] == "right"


async def test_a_stranger_gets_something_that_does_not_depend_on_them(shop: Server) -> None:
    answers = [await shop.ask(f"stranger-{n}", limit=2) for n in range(5)]
    assert len({answer.items for answer in answers}) == 1
    assert not any(answer.personalised for answer in answers)


async def test_feedback_counts_once_and_exactly(shop: Server) -> None:
    answer = await shop.ask("ada", candidates=("up",))
    assert await tell(shop, answer.recommendation_id, 1.0) is False
    assert await tell(shop, answer.recommendation_id, 1.0) is True
    with pytest.raises(RewardConflict):
        await tell(shop, answer.recommendation_id, 0.0)
    recommender = await shop.found()
    x = decoded(coordinates((0.0, 0.9), dimensions=2, scale=False, field="f"))
    expected = recommender.privatizer.observation(x=x, reward=1.0)
    assert await sums(shop, "ada") == expected.tolist()


async def test_feedback_for_one_of_several(shop: Server) -> None:
    answer = await shop.ask("ada", limit=3)
    token = answer.recommendation_id
    with pytest.raises(InvalidArgument, match="must name the item"):
        await tell(shop, token, 1.0)
    with pytest.raises(InvalidArgument, match="not one of the items"):
        await tell(shop, token, 1.0, "elsewhere")
    for item in answer.items:
        assert await tell(shop, token, 0.5, item) is False
        assert await tell(shop, token, 0.5, item) is True
    assert (await sums(shop, "ada"))[0] == 3


async def test_candidates_may_bring_their_features(shop: Server) -> None:
    rng = np.random.default_rng(2)
    await shop.play("ada", np.array([0.5, 0.0]), 200, rng)
    good = Candidate("new/good", (0.95, 0.1))
    bad = Candidate("new/bad", (-0.95, 0.1))
    answer = await shop.ask("ada", candidates=(bad, good, "left", "gone"), limit=4)
    assert answer.items[0] == "new/good"
    assert set(answer.items) == {"new/good", "new/bad", "left"}
    before = (await sums(shop, "ada"))[0]
    assert await tell(shop, answer.recommendation_id, 1.0, "new/good") is False
    assert (await sums(shop, "ada"))[0] == before + 1


async def test_excluded_and_hidden_items_are_left_out(shop: Server) -> None:
    await shop.runtime.registry.hide_item(NAME, "up", True)
    answer = await shop.ask("ada", limit=10, exclude=("left",))
    assert set(answer.items) == {"right", "down"}
    assert (await shop.ask("ada", candidates=("up", "down"), limit=2)).items == ("down",)
    nothing = await shop.ask("ada", candidates=("down",), exclude=("down",))
    assert nothing.items == ()
    with pytest.raises(InvalidArgument, match="empty"):
        await tell(shop, nothing.recommendation_id, 1.0)


@pytest.mark.parametrize(
    ("fields", "culprit"),
    [
        ({"context": (0.5,)}, "context"),
        ({"features": (0.5, 0.5)}, "features"),
        ({"candidates": ("gone",)}, "candidates"),
        ({"candidates": (Candidate("x", (0.5,)),)}, "candidates.0.features"),
        ({"candidates": ("up", Candidate("x", (0.8, 0.8)))}, "candidates.1.features"),
        ({"candidates": (Candidate("x", Sparse((0,), (1.0,))),)}, "candidates.0.features"),
        ({"candidates": (Candidate("x", (math.inf, 0.0)),)}, "candidates.0.features"),
        ({"limit": 10_000}, "limit"),
    ],
)
async def test_questions_that_cannot_be_asked_are_named(
    shop: Server, fields: dict[str, object], culprit: str
) -> None:
    for event in (None, "an-event"):
        with pytest.raises(InvalidArgument) as caught:
            await shop.ask("ada", event_id=event, **fields)
        assert caught.value.argument == culprit
    assert await sums(shop, "ada") == []


async def test_long_vectors_are_scaled_where_the_document_says_so(shop: Server) -> None:
    await shop.put(**LOCAL | {"norms": "scale"})
    answer = await shop.ask("ada", candidates=(Candidate("x", (3.0, -4.0)),))
    await tell(shop, answer.recommendation_id, 1.0)
    found = (await shop.found()).privatizer.sums(await sums(shop, "ada"))
    assert np.allclose(found.gram, [[0.36, -0.48], [-0.48, 0.64]], atol=2 / STEPS)


@pytest.mark.parametrize(
    ("changes", "culprit"),
    [
        ({"items": ["plain"]}, "items.0.features"),
        ({"items": [{"id": "a", "features": [1.0]}]}, "items.0.features"),
        ({"items": [{"id": "a", "features": [1.0, 0.1]}]}, "items.0.features"),
        ({"items": [{"id": "a", "features": {"indices": [0], "values": [1.0]}}]}, "items.0"),
    ],
)
async def test_items_need_features_that_can_be_used(
    shop: Server, changes: dict[str, object], culprit: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await shop.put(**LOCAL | changes)
    assert caught.value.argument.startswith(culprit)
    assert (await shop.ask("ada", limit=4)).items


@pytest.mark.parametrize(
    "fields",
    [
        GLOBAL | {"items": [{"id": "a", "features": [0.1, 0.1]}]},
        GLOBAL | {"norms": "scale"},
        GLOBAL | {"global_server": {"name": "x", "url": "http://x"}},
        GLOBAL | {"sharing": {"epsilon": 2.0}},
        LOCAL | {"members": ["a"]},
        LOCAL | {"dimensions": 65},
        LOCAL | {"sharing": {"delta": 0.5}},
        LOCAL | {"role": "both"},
    ],
)
def test_a_document_has_one_role(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FederatedClustersDocument.model_validate({"algorithm": "fclub", **fields})


async def test_what_was_learned_cannot_change_its_shape(shop: Server) -> None:
    for changes in (
        {"dimensions": 3, "items": []},
        {"learning": {"baseline": 0.1}},
        {"role": "global", "items": [], "global_server": None},
    ):
        with pytest.raises(InvalidArgument, match="cannot change"):
            await shop.put(**LOCAL | changes)


async def test_a_global_server_answers_no_client(hub: Server) -> None:
    with pytest.raises(InvalidArgument, match="ask a local server"):
        await hub.ask("ada")


async def test_the_answer_says_what_an_observation_costs(shop: Server) -> None:
    privacy = (await shop.ask("ada")).privacy
    assert (privacy.epsilon, privacy.spent) == (1.0, Budget(1.0, 1e-6))
    standing = await budget_of(shop.runtime, recommender=NAME, client="ada")
    assert standing == privacy
    alone = {key: value for key, value in LOCAL.items() if key != "global_server"}
    await shop.put(**alone)
    # Not free: what is observed now is in the first letter to whoever is named later.
    assert (await shop.ask("ada")).privacy.epsilon == 1.0
    await shop.put(**LOCAL | {"sharing": {"mode": "none"}})
    assert (await shop.ask("ada")).privacy.epsilon is None


async def test_a_retry_gets_the_same_answer_and_erasing_finds_it(shop: Server) -> None:
    first = await shop.ask("ada", event_id="e1")
    assert await shop.ask("ada", event_id="e1") == first
    await tell(shop, first.recommendation_id, 1.0)
    erased = await erase_client(shop.runtime, client="ada")
    assert (erased.events, erased.records) == (1, 1)
    assert await sums(shop, "ada") == []
    assert (await erase_client(shop.runtime, client="ada")).records == 0


async def test_users_alike_share_what_they_taught(shop: Server) -> None:
    """After others of her kind have taught, a newcomer's first few rounds suffice."""
    rng = np.random.default_rng(3)
    for number in range(6):
        theta = np.array([0.5, 0.0]) if number % 2 else np.array([-0.5, 0.0])
        await shop.play(f"user-{number}", theta, 150, rng)
    await shop.refresh()
    belief = (await shop.found()).belief
    assert belief is not None
    labels = [
        belief.outlook.labels[belief.places[await address_of(shop, f"user-{n}")]] for n in range(6)
    ]
    assert labels[0] == labels[2] == labels[4]
    assert labels[1] == labels[3] == labels[5]
    assert labels[0] != labels[1]
    # What others tell about a user is the cluster's knowledge without her own.
    place = belief.places[await address_of(shop, "user-0")]
    own = (await shop.found()).privatizer.sums(await sums(shop, "user-0"))
    known = (await shop.found()).learner.knowledge(grams=own.gram, moments=own.moment)
    total = belief.outlook.total[labels[0]]
    assert np.allclose(belief.outlook.others[place].matrix, total.matrix - known.matrix)
    # A newcomer who behaves like the first kind is taken to be one of them at once.
    await shop.play("newcomer", np.array([-0.5, 0.0]), 25, rng)
    assert (await shop.ask("newcomer")).items == ("left",)


async def test_another_worker_learns_the_same(shop: Server) -> None:
    other = await Server(shop.store, shop.peers).open()
    rng = np.random.default_rng(4)
    for _ in range(10):
        await shop.play("ada", np.array([0.0, 0.5]), 10, rng)
        await other.play("ada", np.array([0.0, 0.5]), 10, rng)
    assert (await sums(other, "ada"))[0] == 200
    assert (await other.ask("ada")).items == (await shop.ask("ada")).items == ("up",)


async def test_a_long_look_is_taken_aside_and_not_too_often(
    shop: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.families.fclub.family.QUICK_LOOK", 0.0)
    recommender = await shop.found()
    await shop.play("ada", np.array([0.0, 0.5]), 5, np.random.default_rng(5))
    before = recommender.belief
    shop.family._looked[recommender.generation] = (time.monotonic() - 60.0, 1.0)
    await shop.refresh()
    assert recommender.belief is before, "it was awaited"
    assert recommender.touched
    for task in list(shop.family._looking.values()):
        await task
    assert recommender.belief is not before
    assert recommender.belief is not None
    assert len(recommender.belief.places) == 1
    shop.family._looked[recommender.generation] = (time.monotonic(), 60.0)
    await shop.refresh()
    assert not shop.family._looking
    # A changed document starts from what was believed before.
    await shop.put(**LOCAL | {"norms": "scale"})
    changed = await shop.found()
    assert changed is not recommender
    assert changed.belief is recommender.belief
