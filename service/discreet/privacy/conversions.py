"""From one currency of privacy to another, always erring on the side of the protected.

zCDP (Bun and Steinke 2016) is the currency of the ledger, (epsilon, delta) the currency of
promises. Canonne, Kamath and Steinke (2020, Proposition 12) show that rho-zCDP implies
(epsilon, delta)-DP with, for *every* order alpha > 1,

    epsilon = rho*alpha + ln(1 - 1/alpha) - (ln(delta) + ln(alpha)) / (alpha - 1).

Writing x = alpha - 1 the right-hand side is

    f(x) = rho*(1 + x) - ln(1 + 1/x) - (ln(delta) + ln(1 + x)) / x,
    f'(x) = rho - (ln(1/delta) - ln(1 + x)) / x**2,

so f falls until rho*x**2 + ln(1 + x) = ln(1/delta) and rises afterwards: one minimum, found by
Newton's method in a few steps. Because every x is valid, an x that is slightly off costs a little
tightness and never validity. What must be guarded is only the evaluation at the x that was found:
each term is a handful of correctly working operations, so the sum of the terms' magnitudes times
`_ROUNDING` bounds what floating point can have lost, and it is added on the safe side.

The continuous Gaussian mechanism has an exact curve (Balle and Wang 2018, Theorem 8):

    delta(epsilon) = Phi(s/(2 sigma) - epsilon*sigma/s)
                     - exp(epsilon) * Phi(-s/(2 sigma) - epsilon*sigma/s).

Our noise is the discrete Gaussian. The zCDP statements above hold for it as they stand, for every
step size (Canonne, Kamath and Steinke, Theorem 4); the exact curve holds up to `lattice_gap`.
"""

import math

from discreet.errors import InvalidArgument
from discreet.privacy.normal import cumulative, erfcx

_ROUNDING = 2.0**-48
"""Thirty-two units in the last place: several times what any expression here can lose."""

_LEAST = 1e-300
"""What is too small for a double is still not nothing."""


def check_delta(delta: float, *, zero_allowed: bool = False, name: str = "delta") -> None:
    """Refuse a delta outside (0, 1), or outside [0, 1) where pure privacy is meant."""
    if zero_allowed and delta == 0:
        return
    if not 0 < delta < 1:
        bracket = "[0, 1)" if zero_allowed else "(0, 1)"
        raise InvalidArgument(name, f"must lie in {bracket}")


