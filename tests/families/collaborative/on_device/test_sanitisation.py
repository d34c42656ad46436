"""Integers that fit, a certificate that is true, and draws that nobody's history steers."""

import itertools
from collections import Counter

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.catalogue import (
    NOTHING,
    PERTURBED,
    Catalogue,
    Concerns,
    Floats,
    Level,
    scope_of,
)
from discreet.families.collaborative.on_device.sanitisation import Sanitiser, sanitise, sanitiser_of
from tests.families.collaborative.on_device.profiles import five, made


def best_by_enumeration(sanitiser: Sanitiser, wanted: Floats) -> float:
    ranges = [range(int(size) + 1) for size in sanitiser.sizes]
    return min(
        float(np.sum((np.array(counts) @ sanitiser.incidence - wanted) ** 2) / 2)
        for counts in itertools.product(*ranges)
    )


@pytest.mark.parametrize("seed", range(25))
def test_the_certificate_is_true_and_the_answer_is_nearly_always_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    incidence = rng.random((5, 3)) < 0.5
    incidence[~incidence.any(axis=1), 0] = True
    sanitiser = Sanitiser.of(incidence.astype(float), rng.integers(1, 4, 5))
    wanted = rng.integers(-4, 9, 3).astype(float)
    fit = sanitiser.fit(wanted, rng)
    mine = float(np.sum((fit.counts @ sanitiser.incidence - wanted) ** 2) / 2)
    best = best_by_enumeration(sanitiser, wanted)
    assert (fit.counts >= 0).all()
    assert (fit.counts <= sanitiser.sizes).all()
    assert best >= mine - fit.excess - 1e-6  # the bound is below the best there is
    assert mine <= best + 0.5  # at most one step of the lattice away
    if fit.excess < 0.5 - 1e-6:
        assert mine == best  # and where it says so, it is the best


def test_counts_that_can_be_met_are_met() -> None:
    catalogue = made(items=500, categories=8, seed=2)
    rng = np.random.default_rng(0)
    sanitiser = sanitiser_of(catalogue, PERTURBED)
    for _ in range(20):
        history = rng.choice(catalogue.items, 60, replace=False)
        wanted = (catalogue.tally(history) @ catalogue.incidence).astype(float)
        fit = sanitiser.fit(wanted, rng)
        assert np.array_equal(fit.counts @ sanitiser.incidence, wanted)
        assert fit.excess < 0.5


def test_items_are_spread_evenly_over_what_fits_equally_well() -> None:
    # 90 items of x alone, 10 of x in another group with a category that is not counted.
    items = {f"a{at}": ("x",) for at in range(90)} | {f"b{at}": ("x", "y") for at in range(10)}
    concerns = Concerns.choose({"y": Level.ALL})
    catalogue = Catalogue.of(items)
    shares = [
        sum(item.startswith("b") for item in drawn)
        for seed in range(200)
        if (
            drawn := sanitise(
                catalogue=catalogue, concerns=concerns, wanted=np.array([40.0]), seed=seed
            )
        )
    ]
    assert len(shares) == 200
    # Systematic rounding gives 4 of the 40, always: a tenth of the items, a tenth of the draws.
    assert set(shares) == {4}


def test_every_item_of_a_group_is_equally_likely() -> None:
    catalogue = Catalogue.of(dict.fromkeys("abcd", ("x",)))
    counts = Counter(
        item
        for seed in range(2_000)
        for item in sanitise(
            catalogue=catalogue, concerns=PERTURBED, wanted=np.array([2.0]), seed=seed
        )
    )
    # Each is in half of the draws: 1000 with deviation 22. Six deviations: 8e-9 for all four.
    assert sum(counts.values()) == 4_000
    assert all(abs(count - 1_000) < 6 * 22.4 for count in counts.values())


def test_what_cannot_be_had_is_not_invented() -> None:
    catalogue = five()
    assert sanitise(catalogue=catalogue, concerns=PERTURBED, wanted=np.full(5, -9.0), seed=1) == (
        frozenset()
    )
    everything = sanitise(catalogue=catalogue, concerns=PERTURBED, wanted=np.full(5, 99.0), seed=1)
    assert everything == frozenset(catalogue.items)
    assert sanitise(catalogue=catalogue, concerns=NOTHING, wanted=np.zeros(0), seed=1) == (
        frozenset()
    )


def test_hidden_and_open_items_are_never_drawn() -> None:
    catalogue = made(items=200, categories=6, seed=4)
    chosen = Concerns.choose({"c00": Level.NO, "c01": Level.ALL})
    scope = scope_of(catalogue, chosen)
    allowed = {item for group in scope.protected for item in catalogue.members[group]}
    for seed in range(20):
        wanted = np.random.default_rng(seed).integers(0, 40, len(scope.counted)).astype(float)
        drawn = sanitise(catalogue=catalogue, concerns=chosen, wanted=wanted, seed=seed)
        assert drawn <= allowed


@pytest.mark.parametrize("wanted", [np.zeros(4), np.array([1.0, 2.0, 3.0, 4.0, np.nan])])
def test_a_wish_of_the_wrong_shape_is_refused(wanted: Floats) -> None:
    with pytest.raises(InvalidArgument, match="wanted"):
        sanitise(catalogue=five(), concerns=PERTURBED, wanted=wanted, seed=1)


def test_a_catalogue_with_hundreds_of_groups_is_certified_too() -> None:
    catalogue = made(items=3_000, categories=18, seed=6, most=6)
    assert len(catalogue.members) > 400  # more than the candidates of an exchange
    sanitiser = sanitiser_of(catalogue, PERTURBED)
    rng = np.random.default_rng(1)
    for scale in (5.0, 40.0, 100.0):
        wanted = np.rint(20 + rng.laplace(scale=scale, size=18))
        fit = sanitiser.fit(wanted, rng)
        assert fit.excess < 3.0  # of a half squared misfit that is in the hundreds and thousands
