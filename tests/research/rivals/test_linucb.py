"""LinUCB of MABWiser, as the suite runs it."""

import pytest

from discreet.research.rivals.linucb import LinUcbLearner
from tests.research.suite.known import two_kinds


@pytest.mark.anyio
@pytest.mark.parametrize(("epsilon", "least"), [(None, 0.8), (2.0, 0.65)])
async def test_it_learns_who_likes_what(epsilon: float | None, least: float) -> None:
    """Whoever cannot tell the kinds apart earns 0.5, chance 0.43; the optimum 0.9 and 0.8."""
    player = LinUcbLearner(epsilon)
    stretch = two_kinds(1_000)
    earned = stretch.worth(await player.play(stretch, seed=1))
    assert earned[500:].mean() > least


@pytest.mark.anyio
async def test_items_may_change() -> None:
    player = LinUcbLearner(None)
    await player.play(two_kinds(300), seed=1)
    later = two_kinds(1_000, first=2)
    chosen = await player.play(later, seed=1)
    assert set(chosen.tolist()) <= {2, 3, 4}
    assert later.worth(chosen)[500:].mean() > 0.75
