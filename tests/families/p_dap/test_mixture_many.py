"""Drawing for many: bit by bit what one draw after the other gives, and the same law."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.families.p_dap.mixture import Odds
from discreet.families.p_dap.outlook import COIN_SIDES
from discreet.audit.mechanisms.scripted import Script
from discreet.privacy.choice import RESPONSE_BITS, ShortlistResponse
from discreet.research.noise import SeededNoise
from tests.families.p_dap.many import Tossed

ARMS = np.array([2, 3, 5, 7])


def odds(
    *,
    size: int = 3,
    coin: int = COIN_SIDES // 4,
    epsilon: float | None = 1.0,
    curiosity: tuple[int, ...] = (1, 2, 3, 4),
) -> Odds:
    """Return odds over the arms 2, 3, 5 and 7, ranked 5, 3, 7, 2."""
    return Odds(
        arms=ARMS,
        curiosity=np.array(curiosity),
        coin=coin,
        ranking=np.array([5, 3, 7, 2]),
        size=size,
        response=None if epsilon is None else ShortlistResponse(epsilon=epsilon),
    )


ROWS = st.lists(
    st.tuples(
        st.integers(0, COIN_SIDES - 1),
        st.integers(0, 2**128 - 1) | st.sampled_from([0, 2**127, 2**128 - 1]),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=12,
)


@given(
    rows=ROWS,
    size=st.integers(1, 4),
    coin=st.integers(0, COIN_SIDES) | st.sampled_from([0, 1, COIN_SIDES - 1, COIN_SIDES]),
    epsilon=st.none() | st.floats(0.01, 50.0),
    weights=st.tuples(*[st.integers(1, 2**20)] * 4),
)
def test_the_same_bits_give_the_same_arm_and_probability(
    rows: list[tuple[int, int, int]],
    size: int,
    coin: int,
    epsilon: float | None,
    weights: tuple[int, ...],
) -> None:
    """A draw alone asks for a coin if it could explore, and stretches or cuts what it is told."""
    one = odds(size=size, coin=coin, epsilon=epsilon, curiosity=weights)
    bests = [min(best, size - 1) for _, _, best in rows]
    uniforms = [uniform << (RESPONSE_BITS - 128) for _, uniform, _ in rows]
    drawn = one.draw_each(bests, Tossed([tossed for tossed, _, _ in rows], uniforms))
    for (tossed, uniform, _), best, choice in zip(rows, bests, drawn, strict=True):
        script = ((tossed, 32), (uniform, 128)) if coin else ((uniform, 128),)
        alone = one.draw(best, Script(script))
        assert choice.slot == alone.slot
        assert math.isclose(choice.propensity, alone.propensity, rel_tol=1e-12)
        assert type(choice.slot) is int


@given(uniform=st.integers(0, 2**RESPONSE_BITS - 1), best=st.integers(0, 2))
def test_the_shortlist_is_drawn_from_by_all_bits_of_the_uniform(uniform: int, best: int) -> None:
    one = odds(coin=1)
    [choice] = one.draw_each([best], Tossed([1], [uniform]))
    alone = one.draw(best, Script(((1, 32), (uniform, RESPONSE_BITS))))
    assert choice.slot == alone.slot


@pytest.mark.parametrize("epsilon", [0.3, 3.0, None])
@pytest.mark.parametrize("coin", [0, COIN_SIDES // 3, COIN_SIDES])
def test_draws_follow_the_law_and_say_its_probabilities(epsilon: float | None, coin: int) -> None:
    """6,000 draws a best arm; within 5.5 deviations (false alarm below 1e-5 over all cases).

    A share of 0.1 that is off by 30% would be off by 7.7 deviations.
    """
    one = odds(epsilon=epsilon, coin=coin)
    noise, draws = SeededNoise(5), 6_000
    bests = [0, 1, 2] * draws
    counted = Counter(zip(bests, one.draw_each(bests, noise), strict=True))
    for best in range(3):
        law = one.law(best)
        seen = {choice.slot: count for (row, choice), count in counted.items() if row == best}
        for slot, share in law.items():
            sigma = math.sqrt(draws * float(share) * (1 - float(share)))
            assert abs(seen.get(slot, 0) - draws * float(share)) <= 5.5 * sigma
    for best, choice in counted:
        assert math.isclose(choice.propensity, one.law(best)[choice.slot], rel_tol=1e-12)


@pytest.mark.parametrize("coin", [0, 1, COIN_SIDES])
@pytest.mark.parametrize("epsilon", [1.0, None])
def test_every_row_takes_as_many_bits_whichever_way_it_goes(
    coin: int, epsilon: float | None
) -> None:
    noise = Tossed([0] * 7, [0] * 7)
    odds(coin=coin, epsilon=epsilon).draw_each([0, 1, 2, 0, 1, 2, 0], noise)
    assert noise.asked == [7 * 32, 7 * RESPONSE_BITS]


@given(
    rows=ROWS.filter(lambda rows: len(rows) > 1),
    other=st.tuples(st.integers(0, COIN_SIDES - 1), st.integers(0, 2**RESPONSE_BITS - 1)),
    data=st.data(),
)
def test_one_rows_bits_and_best_arm_are_nothing_to_the_others(
    rows: list[tuple[int, int, int]], other: tuple[int, int], data: st.DataObject
) -> None:
    one = odds()
    coins = [tossed for tossed, _, _ in rows]
    uniforms = [uniform << (RESPONSE_BITS - 128) for _, uniform, _ in rows]
    bests = [best % 3 for _, _, best in rows]
    before = one.draw_each(bests, Tossed(coins, uniforms))
    moved = data.draw(st.integers(0, len(rows) - 1))
    coins[moved], uniforms[moved] = other
    bests[moved] = (bests[moved] + 1) % 3
    after = one.draw_each(bests, Tossed(coins, uniforms))
    del before[moved], after[moved]
    assert before == after


def test_an_only_arm_is_certain_and_takes_no_bits() -> None:
    last = odds().without(3).without(7).without(5)
    noise = Tossed([], [])
    assert last.draw_each([0, 0], noise) == [last.draw(0, noise)] * 2
    assert noise.asked == []


def test_a_shortlist_longer_than_what_is_left_is_what_is_left() -> None:
    rest = odds(size=4).without(3)
    drawn = rest.draw_each([2] * 300, SeededNoise(1))
    assert {choice.slot for choice in drawn} == {2, 5, 7}
    for choice in drawn:
        assert math.isclose(choice.propensity, rest.law(2)[choice.slot], rel_tol=1e-12)
