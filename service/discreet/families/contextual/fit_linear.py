"""Estimates in linear features: a slope and a level for every item.

A Gram matrix of every item's own would be large, and lost in its noise. Instead, contexts are
assumed to spread alike around each item's own mean: with m_k the mean of psi among those who were
shown item k, and C the covariance within items, from the products of everybody's,

    G_k = n_k [ 1, m_k^T ; m_k, C + m_k m_k^T ].

With r_k the sum of f (y - what is common), q the variance of a reward and s that of the noise in an
entry of r_k, r_k = G_k theta_k + e, e of covariance q G_k + s B. So the likelihood has precision
G_k (q G_k + s B)^-1 G_k. All in features f = (1, psi - mean), the mean being everybody's; B is what
that makes of the noise of the constant and of psi, whose variances `spaces` gives.

With exact feedback items may have kept their own products, and G_k is known: people who are shown
an item are not like everybody once the model chooses. What is missing in it is guessed as above.
"""

import numpy as np

from discreet.families.choice import Floats
from discreet.families.contextual.estimates import (
    WIDER,
    Estimates,
    common_part,
    differing,
    empirical_bayes,
    overall_rate,
    posterior,
)
from discreet.families.contextual.spaces import LinearSpace
from discreet.families.contextual.sums import ContextualSums
from discreet.privacy.normal import quantiles

_ASSUMED = np.array([0.02, 0.05])
"""How much items are assumed to differ, in level and in slope."""
_ITEMS_FITTED = 128
_PEOPLE = 300
_TINY = 1e-9
_JITTER = 1e-6
_LACKING = 1e-3
_ROUNDS = 3
"""How often what is common and how much items differ are fitted to each other."""
_LEAST_SPREAD = 0.1
"""In any direction, in the mean of all, where noise hides it."""
_MOST_ROOTS = 500_000
"""Numbers of all items' covariances that deciding can read in time."""
_SHIFT_PART = 0.3
"""How much of the spread of psi may be between the items' means."""


