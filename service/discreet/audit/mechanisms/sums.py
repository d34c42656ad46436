"""The claims of continual sums: what the whole stream of releases really costs.

Every release of a stream is a linear function of the values and of the noises drawn so far. Both
functions are read off the shipped code: a stream in which one value changes gives a column a of
the first, a noise that is 1 at one draw and 0 at all others gives a column of the second, N. With
D the squares of the scales asked for, the releases of the two streams are Gaussians of covariance
N D N^T whose means differ by a, and the whole stream costs

    rho = a^T (N D N^T)^-1 a / 2,

infinite if some combination of releases has no noise at all. That is the loss itself, whatever
the trees and factorisations were meant to be; it is computed in rationals and compared with what
is debited for the stream. With Laplace noise and as many draws as releases, the loss is
sum |c_k| / scale_k with N c = a.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from discreet.audit.claims import AuditRun, Claim, Finding, Method
from discreet.audit.enclosures import float_above
from discreet.audit.examine_samples import judge_fit, judge_lower_bound, supremum_evidence
from discreet.audit.prices import epsilon_charged, promise_for_samples, rho_charged
from discreet.audit.rationals import Matrix, solve
from discreet.audit.scripted_noise import ConstantNoise
from discreet.privacy.noise import Integers, NoiseSource
from discreet.research.continual import BinaryTree, Doubling, LaplaceTree, SmoothBinary, SquareRoot
from discreet.research.continual.contract import ContinualSum

Floats = npt.NDArray[np.float64]
Sums = ContinualSum[Any]
Family = Callable[[int], Sums]
"""A continual sum of so many independent coordinates."""


class ImpulseNoise:
    """Noise that is one step at one draw and 0 at all others."""

    production: ClassVar[bool] = False

    def __init__(self, at: int) -> None:
        self._left = at

    def bits(self, count: int) -> int:
        raise AssertionError("a sum is hidden by noise, not by a choice")

    def discrete_laplace(self, *, scale: float, size: int) -> Integers:
        """Return the pulse if it falls into these draws."""
        drawn = np.zeros(size, dtype=np.int64)
        if 0 <= self._left < size:
            drawn[self._left] = 1
        self._left -= size
        return drawn

    def discrete_gaussian(self, *, scale: float, size: int) -> Integers:
        """Return the pulse if it falls into these draws."""
        return self.discrete_laplace(scale=scale, size=size)


def releases(sums: Sums, values: Floats, noise: NoiseSource) -> Floats:
    """Return what is released after each step: one row a step, one column a coordinate."""
    state = sums.start()
    rows = []
    for value in values:
        state = sums.observe(state=state, value=np.full(sums.dimension, value), noise=noise)
        rows.append(sums.release(state=state).value)
    return np.array(rows)


def _column(sums: Sums, values: Floats, noise: NoiseSource) -> list[Fraction]:
    return [Fraction(x) for x in releases(sums, values, noise)[:, 0].tolist()]


def examine_stream(sums: Sums, *, steps: int, values: tuple[float, float]) -> Finding:
    """Compare the exact cost of `steps` releases with what is debited for the stream.

    `values` are two values that one step may have: a step's sensitivity apart, and so chosen that
    rounding to the grid drives them further apart.
    """
    constant = ConstantNoise()
    silent = np.full(steps, values[0])
    still = _column(sums, silent, constant)
    gaussian = bool(constant.gaussian)
    scales = [Fraction(scale) for scale in (constant.gaussian or constant.laplace)]
    claimed = (rho_charged if gaussian else epsilon_charged)(sums.event)
    columns = [
        [b - a for a, b in zip(still, _column(sums, silent, ImpulseNoise(k)), strict=True)]
        for k in range(len(scales))
    ]
    mixing = [[column[row] for column in columns] for row in range(steps)]
    worst = Fraction(0)
    for step in range(steps):
        changed = silent.copy()
        changed[step] = values[1]
        shift = [b - a for a, b in zip(still, _column(sums, changed, ConstantNoise()), strict=True)]
        loss = (_gaussian_loss if gaussian else _laplace_loss)(mixing, scales, shift)
        if loss is None:
            return Finding(float(claimed), math.inf, holds=False)
        worst = max(worst, loss)
    return Finding(float(claimed), float_above(worst), holds=worst <= claimed)


def _gaussian_loss(
    mixing: Matrix, scales: list[Fraction], shift: list[Fraction]
) -> Fraction | None:
    covariance = [
        [
            sum((a * b * t * t for a, b, t in zip(one, other, scales, strict=True)), Fraction(0))
            for other in mixing
        ]
        for one in mixing
    ]
    solved = solve(covariance, shift)
    if solved is None:
        return None
    return sum((a * b for a, b in zip(shift, solved, strict=True)), Fraction(0)) / 2


def _laplace_loss(mixing: Matrix, scales: list[Fraction], shift: list[Fraction]) -> Fraction | None:
    if len(scales) != len(shift):
        raise ValueError("as many draws as releases are needed to name the loss of Laplace noise")
    solved = solve(mixing, shift)
    if solved is None:
        return None
    return sum((abs(c) / t for c, t in zip(solved, scales, strict=True)), Fraction(0))


def examine_variance(run: AuditRun, family: Family, *, steps: int, size: int) -> Finding:
    """Compare the noise of the last release with a normal law of the variance that is stated.

    Coordinates are independent, so one stream of `size` coordinates is a sample of that size.
    """
    sums = family(size)
    last = releases(sums, np.zeros(steps), run.noise)[-1]
    deviation = math.sqrt(sums.variance(steps))
    evidence = supremum_evidence(last, lambda x: np.asarray(ndtr(x / deviation)))
    return judge_fit([evidence], error=run.allowance.share())


def examine_stream_by_sampling(run: AuditRun, family: Family, *, steps: int, size: int) -> Finding:
    """Bound epsilon from below from whole streams of releases that differ in their second value."""
    claimed, delta = promise_for_samples(family(1).event)
    changed = np.zeros(steps)
    changed[1] = 1.0
    samples = [releases(family(size), values, run.noise).T for values in (np.zeros(steps), changed)]
    return judge_lower_bound(*samples, claimed=claimed, delta=delta, error=run.allowance.share())


STEPS = 7
"""Long enough for three levels of a tree and three epochs of doubling."""


def _families(*, step: float = 2.0**-20, sensitivity: float = 1.0) -> Iterator[tuple[str, Family]]:
    for name, kind in (
        ("binary tree, Gaussian", BinaryTree),
        ("binary tree, Laplace", LaplaceTree),
        ("smooth binary", SmoothBinary),
        ("square root", SquareRoot),
    ):

        def family(dimension: int, kind: Callable[..., Sums] = kind) -> Sums:
            return kind(
                horizon=STEPS,
                multiplier=1.0,
                dimension=dimension,
                granularity=step,
                step_sensitivity=sensitivity,
            )

        yield name, family

    def doubling(dimension: int) -> Sums:
        return Doubling(
            family=SmoothBinary,
            multiplier=1.0,
            dimension=dimension,
            granularity=step,
            step_sensitivity=sensitivity,
        )

    yield "doubling smooth binary", doubling


def claims() -> Iterator[Claim]:
    """Every continual sum: its exact cost, its noise, and sampled streams."""
    for step, sensitivity in ((2.0**-20, 1.0), (0.25, 1.125)):
        edge = step / 2 - step / 128
        values = (edge, edge + sensitivity)
        for name, family in _families(step=step, sensitivity=sensitivity):

            def exact(
                _: AuditRun, family: Family = family, values: tuple[float, float] = values
            ) -> Finding:
                return examine_stream(family(1), steps=STEPS, values=values)

            yield Claim(f"{name} sum, steps of {step:g}: whole stream", Method.EXACT, exact)
    for name, family in _families():
        if "Laplace" not in name:

            def fit(run: AuditRun, family: Family = family) -> Finding:
                size = run.size(quick=6_000, full=40_000)
                return examine_variance(run, family, steps=5, size=size)

            yield Claim(f"{name} sum: variance after 5 steps", Method.FIT, fit)

        def sample(run: AuditRun, family: Family = family) -> Finding:
            size = run.size(quick=3_000, full=40_000)
            return examine_stream_by_sampling(run, family, steps=3, size=size)

        yield Claim(f"{name} sum: sampled streams", Method.LOWER_BOUND, sample)
