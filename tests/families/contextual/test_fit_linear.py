"""Estimates in linear features find slopes, and shrink to popularity where there are none."""

from dataclasses import replace

import numpy as np

from discreet.families.contextual.fit_linear import fit_linear
from discreet.families.contextual.spaces import LinearSpace
from tests.families.contextual.people import summed

SPACE = LinearSpace(8)
ITEMS = np.arange(10)
UNSHOWN = np.array([10, 11])
RNG = np.random.default_rng(2)
EPSILON_ONE = 6.4
"""The noise of a record at epsilon 1 and delta 1e-6."""
CONTEXTS = np.clip(0.5 + 0.25 * RNG.standard_normal((15_000, 8)), 0, 1)
SCORES = (CONTEXTS - 0.5) @ (RNG.standard_normal((8, 10)) * 2.1)
MEANS = 1 / (1 + np.exp(0.5 - SCORES))


def share(deviation: float) -> float:
    """What the best items by estimate earn, of what the truly best ones do."""
    sums = summed(SPACE, CONTEXTS, MEANS, seed=0, deviation=deviation)
    best = fit_linear(SPACE, sums, ITEMS).means(SPACE.rows(CONTEXTS[:500]), ITEMS).argmax(axis=1)
    earned = MEANS[np.arange(500), best].mean()
    return float(earned / MEANS[:500].max(axis=1).mean())


def test_slopes_are_found() -> None:
    assert share(0.0) > 0.95
    assert share(7.0) > 0.85
    assert MEANS.mean(axis=0).max() / MEANS.max(axis=1).mean() < 0.75  # the best fixed item


def test_errors_are_of_the_right_size() -> None:
    for deviation in (0.0, 7.0, 30.0):
        sums = summed(SPACE, CONTEXTS, MEANS, seed=0, deviation=deviation)
        estimates = fit_linear(SPACE, sums, ITEMS)
        rows = SPACE.rows(CONTEXTS[:500])
        off = (estimates.means(rows, ITEMS) - MEANS[:500]) / estimates.deviations(rows, ITEMS)
        assert 0.4 < np.sqrt((off**2).mean()) < 3.0, deviation


def test_items_that_were_shown_to_some_people_only_are_known_by_their_own_products() -> None:
    """One is shown in a narrow band, the other elsewhere: everybody's matrix fits neither."""
    shown = np.where(np.abs(CONTEXTS[:, 0] - 0.5) < 0.15, 0, 1)
    means = np.stack([0.2 + 0.6 * CONTEXTS[:, 0], 0.8 - 0.6 * CONTEXTS[:, 0]], axis=1)
    off = {}
    for space in (LinearSpace(8, exact=True), LinearSpace(8, exact=True, apart=True)):
        sums = summed(space, CONTEXTS, means, seed=0, shown=shown)
        assert bool(sums.own.size) == space.apart
        estimates = fit_linear(space, sums, np.arange(2))
        found = estimates.means(space.rows(CONTEXTS), np.arange(2))
        off[space.apart] = float(np.abs(found - means).mean())
    assert off[True] < 0.03
    assert off[False] > 1.5 * off[True]


def test_records_without_products_are_guessed() -> None:
    space = LinearSpace(8, exact=True, apart=True)
    whole = summed(space, CONTEXTS, MEANS, seed=0)
    half = replace(whole, own=0.5 * whole.own)
    rows = space.rows(CONTEXTS[:500])
    one, two = (fit_linear(space, sums, ITEMS).means(rows, ITEMS) for sums in (whole, half))
    assert np.abs(one - two).mean() < 0.01


def test_popularity_is_what_is_left_without_slopes() -> None:
    flat = np.tile(np.linspace(0.05, 0.5, 10), (15_000, 1))
    estimates = fit_linear(SPACE, summed(SPACE, CONTEXTS, flat, seed=0), ITEMS)
    found = estimates.means(SPACE.rows(CONTEXTS[:500]), ITEMS)
    assert (found.argmax(axis=1) >= 8).mean() > 0.99


def test_noise_is_not_taken_for_what_contexts_tell() -> None:
    """Everybody likes everything alike, and 2,000 visits at epsilon 1 cannot say otherwise.

    With noise that is weighed as if it shrank with the spread of people the means of people differ
    by 0.19 or more.
    """
    space = LinearSpace(40)
    contexts = (np.random.default_rng(0).random((2_000, 40)) < 0.15).astype(np.float64)
    for seed in range(4):
        sums = summed(space, contexts, np.full((2_000, 10), 0.6), seed=seed, deviation=EPSILON_ONE)
        found = fit_linear(space, sums, ITEMS).means(space.rows(contexts[:500]), ITEMS)
        assert found.mean(axis=1).std() < 0.08


def test_what_is_shown_most_does_not_stand_for_items_that_were_never_shown() -> None:
    """Nine of ten visits went to an item that 85% like, the rest to nine that 40% like: of an
    unknown one 47% is expected, and not the 84% that a mean over visits says."""
    rng = np.random.default_rng(0)
    means = np.full((15_000, 12), 0.4)
    means[:, 0] = 0.85
    shown = np.where(rng.random(15_000) < 0.9, 0, rng.integers(1, 10, 15_000))
    found = []
    for seed in range(8):
        sums = summed(SPACE, CONTEXTS, means, seed=seed, deviation=EPSILON_ONE, shown=shown)
        estimates = fit_linear(SPACE, sums, np.arange(12))
        found.append(estimates.means(SPACE.rows(CONTEXTS[:500]), UNSHOWN).mean())
    assert 0.3 < np.mean(found) < 0.6


def test_people_have_the_released_mean_and_spread() -> None:
    estimates = fit_linear(SPACE, summed(SPACE, CONTEXTS, MEANS, seed=0), ITEMS)
    rows = SPACE.rows(CONTEXTS)
    assert np.allclose(estimates.people.mean(axis=0), rows.mean(axis=0), atol=0.05)
    assert np.allclose(estimates.people.std(axis=0), rows.std(axis=0), atol=0.08)


def test_items_are_not_believed_to_differ_by_more_than_rare_rewards_can() -> None:
    """At 2% and much noise nothing is known: estimates stay within a few percent."""
    rare = np.clip(MEANS * 0.04, 0, 1)
    for seed in range(3):
        sums = summed(SPACE, CONTEXTS[:3_000], rare[:3_000], seed=seed, deviation=7.0)
        found = fit_linear(SPACE, sums, ITEMS).means(SPACE.rows(CONTEXTS[:500]), ITEMS)
        assert (found.mean(axis=0) - found.mean()).std() < 0.02


def test_an_item_that_was_never_shown_may_be_better_than_those_that_were() -> None:
    """With exact feedback the prior is wider than the items that were seen differ."""
    sums = summed(SPACE, CONTEXTS, MEANS[:, :9], seed=0).fitted(10)
    estimates = fit_linear(SPACE, sums, ITEMS)
    rows = SPACE.rows(CONTEXTS[:500])
    differ = estimates.means(rows, np.arange(9)).std(axis=1).mean()
    assert estimates.deviations(rows, np.array([9])).mean() > 1.5 * differ
