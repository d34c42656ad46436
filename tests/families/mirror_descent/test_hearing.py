"""Feedback to a node: clipped, paid for, added once."""

import math
from dataclasses import replace

import numpy as np
import pytest

from discreet.families.questions import Feedback
from discreet.families.documents import ItemDocument
from discreet.decisions.feedback import give_feedback
from discreet.families.mirror_descent.hearing import HEAD
from discreet.decisions.recommend import recommend
from discreet.decisions.runtime import Runtime
from discreet.decisions.tokens import open_decision
from discreet.errors import InvalidArgument, RewardConflict
from tests.families.mirror_descent.scenes import (
    DIMENSION,
    PAIR,
    ask,
    found,
    node,
    sums,
    teach,
)

pytestmark = pytest.mark.anyio


async def test_a_record_is_clipped_paid_for_and_added_once(feed: Runtime) -> None:
    answer = await recommend(feed, ask(candidates=[PAIR[0]]))
    token = answer.recommendation_id
    assert b"ada" not in open_decision(feed.sealer, token).note
    first = await give_feedback(feed, Feedback(reward=1.0, recommendation_id=token))
    again = await give_feedback(feed, Feedback(reward=1.0, recommendation_id=token))
    assert (first.duplicate, again.duplicate) == (False, True)
    with pytest.raises(RewardConflict):
        await give_feedback(feed, Feedback(reward=0.0, recommendation_id=token))
    recommender = await found(feed)
    learned = await sums(feed, recommender)
    length = math.sqrt(1.25)
    assert np.flatnonzero(learned).tolist() == [7, 5_000]
    assert learned[7] == pytest.approx(1 / length, abs=1e-5)
    assert learned[5_000] == pytest.approx(0.5 / length, abs=1e-5)
    assert recommender.arrivals == 1
    standing = await feed.families["mirror-descent"].standing(feed, recommender, "ada")
    assert standing.spent is not None
    assert standing.spent.epsilon == pytest.approx(1.0, abs=1e-3)


async def test_rewards_are_likes_or_not(feed: Runtime) -> None:
    answer = await recommend(feed, ask())
    with pytest.raises(InvalidArgument, match="reward"):
        await give_feedback(feed, Feedback(reward=0.5, recommendation_id=answer.recommendation_id))
    assert not (await sums(feed, await found(feed))).any()


async def test_a_client_out_of_budget_is_answered_and_not_learned_from(runtime: Runtime) -> None:
    await runtime.registry.put("feed", node(privacy={"budget": {"epsilon": 1.0, "delta": 1e-6}}))
    for _ in range(3):
        await teach(runtime, 1, client="ada")
    await teach(runtime, 1, client="bob")
    recommender = await found(runtime)
    (head,) = await runtime.store.read(addresses=[recommender.address(HEAD)])
    assert head.tolist() == [2, 2]
    learned = await sums(runtime, recommender)
    assert learned[7] == pytest.approx(2 / math.sqrt(1.25), abs=1e-4)
    answer = await recommend(runtime, ask())
    assert len(answer.items) == 1
    assert answer.privacy.remaining is not None
    assert answer.privacy.remaining.epsilon < 0.01


async def test_a_record_that_is_right_by_a_margin_adds_nothing_and_pays(feed: Runtime) -> None:
    recommender = await found(feed)
    weights = np.zeros(DIMENSION, dtype=np.float32)
    weights[7] = 5.0
    recommender.model = replace(recommender.model, weights=weights)
    await teach(feed, 1, client="ada")
    assert not (await sums(feed, recommender)).any()
    standing = await feed.families["mirror-descent"].standing(feed, recommender, "ada")
    assert standing.spent is not None
    assert standing.spent.epsilon > 0.9


async def test_a_contradiction_adds_nothing_even_where_the_first_word_added_nothing(
    feed: Runtime,
) -> None:
    recommender = await found(feed)
    weights = np.zeros(DIMENSION, dtype=np.float32)
    weights[7] = 5.0
    recommender.model = replace(recommender.model, weights=weights)
    token = (await recommend(feed, ask(candidates=[PAIR[0]]))).recommendation_id
    await give_feedback(feed, Feedback(reward=1.0, recommendation_id=token))
    with pytest.raises(RewardConflict):
        await give_feedback(feed, Feedback(reward=0.0, recommendation_id=token))
    assert not (await sums(feed, recommender)).any()


async def test_an_item_that_changed_since_adds_nothing_to_a_record_that_was_paid_for(
    runtime: Runtime,
) -> None:
    item = {"id": "tea", "features": {"indices": [7], "values": [1.0]}}
    await runtime.registry.put("feed", node(items=[item]))
    token = (await recommend(runtime, ask(candidates=None))).recommendation_id
    await give_feedback(runtime, Feedback(reward=1.0, recommendation_id=token))
    moved = ItemDocument.model_validate(
        {"id": "tea", "features": {"indices": [9_000], "values": [1.0]}}
    )
    await runtime.registry.add_items("feed", [moved])
    with pytest.raises(RewardConflict):
        await give_feedback(runtime, Feedback(reward=1.0, recommendation_id=token))
    learned = await sums(runtime, await found(runtime))
    assert np.flatnonzero(learned).tolist() == [7]
