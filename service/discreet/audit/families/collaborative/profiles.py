"""The claims of profile perturbation, for the audit: exact losses of every item of two catalogues.

What is compared with the charge is read off the shipped `perturb`. A history is released with and
without each item, with noise that stands still. The noisy counts then differ by what has to be
explained away, the scales say at what price, and the whole release, items and all, has to come out
the same once the noise makes up for the difference. If it does not, no noise covers the item.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np

from discreet.audit.claims import Claim, Finding, Method, PlantedFault
from discreet.audit.enclosures import float_above
from discreet.audit.prices import epsilon_charged
from discreet.families.collaborative.on_device.catalogue import Catalogue, Concerns, Level, scope_of
from discreet.families.collaborative.on_device.perturbation import ProfileRelease, perturb
from discreet.privacy.events import PureRelease
from discreet.privacy.noise import Integers, NoiseSource

_EXAMPLE = {
    "item 1": ("1", "2", "3"),
    "item 2": ("1", "3"),
    "item 3": ("1", "3", "4"),
    "item 4": ("1", "5"),
    "item 5": ("2", "4"),
}
_LEVELS = {"1": Level.ALL, "2": Level.NO, "5": Level.ALL}
"""Item 4 is open, 1 and 5 are hidden, and 2 and 3 are in an "all" category and protected."""
_EPSILON = 0.7


class Perturb(Protocol):
    """Something that releases a profile, as `perturb` does."""

    def __call__(
        self,
        *,
        history: Collection[str],
        catalogue: Catalogue,
        concerns: Concerns,
        epsilon: float,
        noise: NoiseSource,
    ) -> ProfileRelease: ...


class _Still:
    """Noise of stated steps, the same bits, and a note of every scale."""

    production: ClassVar[bool] = False

    def __init__(self, steps: Collection[int] = ()) -> None:
        self._steps = list(steps)
        self.scales: list[float] = []

    def bits(self, count: int) -> int:
        return 1_234_567 & ((1 << count) - 1)

    def discrete_laplace(self, *, scale: float, size: int) -> Integers:
        self.scales.extend([scale] * size)
        taken, self._steps = self._steps[:size], self._steps[size:]
        return np.array(taken + [0] * (size - len(taken)), dtype=np.int64)

    def discrete_gaussian(self, *, scale: float, size: int) -> Integers:
        raise AssertionError("a profile is hidden by Laplace noise")


def _catalogues() -> Iterator[Catalogue]:
    yield Catalogue.of(_EXAMPLE)
    # Every pair and triple of six categories, twice over: groups of two to choose from.
    names = "123456"
    sets = [
        tuple(sorted(names[at] for at in range(6) if mask >> at & 1))
        for mask in range(1, 64)
        if mask.bit_count() <= 3
    ]
    yield Catalogue.of({f"{''.join(each)} {copy}": each for each in sets for copy in "ab"})


def _loss_of_item(
    mechanism: Perturb, catalogue: Catalogue, concerns: Concerns, history: set[str], item: str
) -> tuple[Fraction | None, Fraction]:
    """Return what an item loses, or None if it cannot be explained away; and the charge."""

    def release(items: set[str], noise: _Still) -> ProfileRelease:
        return mechanism(
            history=items, catalogue=catalogue, concerns=concerns, epsilon=_EPSILON, noise=noise
        )

    still = _Still()
    with_it, without = release(history | {item}, still), release(history - {item}, _Still())
    assert with_it.event is not None
    charge = epsilon_charged(with_it.event)
    shifts = [with_it.noisy[name] - without.noisy[name] for name in with_it.noisy]
    if len(still.scales) != len(shifts):
        return None, charge
    if release(history - {item}, _Still(shifts)) != with_it:
        return None, charge
    loss = sum(
        (abs(shift) / Fraction(scale) for shift, scale in zip(shifts, still.scales, strict=True)),
        Fraction(0),
    )
    return loss, charge


def examine_items(mechanism: Perturb, concerns: Mapping[str, Level]) -> Finding:
    """Compare the loss of every item that is not open with the charge; hidden ones lose nothing."""
    chosen = Concerns.choose(concerns)
    worst, claimed = Fraction(0), Fraction(0)
    for catalogue in _catalogues():
        scope = scope_of(catalogue, chosen)
        open_groups, protected = set(scope.open.tolist()), set(scope.protected.tolist())
        history = set(catalogue.items[1::2])
        for item in catalogue.items:
            group = catalogue.group_of[item]
            if group in open_groups:
                continue
            loss, claimed = _loss_of_item(mechanism, catalogue, chosen, history, item)
            if loss is None or (loss > 0 and group not in protected):
                return Finding(float(claimed), math.inf, holds=False)
            worst = max(worst, loss)
    return Finding(float(claimed), float_above(worst), holds=worst <= claimed)


def claims() -> Iterator[Claim]:
    """Yield the claims of profile perturbation."""
    name = "profile perturbation"
    yield Claim(f"{name}, overall: epsilon", Method.EXACT, lambda _: examine_items(perturb, {}))
    yield Claim(
        f"{name}, by category: epsilon", Method.EXACT, lambda _: examine_items(perturb, _LEVELS)
    )


def _exact_where_all(
    *,
    history: Collection[str],
    catalogue: Catalogue,
    concerns: Concerns,
    epsilon: float,
    noise: NoiseSource,
) -> ProfileRelease:
    """M-DPDP as published: an "all" category shows its count over all of its items."""
    release = perturb(
        history=history, catalogue=catalogue, concerns=concerns, epsilon=epsilon, noise=noise
    )
    exact = {
        name: count
        for (name, count), level in zip(
            catalogue.profile(history).items(), catalogue.levels(concerns), strict=True
        )
        if level is Level.ALL
    }
    return replace(release, noisy={**release.noisy, **exact})


def _true_items_first(
    *,
    history: Collection[str],
    catalogue: Catalogue,
    concerns: Concerns,
    epsilon: float,
    noise: NoiseSource,
) -> ProfileRelease:
    """Honest counts, filled with the history's own items as far as they go."""
    release = perturb(
        history=history, catalogue=catalogue, concerns=concerns, epsilon=epsilon, noise=noise
    )
    drawn: list[str] = []
    for members, count in zip(catalogue.members, catalogue.tally(release.drawn), strict=True):
        own = [item for item in members if item in history]
        drawn += [*own, *(item for item in members if item not in own)][: int(count)]
    return replace(release, drawn=frozenset(drawn))


def _plain_sensitivity_of_one(
    *,
    history: Collection[str],
    catalogue: Catalogue,
    concerns: Concerns,
    epsilon: float,
    noise: NoiseSource,
) -> ProfileRelease:
    """Every count with noise for itself alone, as if an item were in one category."""
    widest = int(catalogue.incidence.sum(axis=1).max())
    release = perturb(
        history=history,
        catalogue=catalogue,
        concerns=concerns,
        epsilon=epsilon * widest,
        noise=noise,
    )
    return replace(release, epsilon=epsilon, event=PureRelease(epsilon, "too little"))


def faults() -> Iterator[PlantedFault]:
    """Yield mistakes that a profile's release can make with noise that is right."""
    yield PlantedFault(
        'exact counts of "all" categories that have protected items',
        lambda _: examine_items(_exact_where_all, _LEVELS),
    )
    yield PlantedFault(
        "items drawn from the history first", lambda _: examine_items(_true_items_first, {})
    )
    yield PlantedFault(
        "an item taken to be in one category",
        lambda _: examine_items(_plain_sensitivity_of_one, {}),
    )
