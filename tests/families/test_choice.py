"""One private draw: its law, its lists, and the bound of its proof."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.families.choice import (
    COIN_SIDES,
    BestChoice,
    ShortlistOdds,
    UtilityChoice,
    filled,
    repeated,
)
from discreet.families.questions import Choice
from discreet.privacy.choice import ShortlistResponse
from discreet.privacy.events import ExactRelease, ExponentialChoice, RandomisedResponse, Repeated
from discreet.research.noise import SeededNoise


def odds(
    *,
    size: int = 3,
    coin: int = COIN_SIDES // 4,
    epsilon: float | None = 1.0,
    curiosity: tuple[int, ...] = (1, 2, 3, 4),
) -> ShortlistOdds:
    """Return the odds over the items 2, 3, 5 and 7, ranked 5, 3, 7, 2."""
    return ShortlistOdds(
        items=np.array([2, 3, 5, 7]),
        curiosity=np.array(curiosity),
        coin=coin,
        ranking=np.array([5, 3, 7, 2]),
        size=size,
        response=None if epsilon is None else ShortlistResponse(epsilon=epsilon),
    )


def test_the_law_is_the_formula() -> None:
    law = odds().law(1)
    a = 1 / (math.e + 2)
    expected = {
        2: 0.25 * 0.1,
        3: 0.25 * 0.2 + 0.75 * math.e * a,
        5: 0.25 * 0.3 + 0.75 * a,
        7: 0.25 * 0.4 + 0.75 * a,
    }
    assert sum(law.values()) == 1
    assert all(math.isclose(law[slot], expected[slot], rel_tol=1e-12) for slot in expected)


def test_without_protection_the_best_item_is_answered() -> None:
    exact = odds(epsilon=None, coin=0)
    assert exact.law(1) == {2: 0, 3: 1, 5: 0, 7: 0}
    (choice,) = exact.draw([1], SeededNoise(0))
    assert (choice.slot, choice.propensity) == (3, 1.0)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("coin", [0, COIN_SIDES // 4, COIN_SIDES])
def test_draws_follow_the_law(size: int, coin: int) -> None:
    """40,000 draws: a share off by 0.013 is over five deviations."""
    one = odds(size=size, coin=coin)
    best = size - 1
    drawn = one.draw([best] * 40_000, SeededNoise(size))
    law = one.law(best)
    counts = Counter(choice.slot for choice in drawn)
    for slot, share in law.items():
        assert counts[slot] / 40_000 == pytest.approx(float(share), abs=0.013)
    for choice in set(drawn):
        assert choice.propensity == pytest.approx(float(law[choice.slot]))


@given(
    epsilon=st.floats(0.05, 8.0),
    coin=st.integers(0, COIN_SIDES),
    size=st.integers(1, 4),
    curiosity=st.tuples(*[st.integers(1, 1_000)] * 4),
)
def test_no_item_tells_two_visitors_apart_by_more_than_epsilon(
    epsilon: float, coin: int, size: int, curiosity: tuple[int, ...]
) -> None:
    one = odds(epsilon=epsilon, coin=coin, size=size, curiosity=curiosity)
    laws = [one.law(best) for best in range(size)]
    bound = Fraction(math.exp(epsilon)) * (1 + Fraction(1, 2**40))
    for first in laws:
        for second in laws:
            assert all(first[slot] <= bound * second[slot] for slot in first)


def test_epsilons_of_their_own_are_bounded_by_the_largest() -> None:
    small, large = odds(epsilon=0.3, coin=0), odds(epsilon=1.4, coin=0)
    bound = Fraction(math.exp(1.4)) * (1 + Fraction(1, 2**40))
    for first in (small, large):
        for second in (small, large):
            for a in range(3):
                for b in range(3):
                    one, other = first.law(a), second.law(b)
                    assert all(one[slot] <= bound * other[slot] for slot in (5, 3, 7))


def test_a_list_is_drawn_without_repeats_from_what_is_left() -> None:
    utilities = np.array([0.1, 0.9, 0.4, 0.2])
    seen = set()
    for seed in range(60):
        choices = odds().draw_list(utilities, 4, SeededNoise(seed))
        seen.add(tuple(choice.slot for choice in choices))
        assert {choice.slot for choice in choices} == {2, 3, 5, 7}
        assert choices[-1].propensity == 1.0
    assert len(seen) > 5


def test_an_exact_list_is_the_ranking_by_utility() -> None:
    utilities = np.array([0.1, 0.9, 0.4, 0.2])
    exact = odds(epsilon=None, coin=0, size=4)
    choices = exact.draw_list(utilities, 3, SeededNoise(0))
    assert [choice.slot for choice in choices] == [3, 7, 2]


def test_one_item_is_no_choice() -> None:
    only = odds().without(2).without(3).without(7)
    assert only.draw([0], SeededNoise(0))[0] == (5, 1.0)


def test_repeated_draws_are_one_event() -> None:
    event = ExponentialChoice(1.0)
    assert repeated(event, 0) == ()
    assert repeated(event, 1) == (event,)
    assert repeated(event, 3) == (Repeated(event, 3),)


def test_what_a_choice_among_candidates_releases() -> None:
    private, exact = UtilityChoice(0.5), UtilityChoice(None)
    assert private.events(available=1, limit=3) == ()
    assert private.events(available=5, limit=1) == (ExponentialChoice(0.5),)
    assert private.events(available=3, limit=9) == (Repeated(ExponentialChoice(0.5), 2),)
    assert exact.events(available=5, limit=1) == (ExactRelease(),)
    assert exact.events(available=1, limit=1) == ()


def test_an_exact_choice_takes_the_best_ties_in_order() -> None:
    choices = UtilityChoice(None).draw(np.array([0.2, 0.7, 0.7, 0.1]), 3, SeededNoise(0))
    assert [choice.slot for choice in choices] == [1, 2, 0]


def test_a_private_choice_follows_the_exponential_mechanism() -> None:
    """20,000 draws: a share off by 0.02 is over five deviations."""
    utilities = np.array([0.0, 0.5, 1.0])
    choice, noise = UtilityChoice(2.0), SeededNoise(4)
    drawn = [choice.draw(utilities, 1, noise)[0] for _ in range(20_000)]
    weights = np.exp(2.0 * utilities / 2)
    counts = Counter(one.slot for one in drawn)
    for slot, share in enumerate(weights / weights.sum()):
        assert counts[slot] / 20_000 == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("choice", [UtilityChoice(1.5), UtilityChoice(99.0), UtilityChoice(None)])
def test_what_is_drawn_for_many_is_what_is_drawn_for_each(choice: UtilityChoice) -> None:
    """With the same bits; an epsilon of 99 needs weights beyond 64 bits."""
    utilities = np.random.default_rng(0).random((30, 7))
    together = choice.draw_each(utilities, [1] * 30, SeededNoise(8))
    noise = SeededNoise(8)
    alone = [choice.draw(row, 1, noise) for row in utilities]
    assert [[one.slot for one in row] for row in together] == [[o.slot for o in r] for r in alone]
    for ours, theirs in zip(together, alone, strict=True):
        assert ours[0].propensity == pytest.approx(theirs[0].propensity, rel=1e-12)


@pytest.mark.parametrize("choice", [UtilityChoice(1.0, 2), UtilityChoice(None), BestChoice(1.0)])
def test_lists_of_many_are_as_long_as_each_asked_for(choice: UtilityChoice) -> None:
    drawn = choice.draw_each(np.zeros((3, 4)), [1, 2, 9], SeededNoise(1))
    most = 2 if choice.slots else 4
    assert [len(row) for row in drawn] == [1, 2, most]
    assert all(len({one.slot for one in row}) == len(row) for row in drawn)
    assert choice.draw_each(np.zeros((2, 0)), [1, 1], SeededNoise(1)) == [(), ()]


def test_utilities_beyond_their_range_are_cut() -> None:
    (choice,) = UtilityChoice(1.0).draw(np.array([-5.0, 9.0]), 1, SeededNoise(1))
    assert choice.slot in (0, 1)


def test_only_the_personal_items_of_a_list_are_drawn_and_paid_for() -> None:
    choice = UtilityChoice(0.5, slots=2)
    assert choice.events(available=50, limit=100) == (Repeated(ExponentialChoice(0.5), 2),)
    assert choice.events(available=2, limit=100) == (ExponentialChoice(0.5),)
    assert len(choice.draw(np.zeros(50), 100, SeededNoise(0))) == 2
    assert len(choice.draw(np.zeros(50), 1, SeededNoise(0))) == 1
    assert UtilityChoice(None, slots=2).most_drawn(7) == 7, "an exact list is exact throughout"


def test_the_rest_of_a_list_is_the_list_for_anybody_without_what_was_drawn() -> None:
    anybody = [Choice(slot, 1.0) for slot in (4, 2, 0, 1)]
    shown = filled([Choice(2, 0.5)], anybody, 4)
    assert [one.slot for one in shown] == [2, 4, 0, 1]
    assert [one.slot for one in filled([Choice(9, 0.5)], anybody, 3)] == [9, 4, 2]
    assert filled([Choice(2, 0.5)], anybody, 1) == (Choice(2, 0.5),)


@pytest.mark.parametrize("seed", range(200))
def test_a_list_of_one_is_drawn_like_an_answer(seed: int) -> None:
    """A list draws without tables; the same bits give the same item with the same propensity."""
    utilities = np.array([0.4, 0.9, 0.1, 0.6])
    best = int(utilities[: odds().size].argmax())
    (single,) = odds().draw([best], SeededNoise(seed))
    (listed,) = odds().draw_list(utilities, 1, SeededNoise(seed))
    assert listed == single


def test_the_best_is_drawn_with_the_odds_of_randomised_response() -> None:
    """20,000 draws: a share off by 0.018 is over five deviations."""
    choice, noise = BestChoice(2.0), SeededNoise(5)
    utilities = np.array([-3.0, 0.2, 70.0])
    drawn = Counter(choice.draw(utilities, 1, noise) for _ in range(20_000))
    best = math.exp(2) / (math.exp(2) + 2)
    shares = {one.slot: count / 20_000 for (one,), count in drawn.items()}
    assert shares == pytest.approx({0: (1 - best) / 2, 1: (1 - best) / 2, 2: best}, abs=0.018)
    told = {one.slot: one.propensity for (one,) in drawn}
    assert told == pytest.approx({0: (1 - best) / 2, 1: (1 - best) / 2, 2: best})


def test_a_list_of_the_best_pays_for_what_is_drawn() -> None:
    choice = BestChoice(0.5, slots=2)
    assert choice.events(available=1, limit=1) == ()
    assert choice.events(available=9, limit=1) == (RandomisedResponse(0.5),)
    assert choice.events(available=9, limit=7) == (Repeated(RandomisedResponse(0.5), 2),)
    first, second = choice.draw(np.array([0.0, 5.0, 1.0]), 3, SeededNoise(0))
    assert first.slot != second.slot
    assert choice.draw(np.array([]), 3, SeededNoise(0)) == ()