def fit_linear(space: LinearSpace, sums: ContextualSums, slots: np.ndarray) -> Estimates:
    """Return estimates for the items in these slots; others have none."""
    size = space.entries
    groups = np.minimum(np.arange(size), 1)
    noisy = bool(np.any(sums.variance[slots]))
    total = max(float(sums.arrivals[0]), 1.0)
    centre = sums.arrivals[1:] / total
    if noisy:
        centre = centre / max(1.0, float(np.linalg.norm(centre)))
    everybody = _calmed(
        space.matrix(sums.products) / total - np.outer(centre, centre),
        sums.products_variance / space.factors[0] ** 2 / total**2,
    )
    count, variance = sums.count[slots, 0], sums.variance[slots, 0]
    thinned = np.where(count > 0, sums.count2[slots, 0] / np.maximum(count, _TINY), 1.0)
    count = np.maximum(count, _TINY)
    liked = _centred(sums.liked[slots], centre)
    shown = _centred((sums.liked + sums.disliked)[slots], centre)
    # Through noise, what is shown most must not stand for all items.
    differ = _ASSUMED[0] * count**2 if noisy else 0.0
    trusted = count / (differ + count * 0.2 * thinned + variance + _TINY)
    rate = overall_rate(float((trusted * liked[:, 0]).sum()), float((trusted * count).sum()), 10.0)
    assumed = differing(_ASSUMED, rate)
    noise = variance * ((1.0 - rate) ** 2 + rate**2)
    spread = max(rate * (1.0 - rate), 0.003) * np.maximum(thinned, _TINY)
    # Where the items' own people lie, as far as noise lets one see.
    between = _SHIFT_PART * float(np.trace(everybody)) / max(1, size - 1)
    hidden = 2.0 * variance * space.uneven[-1]
    seen = count**2 * between / (count**2 * between + hidden + _TINY)
    shift = shown[:, 1:] / count[:, None] * seen[:, None]
    if noisy:
        shift = shift / np.maximum(1.0, np.linalg.norm(shift, axis=1))[:, None]
    parts = count / count.sum()
    within = _floored(
        everybody - (shift * parts[:, None]).T @ shift,
        max(0.1 * float(np.linalg.eigvalsh(everybody)[0]), _TINY),
    )
    own = sums.own[slots] if sums.own.size and not noisy else np.zeros((len(slots), 0))
    surplus = liked - rate * shown
    # What is common to all items.
    weight = 1.0 / (spread + noise / count + _TINY)
    whole = np.zeros((size, size))
    whole[0, 0] = 1.0
    whole[1:, 1:] = everybody
    strength = float((weight * count).sum())
    observed = (weight[:, None] * surplus).sum(axis=0)
    common = np.linalg.solve(
        whole * strength + np.diag(2.0 / assumed[groups]) + _JITTER * np.eye(size), observed
    )
    # The noise of centred entries: theirs, and that of the constant's times the centre.
    moved_by = np.eye(size)
    moved_by[1:, 0] = -centre
    blurred = (moved_by * space.uneven) @ moved_by.T

    def likelihood(part: "np.ndarray | slice") -> tuple[Floats, Floats]:
        n, moved = count[part], shift[part]
        gram = np.empty((len(n), size, size))
        gram[:, 0, 0] = n
        gram[:, 0, 1:] = gram[:, 1:, 0] = n[:, None] * moved
        gram[:, 1:, 1:] = _scatter(space, own[part], n, moved + centre, within)
        gram[:, 1:, 1:] += n[:, None, None] * moved[:, :, None] * moved[:, None, :]
        if not noisy:
            return gram / spread[part][:, None, None], surplus[part] / spread[part][:, None]
        covariance = spread[part][:, None, None] * gram
        covariance += (noise[part] + _JITTER)[:, None, None] * blurred
        solved = np.linalg.solve(
            covariance, np.concatenate([gram, surplus[part][:, :, None]], axis=2)
        )
        precision: Floats = gram @ solved[:, :, :size]
        evidence: Floats = np.einsum("kij,kj->ki", gram, solved[:, :, size])
        return precision, evidence

    most = np.argsort(-count, kind="stable")[:_ITEMS_FITTED]
    precision, evidence = likelihood(most)
    variances = assumed
    for _ in range(_ROUNDS if noisy else 1):
        if noisy:
            common = common_part(precision, evidence, variances[groups], 2.0 / assumed[groups])
        left = evidence - precision @ common
        variances = empirical_bayes(precision, left, groups, assumed, variances)
    wide = variances if noisy else WIDER * variances
    # Variances are kept in directions in which people spread, scaled by how much items differ.
    scale = np.sqrt(wide[groups])
    _, turned = np.linalg.eigh(scale[1:, None] * everybody * scale[1:])
    into = np.zeros((size, size))
    into[0, 0] = scale[0]
    into[1:, 1:] = scale[1:, None] * turned
    back = np.zeros((size, size))
    back[0, 0] = 1.0 / scale[0]
    back[1:, 1:] = turned / scale[1:, None]
    base = common + np.append(rate, np.zeros(size - 1))
    coefficients = np.tile(base, (sums.slots, 1))
    kept = np.ones((sums.slots, size))
    levels = np.full(sums.slots, wide[0])
    roots = None
    if own.size and sums.slots * size**2 <= _MOST_ROOTS:
        roots = np.repeat(np.diag(scale)[:, None, :], sums.slots, axis=1)
    for start in range(0, len(slots), _ITEMS_FITTED):
        part = slice(start, start + _ITEMS_FITTED)
        precision, evidence = likelihood(part)
        left = evidence - precision @ common
        theta, covariance = posterior(precision, left, groups, variances)
        if not noisy:
            _, covariance = posterior(precision, left, groups, wide)
        coefficients[slots[part]] = base + theta
        levels[slots[part]] = covariance[:, 0, 0]
        if roots is not None:
            roots[:, slots[part]] = np.linalg.cholesky(covariance).transpose(1, 0, 2)
        halves = np.einsum("ij,kil->kjl", back, covariance, optimize=True)
        kept[slots[part]] = np.einsum("kjl,lj->kj", halves, back, optimize=True)
    coefficients[:, 0] -= coefficients[:, 1:] @ centre
    to_centre = np.eye(size)
    to_centre[0, 1:] = -centre
    if roots is not None:
        roots = np.einsum("ij,jkl->ikl", to_centre, roots)
    people = _people(space, centre, everybody)
    mixed = (people @ to_centre @ into) ** 2
    first = float((mixed.sum(axis=1)).mean())
    return Estimates(
        coefficients=coefficients,
        mix=to_centre @ into,
        spread=kept,
        people=people,
        shares=np.full(len(people), 1.0 / len(people)),
        known=1.0 - np.clip(mixed.mean(axis=0) @ kept.T / max(first, _TINY), 0.0, 1.0),
        levels=np.sqrt(np.maximum(levels, 0.0)),
        roots=roots,
    )


