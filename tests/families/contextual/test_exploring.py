"""What is worth exploring."""

import numpy as np
import pytest

from discreet.families.contextual.exploring import (
    FIRST_TRIED,
    MOST_TRIED,
    TRIED,
    contenders,
    expected_improvement,
    first_curiosity,
    first_looks,
    listed_worth,
    private_gains,
    told_of_tastes,
    worthwhile_trials,
)


def test_what_is_surely_ahead_improves_by_that_and_what_is_surely_behind_by_nothing() -> None:
    found = expected_improvement(np.array([0.3, -0.3, 0.0]), np.array([1e-6, 1e-6, 1.0]))
    assert found == pytest.approx([0.3, 0.0, 1.0 / np.sqrt(2.0 * np.pi)], abs=1e-6)


def test_expected_improvement_is_the_mean_of_the_positive_part() -> None:
    drawn = np.random.default_rng(0).normal(-0.2, 0.5, 400_000)
    found = expected_improvement(np.array([-0.2]), np.array([0.5]))
    assert found[0] == pytest.approx(np.maximum(drawn, 0.0).mean(), abs=0.002)


def test_an_unknown_item_is_worth_more_to_know_than_a_known_one() -> None:
    shares, means = np.ones(4) / 4, np.full((4, 3), 0.5)
    improvement = np.zeros((4, 3))
    errors = np.array([0.0, 0.1, 0.3])
    gains, worth = private_gains(shares, means, improvement, means[:, :1], errors, odds=7.0)
    assert worth == pytest.approx(0.5)
    assert gains[0] < gains[1] < gains[2]


@pytest.mark.parametrize("exact", [True, False])
def test_a_few_items_are_tried_alike(exact: bool) -> None:
    visible = np.arange(2, 2 + FIRST_TRIED, dtype=np.intp)
    assert first_curiosity(40, visible, exact=exact).tolist() == [1] * 40


def test_of_many_items_some_are_tried_first_where_noise_would_hide_a_few_visits_of_each() -> None:
    visible = np.arange(5, 60, dtype=np.intp)
    weights = first_curiosity(60, visible, exact=False)
    share = weights[visible[:FIRST_TRIED]].sum() / weights[visible].sum()
    assert share > 0.999
    assert (weights > 0).all()
    assert (first_curiosity(60, visible, exact=True) == 1).all()


def test_few_items_all_contend() -> None:
    assert contenders(np.zeros(50), np.linspace(0.9, 0.1, 50), 100.0).all()


def test_of_many_those_contend_that_were_tried_and_then_the_most_promising() -> None:
    shown, levels = np.zeros(200), np.linspace(0.1, 0.9, 200)
    shown[:20] = TRIED
    found = np.flatnonzero(contenders(shown, levels, 100.0))
    assert found.tolist() == [*range(20), *range(170, 200)]
    shown[:120] = TRIED
    assert contenders(shown, levels, 100.0).tolist() == [True] * 120 + [False] * 80


def test_there_is_more_room_with_more_visits() -> None:
    rooms = [
        int(contenders(np.zeros(900), np.zeros(900), visits).sum())
        for visits in (0.0, 10_000.0, 40_000.0, 1_000_000.0)
    ]
    assert rooms == [50, 50, 100, 500]


def test_first_looks_take_half_at_most_and_less_and_less() -> None:
    assert first_looks(0.0) == first_looks(10.0) == 0.5
    assert first_looks(40_000.0) == pytest.approx(0.02)


def test_a_shortlist_is_worth_its_best_item_as_often_as_it_is_obeyed() -> None:
    among = np.array([[0.8, 0.2], [0.4, 0.6]])
    assert listed_worth(np.array([0.5, 0.5]), among, 3.0) == pytest.approx(0.75 * 0.7 + 0.25 * 0.3)


LEVELS = np.array([0.5, 0.45, 0.45, 0.2, 0.45])
ERRORS = np.array([0.0, 0.1, 0.001, 0.1, 0.05])


def trials(
    visits: float = 2_000.0,
    variance: float = 80.0,
    horizon: float = 12_000.0,
    untried: tuple[int, ...] = (),
    tastes: float = 0.0,
) -> list[float]:
    found = worthwhile_trials(
        LEVELS,
        ERRORS,
        0.5,
        untried=np.isin(np.arange(len(LEVELS)), untried),
        tastes=np.array([0.0, 0.0, 0.0, tastes, 0.0]),
        visits=visits,
        horizon=horizon,
        variance=variance,
    )
    return [float(share) for share in found]


def test_few_items_are_tried_in_earnest_and_only_those_that_could_be_the_best() -> None:
    """The second might be better than the best; the third is known, the fourth is too bad."""
    found = trials()
    assert found[1] > 0.0
    assert found[2] == found[3] == 0.0
    assert sum(found) <= MOST_TRIED + 1e-9


def test_nothing_is_tried_that_noise_would_hide_or_that_costs_more_than_it_gains() -> None:
    assert sum(trials(visits=20.0, variance=1e6)) == 0.0
    assert sum(trials(horizon=10.0)) == 0.0


def test_an_item_that_was_never_tried_may_be_unlike_all_others() -> None:
    """The third is thought to be like the others, as far as those can tell."""
    assert trials()[2] == 0.0
    assert trials(untried=(2,))[2] > 0.0
    assert trials(untried=(2,), visits=20.0, variance=1e6)[2] == 0.0


def test_more_is_tried_while_there_have_been_few_visits() -> None:
    levels, errors, untried = np.full(60, 0.48), np.full(60, 0.1), np.ones(60, dtype=np.bool_)
    together = [
        worthwhile_trials(
            levels,
            errors,
            0.5,
            untried=untried,
            tastes=np.zeros(60),
            visits=2_000.0,
            horizon=horizon,
            variance=80.0,
        ).sum()
        for horizon in (2_000.0, 4_000.0, 40_000.0)
    ]
    assert together == pytest.approx([MOST_TRIED, 12.0 / 4_000.0**0.5, 12.0 / 40_000.0**0.5])


def test_an_item_that_is_worse_for_most_is_tried_for_whom_it_may_be_best() -> None:
    """The fourth is too bad for everybody alike."""
    assert trials()[3] == 0.0
    assert trials(tastes=0.05)[3] > 0.0
    assert trials(tastes=0.05, horizon=10.0)[3] == 0.0


def test_a_trial_tells_of_tastes_what_noise_leaves_of_them() -> None:
    """Compared with the slopes of a regression through the noise, in 20,000 worlds."""
    rng, size, length, n = np.random.default_rng(0), 4, 0.8, 300
    each, spread, noise, unknown = length / size, 0.25, 90.0, 0.02
    slopes = rng.normal(0.0, (unknown / length) ** 0.5, 20_000)
    sums = n * each * slopes + rng.normal(0.0, (n * each * spread + noise) ** 0.5, 20_000)
    explained = np.corrcoef(slopes, sums)[0, 1] ** 2
    (told,) = told_of_tastes(
        np.array([unknown]),
        size=size,
        length=length,
        shown=np.array([float(n)]),
        noise=noise,
        spread=spread,
    )
    assert told[0] == pytest.approx(explained, abs=0.02)
