"""Feedback that is heard together is still heard each by itself."""

from collections.abc import Awaitable
from typing import Any

import pytest

from discreet.families.questions import Ask
from discreet.decisions.feedback import Feedback, Receipt, feedback_batch
from discreet.decisions.recommend import recommend
from discreet.decisions.runtime import Runtime
from discreet.errors import InvalidArgument, RewardConflict, StoreUnavailable
from discreet.state.memory import MemoryStore
from discreet.state.ready import Failed

pytestmark = pytest.mark.anyio


async def tokens(runtime: Runtime, *contexts: tuple[float, float]) -> list[str]:
    asks = [Ask(recommender="films", client="someone", context=context) for context in contexts]
    return [(await recommend(runtime, ask)).recommendation_id for ask in asks]


async def test_a_reward_that_cannot_be_learned_is_refused_alone(runtime: Runtime) -> None:
    first, second, third = await tokens(runtime, *[(0.2, 0.8)] * 3)
    results = await feedback_batch(
        runtime,
        [
            Feedback(1.0, recommendation_id=first),
            Feedback(2.0, recommendation_id=second),
            Feedback(1.0, recommendation_id=third),
        ],
    )
    assert isinstance(results[1], InvalidArgument)
    assert [results[0], results[2]] == [Receipt(duplicate=False)] * 2


async def test_a_cell_that_cannot_be_indexed_fails_its_own_feedback(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conflict adds nothing, so it needs no index, and is a conflict whatever else fails."""
    [known] = await tokens(runtime, (0.2, 0.8))
    word = Feedback(1.0, recommendation_id=known)
    assert await feedback_batch(runtime, [word]) == [Receipt(duplicate=False)]
    refused: list[bytes] = []
    index_cell = MemoryStore.index_cell

    def failing(self: MemoryStore, **given: Any) -> Awaitable[None]:
        refused.append(given["address"])
        return Failed(StoreUnavailable("gone")) if len(refused) == 1 else index_cell(self, **given)

    monkeypatch.setattr(MemoryStore, "index_cell", failing)
    conflict = Feedback(0.0, recommendation_id=known)
    [new] = await tokens(runtime, (0.2, 0.8))
    results = await feedback_batch(runtime, [conflict, Feedback(1.0, recommendation_id=new)])
    assert refused, "nothing had to be indexed: the test shows nothing"
    assert isinstance(results[0], RewardConflict)
    assert isinstance(results[1], StoreUnavailable)