def check_epsilon(epsilon: float, *, name: str = "epsilon") -> None:
    """Refuse an epsilon that is not a finite number above 0."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InvalidArgument(name, "must be finite and greater than 0")


def _check_rho(rho: float) -> None:
    if math.isnan(rho) or rho < 0:
        raise InvalidArgument("rho", "must be a number that is not negative")


def _best_order(rho: float, log_inverse_delta: float) -> float:
    """Return the x = alpha - 1 that minimises f, near enough.

    The start lies right of the root, since each term alone already reaches ln(1/delta) there, and
    both bounds keep Newton's first step from leaving half the start. The clamp guards the rest.
    """
    target = log_inverse_delta
    x = math.sqrt(target / rho) if rho > target * 1e-280 else 1e140
    if target < 300:
        x = min(x, math.expm1(target))
    for _ in range(40):
        slope = 2 * rho * x + 1 / (1 + x)
        step = (rho * x * x + math.log1p(x) - target) / slope
        following = min(max(x - step, x / 8), x * 8)
        if abs(following - x) <= 1e-10 * x:
            return following
        x = following
    return x


def zcdp_epsilon(*, rho: float, delta: float) -> float:
    """Return an epsilon such that rho-zCDP implies (epsilon, delta)-DP, rounded up.

    Infinite rho gives infinity; rho 0 gives 0.
    """
    _check_rho(rho)
    check_delta(delta)
    if rho == 0 or math.isinf(rho):
        return rho
    log_inverse_delta = -math.log(delta)
    x = _best_order(rho, log_inverse_delta)
    moment = rho * (1 + x)
    gain = math.log1p(1 / x)
    price = log_inverse_delta / x
    discount = math.log1p(x) / x
    slack = _ROUNDING * (moment + gain + price + discount)
    return max(0.0, moment - gain + price - discount + slack)


def zcdp_rho(*, epsilon: float, delta: float) -> float:
    """Return the largest rho for which `zcdp_epsilon` stays within epsilon, rounded down.

    epsilon(rho) is a minimum of lines in rho, hence concave: Newton's method meets every tangent
    below the target, so each iterate after the first is itself a valid answer.
    """
    check_epsilon(epsilon)
    check_delta(delta)
    log_inverse_delta = -math.log(delta)
    root = epsilon / (math.sqrt(log_inverse_delta + epsilon) + math.sqrt(log_inverse_delta))
    rho = root * root
    for _ in range(40):
        x = _best_order(rho, log_inverse_delta)
        terms = (epsilon, math.log1p(1 / x), log_inverse_delta / x, math.log1p(x) / x)
        exact = terms[0] + terms[1] - terms[2] + terms[3]
        following = max((exact - _ROUNDING * sum(terms)) / (1 + x), 0.0)
        if following <= rho * (1 + 1e-14):
            rho = following
            break
        rho = following
    while rho > 0 and zcdp_epsilon(rho=rho, delta=delta) > epsilon:
        rho *= 1 - 2.0**-46
    return rho


def zcdp_delta(*, rho: float, epsilon: float) -> float:
    """Return a delta such that rho-zCDP implies (epsilon, delta)-DP, rounded up, at most 1.

    ln(delta) <= x*((1 + x)*rho - epsilon) - x*ln(1 + 1/x) - ln(1 + x) for every x > 0; the right
    side is convex in x and its slope (1 + 2x)*rho - epsilon - ln(1 + 1/x) is increasing.
    """
    _check_rho(rho)
    if math.isnan(epsilon) or epsilon < 0:
        raise InvalidArgument("epsilon", "must be a number that is not negative")
    if rho == 0 or math.isinf(epsilon):
        return 0.0
    if math.isinf(rho):
        return 1.0
    low, high = -300.0, 300.0
    for _ in range(80):
        middle = (low + high) / 2
        x = math.exp(middle)
        if (1 + 2 * x) * rho - epsilon - math.log1p(1 / x) < 0:
            low = middle
        else:
            high = middle
    x = math.exp((low + high) / 2)
    terms = (x * (1 + x) * rho, x * epsilon, x * math.log1p(1 / x), math.log1p(x))
    exponent = terms[0] - terms[1] - terms[2] - terms[3] + _ROUNDING * sum(terms)
    return min(1.0, max(math.exp(min(exponent, 0.0)) * (1 + _ROUNDING), _LEAST))


def gaussian_delta(*, multiplier: float, epsilon: float) -> float:
    """Return the delta of continuous Gaussian noise at epsilon, rounded up.

    `multiplier` is the noise's standard deviation divided by the L2 sensitivity. With
    a = 1/(2 multiplier) - epsilon*multiplier and b = a - 1/multiplier the two normal tails share
    the factor exp(-a**2/2), because b**2 = a**2 + 2*epsilon; taking it out leaves a difference of
    two scaled complementary error functions that neither overflows nor vanishes.
    """
    if not (math.isfinite(multiplier) and multiplier > 0):
        raise InvalidArgument("multiplier", "must be finite and greater than 0")
    if math.isnan(epsilon) or epsilon < 0:
        raise InvalidArgument("epsilon", "must be a number that is not negative")
    if math.isinf(epsilon):
        return 0.0
    half = 0.5 / multiplier
    shift = epsilon * multiplier
    a = half - shift
    b = -half - shift
    common = 0.5 * math.exp(-0.5 * a * a)
    second = common * erfcx(-b / math.sqrt(2))
    first = cumulative(a) if a > 0 else common * erfcx(-a / math.sqrt(2))
    # exp(-a*a/2) feels the rounding of `a`, whose parts may be larger than their difference.
    doubt = 2.0**-50 * (4 + (1 + abs(a)) * (half + shift))
    return min(1.0, max(first - second, 0.0) + (first + second) * doubt + _LEAST)


def lattice_gap(*, steps: float, coordinates: int) -> float:
    """Bound the total variation distance of discrete Gaussian noise from rounded Gaussian noise.

    `steps` is the noise's scale in steps of the lattice, `coordinates` how many independent draws
    are released. Rounding Gaussian noise of a lattice-valued query to the lattice is
    post-processing, so the rounded mechanism has the exact Gaussian curve; the discrete one then
    has it with (1 + exp(epsilon)) * gap added to delta.

    Proof. Let s be the scale in steps, p the discrete Gaussian and q the rounded one. Then
    q(z)/p(z) = Z/(s*sqrt(2 pi)) * integral over |u| <= 1/2 of exp(-u**2/(2 s**2))*cosh(z*u/s**2).
    By Poisson summation Z >= s*sqrt(2 pi), cosh >= 1 and exp(-v) >= 1 - v, hence
    q(z) >= (1 - 1/(24 s**2)) * p(z) for every z, and summing the positive part of p - q gives at
    most 1/(24 s**2). Distances of independent (or adaptively chosen) coordinates add.
    """
    if not (math.isfinite(steps) and steps > 0):
        raise InvalidArgument("steps", "must be finite and greater than 0")
    if coordinates < 1:
        raise InvalidArgument("coordinates", "must be at least 1")
    return min(1.0, coordinates / (24 * steps * steps) * (1 + _ROUNDING))
