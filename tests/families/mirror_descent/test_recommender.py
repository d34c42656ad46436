"""Catalogues whose features are multiplied with the client's."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet.families.questions import Feedback, Sparse
from discreet.decisions.feedback import give_feedback
from discreet.decisions.recommend import recommend
from discreet.decisions.runtime import Runtime
from discreet.errors import InvalidArgument
from tests.families.mirror_descent.scenes import ask, found, node

pytestmark = pytest.mark.anyio


CROSSED = {
    "features": {"clients": 3, "items": 4},
    "items": [
        {"id": "opera", "features": {"indices": [0, 2], "values": [1.0, 0.5]}},
        {"id": "rock", "features": {"indices": [1], "values": [1.0]}},
        {"id": "unknown"},
        {"id": "secret", "hidden": True, "features": {"indices": [1], "values": [1.0]}},
    ],
}


async def test_items_are_crossed_with_the_client(runtime: Runtime) -> None:
    await runtime.registry.put("feed", node(**CROSSED))
    recommender = await found(runtime)
    weights = np.zeros(3 + 4 + 12, dtype=np.float32)
    weights[7 + 0 * 4 + 0] = 1.0  # client feature 0 likes item feature 0
    weights[7 + 1 * 4 + 1] = 1.0  # client feature 1 likes item feature 1
    recommender.model = replace(recommender.model, weights=weights)

    async def best(feature: int, **changes: Any) -> tuple[str, ...]:
        features = Sparse([feature], [1.0])
        answer = await recommend(
            runtime, ask(candidates=None, features=features, limit=9, **changes)
        )
        assert answer.personalised
        return answer.items

    assert await best(0) == ("opera", "rock")
    assert await best(1) == ("rock", "opera")
    assert await best(1, exclude=["rock"]) == ("opera",)
    nobody = await recommend(runtime, ask(candidates=["rock"]))
    assert nobody.items == ("rock",)
    assert not nobody.personalised
    with pytest.raises(InvalidArgument, match="from 0 to 2"):
        await best(3)


async def test_scores_without_crossing_are_those_of_crossed_rows(runtime: Runtime) -> None:
    await runtime.registry.put("feed", node(**CROSSED))
    recommender = await found(runtime)
    rng = np.random.default_rng(0)
    recommender.model = replace(recommender.model, weights=rng.normal(size=19).astype(np.float32))
    features = Sparse([0, 2], [0.3, -1.5])
    question = recommender.question(ask(candidates=None, features=features))
    rows = [
        recommender.model.margins(recommender.record(question.client, question.rows.take([place])))[
            0
        ]
        for place in range(len(question))
    ]
    assert recommender.scores(question) == pytest.approx(rows, abs=1e-4)


async def test_feedback_on_a_catalogue_item_adds_the_products(runtime: Runtime) -> None:
    await runtime.registry.put("feed", node(**CROSSED))
    answer = await recommend(runtime, ask(candidates=["opera"], features=Sparse([1], [2.0])))
    await give_feedback(runtime, Feedback(reward=0.0, recommendation_id=answer.recommendation_id))
    recommender = await found(runtime)
    (vector,) = await runtime.store.read(addresses=[recommender.address(0)])
    learned = vector[1:] / 2**20
    # Client feature 1; item features 0 and 2; products 11 and 13; all with a minus, norm 1.
    expected = np.zeros(19)
    expected[[1, 3, 5, 11, 13]] = [-2, -1, -0.5, -2, -1]
    assert learned == pytest.approx((expected / np.linalg.norm(expected))[: len(learned)], abs=1e-5)


async def test_documents_that_cannot_be_served_are_refused(runtime: Runtime) -> None:
    for changes in (
        {"features": {"dimension": 5, "clients": 2}},
        {"features": {"clients": 2}},
        {"features": {"clients": 10_000, "items": 10_000}},
        {"features": {"dimension": 2_000_000}},
        {"privacy": {"budget": {"epsilon": 1.0}}},
        {"items": [{"id": "a", "features": [1.0, 2.0]}]},
        {"neighbours": [{"name": "b", "url": "http://b"}] * 2},
    ):
        with pytest.raises(ValueError, match=r"."):
            node(**changes)
    wrong = {"id": "a", "features": {"indices": [10_000], "values": [1.0]}}
    with pytest.raises(InvalidArgument, match="9999"):
        await runtime.registry.put("feed", node(items=[wrong]))
    assert "feed" not in await runtime.registry.names()


async def test_nobody_is_told_which_answers_explored(runtime: Runtime) -> None:
    """Half of 40 answers explore; a flag that followed them would show it but once in 2**39."""
    await runtime.registry.put("feed", node(**CROSSED, exploration={"rate": 0.5}))
    recommender = await found(runtime)
    weights = np.ones(3 + 4 + 12, dtype=np.float32)
    recommender.model = replace(recommender.model, weights=weights)
    about = ask(candidates=None, features=Sparse([0], [1.0]), limit=9)
    assert {(await recommend(runtime, about)).personalised for _ in range(40)} == {True}


async def test_an_empty_answer_is_nobodys(runtime: Runtime) -> None:
    await runtime.registry.put("feed", node(**CROSSED))
    recommender = await found(runtime)
    weights = np.ones(3 + 4 + 12, dtype=np.float32)
    recommender.model = replace(recommender.model, weights=weights)
    about = ask(candidates=None, features=Sparse([0], [1.0]), exclude=["rock", "opera"])
    answer = await recommend(runtime, about)
    assert (answer.items, answer.personalised) == ((), False)
