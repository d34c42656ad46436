"""Questions to a node: what is refused, what is ranked, what a token carries."""

import math
from typing import Any

import pytest

from discreet.families.questions import Candidate, Feedback, Sparse
from discreet.decisions.clients import erase_client
from discreet.decisions.feedback import give_feedback
from discreet.decisions.recommend import recommend
from discreet.decisions.runtime import Runtime
from discreet.errors import InvalidArgument
from discreet.privacy.accountants import Budget
from tests.families.mirror_descent.scenes import (
    PAIR,
    ask,
    candidate,
)

pytestmark = pytest.mark.anyio


async def test_without_a_model_the_order_is_random_and_free(feed: Runtime) -> None:
    """40 answers of one order have probability 2**-39."""
    answers = [await recommend(feed, ask(limit=2)) for _ in range(40)]
    assert {answer.items for answer in answers} == {("tea", "milk"), ("milk", "tea")}
    assert not answers[0].personalised
    assert answers[0].privacy.epsilon == 0
    assert answers[0].privacy.spent == Budget(0.0, 1e-6) or answers[0].privacy.spent.epsilon == 0


@pytest.mark.parametrize(
    ("changes", "argument", "reason"),
    [
        ({"candidates": [candidate("x", (10_000, 1.0))]}, "candidates.0.features.indices", "9999"),
        ({"candidates": [candidate("x", (5, 1.0), (5, 1.0))]}, "candidates.0.features", "repeat"),
        ({"candidates": [candidate("x", (5, 1.0), (3, 1.0))]}, "candidates.0.features", "ascend"),
        ({"candidates": [candidate("x", (5, math.nan))]}, "candidates.0.features", "finite"),
        (
            {"candidates": [candidate("x", *((n, 1.0) for n in range(101)))]},
            "candidates.0.features",
            "at most 100",
        ),
        ({"candidates": [*PAIR, PAIR[0]]}, "candidates", "distinct"),
        ({"candidates": ["tea", PAIR[0]]}, "candidates", "all have features"),
        ({"candidates": [Candidate("x", (1.0, 2.0))]}, "candidates.0.features", "indices"),
        ({"features": Sparse([1], [1.0])}, "features", "no features of clients"),
        ({"context": [0.5]}, "context", "not used"),
        (
            {
                "candidates": [
                    candidate(str(n), *((f, 1.0) for f in range(100))) for n in range(20)
                ],
                "limit": 20,
            },
            "limit",
            "smaller",
        ),
    ],
)
async def test_what_is_wrong_with_a_question_is_named(
    feed: Runtime, changes: dict[str, Any], argument: str, reason: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await recommend(feed, ask(**changes))
    assert caught.value.argument.startswith(argument)
    assert reason in caught.value.reason


async def test_a_long_list_fits_its_token(feed: Runtime) -> None:
    many = [candidate(f"item {n}", *((f, 1.0) for f in range(100))) for n in range(13)]
    answer = await recommend(feed, ask(candidates=many, limit=13))
    assert len(answer.recommendation_id) < 16_384
    await give_feedback(
        feed,
        Feedback(reward=1.0, recommendation_id=answer.recommendation_id, item="item 7"),
    )
    with pytest.raises(InvalidArgument, match="item"):
        await give_feedback(
            feed, Feedback(reward=1.0, recommendation_id=answer.recommendation_id, item="other")
        )
    with pytest.raises(InvalidArgument, match="must name the item"):
        await give_feedback(feed, Feedback(reward=1.0, recommendation_id=answer.recommendation_id))


async def test_excluded_candidates_are_left_out(feed: Runtime) -> None:
    answer = await recommend(feed, ask(exclude=["tea"], limit=2))
    assert answer.items == ("milk",)
    nothing = await recommend(feed, ask(exclude=["tea", "milk"]))
    assert nothing.items == ()


async def test_erasing_a_client_erases_answers_that_nobody_paid_for(feed: Runtime) -> None:
    await recommend(feed, ask(event_id="tuesday"))
    event = feed.principals.event("tuesday")
    assert await feed.store.find_event(event=event) is not None
    assert (await erase_client(feed, client="ada")).events == 1
    assert await feed.store.find_event(event=event) is None
