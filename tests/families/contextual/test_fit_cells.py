"""Estimates in cells find tastes of any shape, and know how far they may be off."""

import numpy as np

from discreet.families.contextual.cells import CellSpace
from discreet.families.contextual.fit_cells import finest, fit_cells
from tests.families.contextual.people import summed

SPACE = CellSpace(2)
ITEMS = np.arange(6)
RNG = np.random.default_rng(1)
CONTEXTS = RNG.random((12_000, 2))
PLACES = RNG.random((6, 2))
MEANS = 0.1 + 0.7 * np.exp(-((CONTEXTS[:, None] - PLACES) ** 2).sum(axis=2) / 0.1)


def test_bumps_are_found() -> None:
    estimates = fit_cells(SPACE, summed(SPACE, CONTEXTS, MEANS, seed=0), ITEMS)
    found = estimates.means(SPACE.rows(CONTEXTS[:500]), ITEMS)
    assert np.sqrt(((found - MEANS[:500]) ** 2).mean()) < 0.08
    best = found.argmax(axis=1)
    assert MEANS[np.arange(500), best].mean() > 0.95 * MEANS[:500].max(axis=1).mean()


def test_noise_makes_estimates_cautious_and_errors_honest() -> None:
    noisy = fit_cells(SPACE, summed(SPACE, CONTEXTS, MEANS, seed=0, deviation=20.0), ITEMS)
    exact = fit_cells(SPACE, summed(SPACE, CONTEXTS, MEANS, seed=0), ITEMS)
    rows = SPACE.rows(CONTEXTS[:500])
    off = noisy.means(rows, ITEMS) - MEANS[:500]
    errors = noisy.deviations(rows, ITEMS)
    assert errors.mean() > 1.5 * exact.deviations(rows, ITEMS).mean()
    # Of the right size: an estimate that ignored its noise would be off by several errors.
    assert 0.5 < np.sqrt(((off / errors) ** 2).mean()) < 1.8


def test_items_that_are_liked_alike_everywhere_differ_in_level_only() -> None:
    flat = np.tile([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], (12_000, 1))
    estimates = fit_cells(SPACE, summed(SPACE, CONTEXTS, flat, seed=0), ITEMS)
    found = estimates.means(SPACE.rows(CONTEXTS[:500]), ITEMS)
    assert (found.argmax(axis=1) == 5).mean() > 0.95
    assert estimates.known.min() > 0.5


def test_errors_are_honest_about_people_to_whom_an_item_was_not_shown() -> None:
    """Means that fall off faster than expected: errors of the fitted prior are 2.6 times too small.

    An item that pleases around its place was shown everywhere else only, in twelve worlds.
    """
    space, off = CellSpace(2, exact=True, fine=True), []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        contexts, places, item = rng.random((1_500, 2)), rng.random((6, 2)), np.array([seed % 6])
        means = 0.05 + 0.85 * np.exp(-((contexts[:, None] - places) ** 2).sum(axis=2) / 0.06)
        near = np.abs(contexts[:, 0] - places[item, 0]) <= 0.3
        shown = rng.integers(0, 6, 1_500)
        shown = np.where((shown == item) & near, (item + 1) % 6, shown)
        sums = summed(space, contexts, means, seed=seed, shown=shown)
        estimates, rows = fit_cells(space, sums, ITEMS), space.rows(contexts[near])
        missed = means[near][:, item] - estimates.means(rows, item)
        off.append((missed / estimates.deviations(rows, item)).ravel())
    assert np.sqrt((np.concatenate(off) ** 2).mean()) < 1.8


def test_a_straight_line_is_learned_from_few_visits() -> None:
    """With waves alone, as with noise, it takes three times as many to be as near."""
    rng, missed = np.random.default_rng(3), {}
    for exact in (True, False):
        space, off = CellSpace(3, exact=exact, fine=exact), []
        for seed in range(4):
            contexts, slopes = rng.random((1_500, 3)), rng.normal(0, 0.3, (3, 6))
            means = np.clip(0.4 + (contexts - 0.5) @ slopes, 0, 1)
            estimates = fit_cells(space, summed(space, contexts, means, seed=seed), ITEMS)
            off.append(estimates.means(space.rows(contexts), ITEMS) - means)
        missed[exact] = float((np.concatenate(off) ** 2).mean())
    assert missed[True] < 0.5 * missed[False]


def test_finer_waves_wait_for_visits() -> None:
    space = CellSpace(2, exact=True, fine=True)
    assert finest(space, 100) == finest(space, 12_000) == 5
    assert finest(space, 12_000 * 8) == 10
    assert finest(CellSpace(2), 100) > space.orders.max()
