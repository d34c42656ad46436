"""What aggregate statistics say, and that they say it about aggregates only."""

import math
from collections.abc import Sequence

import numpy as np

from discreet.families.p_dap.cell import REWARD_STEPS
from discreet.families.p_dap.contract import Address, Vector
from discreet.families.p_dap.outlook import COIN_SIDES, MOST_CELLS, Outlook

E = [math.e]


def cell(counts: Sequence[int], means: Sequence[float]) -> Vector:
    fields = [sum(counts)]
    for count, mean in zip(counts, means, strict=True):
        fields += [count, round(count * mean * REWARD_STEPS)]
    return np.array(fields, dtype=np.int64)


def outlook(
    cells: Sequence[Vector],
    *,
    arms: int = 3,
    offered: Sequence[int] | None = None,
    rate: float = 0.1,
    odds: Sequence[float] = E,
    level: int = 0,
) -> Outlook:
    return Outlook.of(
        cells={Address(bytes([i % 256, i // 256]), level): one for i, one in enumerate(cells)},
        offered=np.array(range(arms) if offered is None else offered, dtype=np.intp),
        arms=arms,
        exploration_rate=rate,
        odds=odds,
    )


def test_before_anything_is_known_every_arm_is_shortlisted() -> None:
    for blank in (Outlook.blank(arms=3, exploration_rate=0.1), outlook([])):
        assert blank.size == 3
        assert sorted(blank.ranking.tolist()) == [0, 1, 2]
        assert blank.coin == round(0.1 * COIN_SIDES)
        assert blank.depth == 0


def test_means_are_over_all_cells() -> None:
    seen = outlook([cell([500, 0, 500], [0.2, 0.0, 0.6]), cell([500, 1000, 0], [0.4, 0.5, 0.0])])
    assert np.allclose(seen.means, [0.3, 0.5, 0.6], atol=0.01)
    assert seen.popular.tolist() == [2, 1, 0]


def test_the_shortlist_leads_the_ranking_and_popularity_follows() -> None:
    seen = outlook(
        [cell([400, 400, 400], [0.9, 0.0, 0.3]), cell([400, 400, 400], [0.0, 0.9, 0.3])],
        odds=[math.exp(3)],
    )
    assert sorted(seen.ranking[: seen.size].tolist()) == [0, 1]
    assert sorted(seen.ranking.tolist()) == [0, 1, 2]


def test_arms_that_nobody_was_offered_take_no_place_on_the_shortlist() -> None:
    cells = [cell([400, 400, 400], [0.9, 0.5, 0.3])]
    seen = outlook(cells, offered=[1, 2])
    assert seen.ranking.tolist() == [1, 2, 0]
    assert seen.size == 1
    assert outlook(cells).ranking.tolist() == [0, 1, 2]


def test_exploration_settles_at_its_rate() -> None:
    shares = [
        outlook([cell([n, n, n], [0.5, 0.4, 0.3])]).coin / COIN_SIDES for n in (1, 10, 100, 10**6)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.5
    assert math.isclose(shares[-1], 0.1, abs_tol=1e-4)
    assert outlook([cell([1, 1, 1], [0.5, 0.4, 0.3])], rate=0.0).coin == 0
    assert outlook([cell([1, 1, 1], [0.5, 0.4, 0.3])], rate=1.0).coin == COIN_SIDES


def test_arms_tried_little_are_explored_more_and_none_never() -> None:
    seen = outlook([cell([10_000, 100, 0], [0.4, 0.4, 0.0])])
    assert (seen.curiosity > 0).all()
    assert seen.curiosity[2] > seen.curiosity[1] > seen.curiosity[0]
    worthless = outlook([cell([10**6, 10**6, 10**6], [1.0, 0.0, 0.0])])
    assert (worthless.curiosity > 0).all()


def test_the_depth_is_the_deepest_cell_with_data() -> None:
    one = cell([5, 5, 5], [0.1, 0.2, 0.3])
    empty = np.zeros(0, dtype=np.int64)
    cells = {Address(b"a", 1): one, Address(b"b", 3): one, Address(b"c", 7): empty}
    every = np.arange(3)
    seen = Outlook.of(cells=cells, offered=every, arms=3, exploration_rate=0.1, odds=E)
    assert seen.depth == 3


def test_levels_may_have_odds_of_their_own() -> None:
    """At odds near 1 only popularity counts; the last odds stand for all deeper levels."""
    cells = [cell([400, 400, 400], [0.9, 0.0, 0.3]), cell([400, 400, 400], [0.0, 0.8, 0.3])]
    assert outlook(cells, odds=[1.001, math.exp(4)], level=0).size == 1
    assert outlook(cells, odds=[1.001, math.exp(4)], level=1).size == 2
    assert outlook(cells, odds=[1.001, math.exp(4)], level=5).size == 2


def test_vectors_of_other_lengths_are_read_as_far_as_they_go() -> None:
    seen = outlook([cell([900], [0.9]), cell([10, 10, 900, 900], [0.1, 0.2, 0.5, 1.0])])
    assert seen.popular[0] == 0
    assert len(seen.means) == 3


def test_the_heaviest_cells_decide_the_shortlist() -> None:
    light = [cell([0, 2, 0], [0.0, 1.0, 0.0])] * (MOST_CELLS * 2)
    heavy = [cell([400, 400, 400], [0.9, 0.5, 0.1])] * MOST_CELLS
    assert outlook([*light, *heavy]).ranking[0] == 0
