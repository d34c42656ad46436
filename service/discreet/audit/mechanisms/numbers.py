"""The claims of the mechanisms that add noise to numbers, and of the samplers below them.

Exact: neighbouring inputs, on and off the grid, are released with constant noise that hides
nothing. The rounded values and the scales asked for give the loss in rationals: d discrete Laplace
draws of scales t_i (in steps) under a shift of c_i steps lose exactly sum |c_i| / t_i at most;
discrete Gaussians cost rho = sum c_i**2 / (2 t_i**2) (Canonne, Kamath and Steinke, 2020). And what
the Laplace sampler compares its bits with, to the last of them.

Fit: that the samplers deliver those shapes. Lower bound: that nothing else gives the input away,
low bits of the answer and patterns between its entries included.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from discreet.audit.claims import AuditRun, Claim, Finding, Method
from discreet.audit.enclosures import float_above, log_interval
from discreet.audit.examine_samples import (
    entropy_evidence,
    judge_fit,
    judge_lower_bound,
    supremum_evidence,
)
from discreet.audit.prices import epsilon_charged, promise_for_samples, rho_charged
from discreet.audit.scripted_noise import ConstantNoise
from discreet.privacy.events import Released
from discreet.privacy.laplace import LaplaceSampler, share_below
from discreet.privacy.noise import MAX_SCALE, Integers, NoiseSource, SystemNoise
from discreet.privacy.numeric import GaussianMechanism, LaplaceMechanism

Floats = npt.NDArray[np.float64]
Sampler = Callable[[float, int], Integers]

_COPIES = 500
_SLACK = Fraction(1, 2**80)
"""What enclosures of sixty logarithms may be off by: a ledger rounds up by far more."""


class NumberRelease(Protocol):
    """A mechanism that hides a vector, as `LaplaceMechanism` does."""

    def release(self, values: Any, noise: NoiseSource) -> Released[Any]: ...


def neighbouring_vectors(
    *, size: int, sensitivity: float, step: float, power: int
) -> Iterator[tuple[Floats, Floats]]:
    """Yield vectors at most `sensitivity` apart (L1 for power 1, L2 for 2), around rounding edges.

    Distances are compared in rationals; a pair that rounding of doubles has moved too far apart
    is nobody's neighbour and left out.
    """
    edge = step / 2
    starts = product((0.0, edge - edge / 64, edge + edge / 64), repeat=size)
    moves = [sensitivity * np.eye(size)[place] for place in range(size)]
    moves.append(np.full(size, sensitivity / size ** (1 / power)))
    limit = Fraction(sensitivity) ** power
    for start in starts:
        for move in moves:
            for sign in (1.0, -1.0):
                first = np.array(start)
                for second in (first + sign * move, first + sign * move * (1 - 2.0**-30)):
                    apart = sum(
                        abs(Fraction(a) - Fraction(b)) ** power
                        for a, b in zip(first.tolist(), second.tolist(), strict=True)
                    )
                    if apart <= limit:
                        yield first, second


def _in_steps(mechanism: NumberRelease, values: Floats) -> list[Fraction] | None:
    """Return the values in whole steps as the mechanism rounds them; None if one gets no noise."""
    still = mechanism.release(values, ConstantNoise(0)).value.tolist()
    moved = mechanism.release(values, ConstantNoise(1)).value.tolist()
    steps = []
    for a, b in zip(still, moved, strict=True):
        if a == b:
            return None
        steps.append(Fraction(a) / (Fraction(b) - Fraction(a)))
    return steps


def examine_shift(
    mechanism: NumberRelease, pairs: Sequence[tuple[Floats, Floats]], *, gaussian: bool
) -> Finding:
    """Compare the exact loss of the noise that a mechanism asks for with what is debited."""
    worst, prices = Fraction(0), set()
    for first, second in pairs:
        constant = ConstantNoise()
        event = mechanism.release(first, constant).event
        prices.add(rho_charged(event) if gaussian else epsilon_charged(event))
        scales = constant.gaussian if gaussian else constant.laplace
        ours, theirs = _in_steps(mechanism, first), _in_steps(mechanism, second)
        if ours is None or theirs is None or len(scales) != len(ours):
            return Finding(float(min(prices)), math.inf, holds=False)
        losses = [
            abs(a - b) / Fraction(scale) for a, b, scale in zip(ours, theirs, scales, strict=True)
        ]
        total = sum(x * x / 2 for x in losses) if gaussian else sum(losses)
        worst = max(worst, Fraction(total))
    claimed = min(prices)
    return Finding(float(claimed), float_above(worst), holds=worst <= claimed)


def examine_release_by_sampling(
    run: AuditRun, mechanism: NumberRelease, first: Floats, second: Floats, *, size: int
) -> Finding:
    """Bound epsilon from below by sampling releases of two neighbouring vectors.

    Many copies of a vector are released in one call, because a call costs much more than a draw;
    copies are independent if entries are, which is what is to be seen.
    """
    event = mechanism.release(first, run.noise).event
    samples = []
    for values in (first, second):
        copies = [
            mechanism.release(np.tile(values, _COPIES), run.noise).value
            for _ in range(size // _COPIES)
        ]
        samples.append(np.concatenate(copies).reshape(-1, len(values)))
    claimed, delta = promise_for_samples(event)
    return judge_lower_bound(*samples, claimed=claimed, delta=delta, error=run.allowance.share())


def laplace_cdf(scale: float) -> Callable[[Floats], Floats]:
    """Return the distribution function of the discrete Laplace: P(z) ~ exp(-|z|/scale)."""
    ratio = math.exp(-1 / scale)

    def cdf(x: Floats) -> Floats:
        z = np.floor(x)
        tail = np.exp(-np.where(z < 0, -z, z + 1) / scale) / (1 + ratio)
        return np.where(z < 0, tail, 1 - tail)

    return cdf


def gaussian_cdf(scale: float) -> Callable[[Floats], Floats]:
    """Return the distribution function of the discrete Gaussian: P(z) ~ exp(-z^2/(2 scale^2)).

    Above 512 steps by the normal law at half steps: they differ by less than 1 / (24 scale**2),
    which is far below what any sample here can see.
    """
    if scale > 512:
        return lambda x: np.asarray(ndtr((np.floor(x) + 0.5) / scale), dtype=np.float64)

    reach = math.ceil(40 * scale) + 1
    points = np.arange(-reach, reach + 1)
    mass = np.exp(-((points / scale) ** 2) / 2)
    table = np.concatenate([[0.0], np.cumsum(mass) / mass.sum()])

    def cdf(x: Floats) -> Floats:
        at = np.clip(np.floor(x) + reach + 1, 0, 2 * reach + 1).astype(np.int64)
        return np.asarray(table[at], dtype=np.float64)

    return cdf


def examine_sampler(
    run: AuditRun,
    sampler: Sampler,
    cdf: Callable[[Floats], Floats],
    *,
    scale: float,
    size: int,
) -> Finding:
    """Compare draws with their distribution: as a whole, in bins, and in their last three bits."""
    drawn = sampler(scale, size)
    sample = drawn.astype(np.float64)
    # Cuts at every integer near the middle of a narrow distribution, at quantiles of a wide one.
    cuts = np.unique(np.floor(scale * np.linspace(-4, 4, 33)))
    binned = np.searchsorted(cuts, sample, side="left")
    counts = np.bincount(binned, minlength=len(cuts) + 1).astype(np.int64)
    edges = np.concatenate([[0.0], cdf(cuts), [1.0]])
    evidence = [
        supremum_evidence(sample, cdf),
        entropy_evidence(counts, np.maximum(np.diff(edges), 0.0)),
    ]
    if scale >= 8:
        # So wide a distribution is uniform on remainders modulo 8, up to 1e-8 for the Gaussian.
        last = np.bincount(np.mod(drawn, 8), minlength=8).astype(np.int64)
        evidence.append(entropy_evidence(last, _remainders(cdf, scale)))
    return judge_fit(evidence, error=run.allowance.share())


def examine_digits(sampler: LaplaceSampler, *, scale: float) -> Finding:
    """Compare the exact loss of a step, by the chances of a sampler's digits, with 1 / scale.

    From g to g + 1 some lowest digits turn from 1 to 0 and the next one from 0 to 1, so the chance
    of g changes by the odds of that one over those of all below it; that of a difference of two
    numbers by no more. Of the words that are compared first every bit counts, and behind them those
    of `share_below`.
    """
    claimed = 1 / Fraction(scale) + _SLACK
    worst = low = high = Fraction(0)
    for (exponent, beside), word in zip(sampler._chances, sampler._first.tolist(), strict=True):
        bits = 64 * (4 + int(exponent) // 40)
        share, behind = share_below(exponent, bits, beside=beside), bits - 64
        if share >> behind != word:
            share = word << behind
        if not share:
            return Finding(float_above(claimed), math.inf, holds=False)
        least, most = (
            log_interval(Fraction(share + more, 2**bits - beside * (share + more)), digits=128)
            for more in (0, 1)
        )
        worst = max(worst, high - least.low, most.high - low)
        low, high = low + least.low, high + most.high
    return Finding(float_above(claimed), float_above(worst), holds=worst <= claimed)


def _remainders(cdf: Callable[[Floats], Floats], scale: float) -> Floats:
    """Return the probabilities of the remainders modulo 8."""
    if scale > 512:
        return np.full(8, 1 / 8)
    points = np.arange(-math.ceil(40 * scale), math.ceil(40 * scale) + 1, dtype=np.float64)
    mass = cdf(points) - cdf(points - 1)
    shares = np.bincount(np.mod(points, 8).astype(np.int64), weights=mass, minlength=8)
    return np.asarray(shares / shares.sum(), dtype=np.float64)


def _laplace(scale: float, size: int) -> Integers:
    return SystemNoise().discrete_laplace(scale=scale, size=size)


def _gaussian(scale: float, size: int) -> Integers:
    return SystemNoise().discrete_gaussian(scale=scale, size=size)


def claims() -> Iterator[Claim]:
    """Yield the claims of the samplers, and of the mechanisms above them."""
    yield from _sampler_claims()
    yield from _number_claims()


def _sampler_claims() -> Iterator[Claim]:
    """The two samplers of production, at scales from half a step to the widest."""
    for scale in (2.0**-9, 0.5, 3.0, 100.25, 1.7 * 2**20, MAX_SCALE):

        def exactly(_: AuditRun, scale: float = scale) -> Finding:
            return examine_digits(LaplaceSampler(scale), scale=scale)

        name = f"discrete Laplace digits, scale {scale:g}: epsilon of a step"
        yield Claim(name, Method.EXACT, exactly)
    for name, sampler, law in (
        ("discrete Laplace", _laplace, laplace_cdf),
        ("discrete Gaussian", _gaussian, gaussian_cdf),
    ):
        for scale in (0.5, 3.0, 100.25, 1.7 * 2**20, 2.0**45):

            def examine(
                run: AuditRun,
                sampler: Sampler = sampler,
                law: Callable[[float], Callable[[Floats], Floats]] = law,
                scale: float = scale,
            ) -> Finding:
                size = run.size(quick=10_000, full=200_000)
                return examine_sampler(run, sampler, law(scale), scale=scale, size=size)

            yield Claim(f"{name} sampler, scale {scale:g}", Method.FIT, examine)


def _number_claims() -> Iterator[Claim]:
    """Laplace and Gaussian mechanisms, one number and three, on a fine and on a coarse grid."""
    for gaussian in (False, True):
        power, name = (2, "Gaussian") if gaussian else (1, "Laplace")
        for size, step in ((1, 2.0**-20), (3, 2.0**-20), (3, 0.25)):
            mechanism: NumberRelease = (
                GaussianMechanism(scale=2.0, sensitivity=1.0, granularity=step)
                if gaussian
                else LaplaceMechanism(scale=2.0, sensitivity=1.0, granularity=step)
            )
            pairs = list(neighbouring_vectors(size=size, sensitivity=1.0, step=step, power=power))

            def examine(
                _: AuditRun,
                mechanism: NumberRelease = mechanism,
                pairs: list[tuple[Floats, Floats]] = pairs,
                gaussian: bool = gaussian,
            ) -> Finding:
                return examine_shift(mechanism, pairs, gaussian=gaussian)

            column = "rho" if gaussian else "epsilon"
            numbers = "1 number" if size == 1 else f"{size} numbers"
            yield Claim(
                f"{name} noise on {numbers}, steps of {step:g}: {column}",
                Method.EXACT,
                examine,
            )
    laplace = LaplaceMechanism(scale=1.0, sensitivity=1.0)
    gaussian_noise = GaussianMechanism(scale=1.0, sensitivity=1.0)
    for name, chosen in (("Laplace", laplace), ("Gaussian", gaussian_noise)):

        def sample(run: AuditRun, chosen: NumberRelease = chosen) -> Finding:
            return examine_release_by_sampling(
                run,
                chosen,
                np.array([0.0, 0.0]),
                np.array([0.0, 1.0]),
                size=run.size(quick=10_000, full=200_000),
            )

        yield Claim(f"{name} noise on 2 numbers: sampled neighbours", Method.LOWER_BOUND, sample)