def _floored(matrix: Floats, least: float) -> Floats:
    """Return a symmetric matrix whose eigenvalues are at least this."""
    values, vectors = np.linalg.eigh(matrix)
    floored: Floats = (vectors * np.maximum(values, max(least, _TINY))) @ vectors.T
    return floored


def _calmed(matrix: Floats, variance: float) -> Floats:
    """Return a covariance without as much of its noise as can be known.

    `variance` is that of the noise on the diagonal; beside it is half of that. The matrix is drawn
    to the same spread in all directions by the part of what differs from it that noise accounts
    for (Ledoit and Wolf 2004), and no direction is left without some spread.
    """
    size = len(matrix)
    if not variance:
        return _floored(matrix, 0.0)
    level = max(float(np.trace(matrix)) / size, _TINY)
    apart = matrix - level * np.eye(size)
    hidden = variance * (size + 0.5 * size * (size - 1))
    kept = max(0.0, 1.0 - hidden / max(float((apart**2).sum()), _TINY))
    return _floored(level * np.eye(size) + kept * apart, _LEAST_SPREAD * level)


def _scatter(space: LinearSpace, own: Floats, count: Floats, mean: Floats, like: Floats) -> Floats:
    """Return the scatter of psi around each item's mean; `like` for records without products."""
    if not own.size:
        return count[:, None, None] * like
    kept = np.minimum(own[:, 0], count)
    found: Floats = space.matrix(own[:, 1:])
    found -= kept[:, None, None] * mean[:, :, None] * mean[:, None, :]
    lacking = count - kept
    for place in np.flatnonzero(lacking > _LACKING * count):
        # The mean is not that of the records whose products were kept.
        found[place] = _floored(found[place], 0.0) + lacking[place] * like
    return found


def _centred(rows: Floats, centre: Floats) -> Floats:
    moved = rows.copy()
    moved[:, 1:] -= rows[:, :1] * centre
    return moved


def _people(space: LinearSpace, centre: Floats, covariance: Floats) -> Floats:
    """Return rows of people who could come: normal, with the released mean and covariance."""
    values, vectors = np.linalg.eigh(covariance)
    drawn = _directions(_PEOPLE, space.size)
    psi = centre + drawn @ (vectors * np.sqrt(np.clip(values, 0.0, 1.0))).T
    if space.longest is None:
        return np.hstack([np.ones((len(psi), 1)), psi])
    lengths = np.maximum(1.0, np.linalg.norm(psi, axis=1))
    return np.hstack([np.ones((len(psi), 1)), psi / lengths[:, None]])


def _directions(count: int, size: int) -> Floats:
    """Return points that are spread like independent standard normals, the same every time.

    They are an additive recurrence through the normal's quantiles: no randomness has a part in a
    model but the noise that protects.
    """
    steps = np.sqrt(np.array(_primes(size), dtype=np.float64))
    fractions = np.mod(0.5 + np.outer(np.arange(1, count + 1), steps), 1.0)
    points: Floats = quantiles(np.clip(fractions, 1e-6, 1.0 - 1e-6))
    return points


def _primes(count: int) -> list[int]:
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % prime for prime in found):
            found.append(number)
        number += 1
    return found
