"""What is worth exploring: numbers behind the draws that ignore the visitor.

All of it follows from the released model, so it costs nothing.
"""

import math

import numpy as np
import numpy.typing as npt

from discreet.families.choice import Floats, Slots, Weights
from discreet.privacy.normal import cumulatives

FIRST_TRIED = 50
"""Items that are tried before the first release if feedback is private. What a release tells about
an item grows with the square of its visits as long as noise is larger than chance: a few visits of
each of many items tell nothing about any. The others have their turn after it, as untried ones.

With 16 the first thousand visits after that release earn 0.01 to 0.07 of the ceiling more, and all
later ones less: an item that everybody likes is then among the others more often than not."""

TRIED = 10.0
"""Visits after which an item has been tried, as far as noise lets one tell."""
SEEN = 0.5
"""What an item was shown once counts more than, unless that is long ago."""

_ROOM = 50.0
"""Items that contend, at least, where feedback is exact;"""
_GROWTH = 0.5
"""and the same for each root of visits, from 10,000 visits on."""
_LOOKS = 4.0
"""First looks at the others are this share of answers over the root of visits. So the first 1,000
visits give about 250 of them a look, and 12,000 about 900."""

MOST_TRIED = 0.25
"""The largest share of the answers between two releases that may try items in earnest."""
_TRIED_WITH_TIME = 12.0
"""With traffic the largest share becomes this over the root of visits."""

_UNLIKELY, _UNLIKE = 2.0, 0.25
"""After n items were tried, the next is unlike them with the first over n + 2 as probability, and
then differs by the second as deviation (around a rate of a half). Through noise the first items
tell little about how much others differ, and without this, one that everybody likes would never be
tried if those are much the same."""
TRIALS = np.array([0.02, 0.04, 0.07, 0.1])
"""What an item may get of the answers between two releases, if it is tried in earnest."""
_FIRST_WEIGHT = 2**20


def first_curiosity(slots: int, visible: Slots, *, exact: bool) -> Weights:
    """Return the weights of draws that explore while nothing has been released."""
    curiosity = np.ones(slots, dtype=np.int64)
    if not exact and len(visible) > FIRST_TRIED:
        curiosity[visible[:FIRST_TRIED]] = _FIRST_WEIGHT
    return curiosity


def contenders(shown: Floats, levels: Floats, visits: float) -> npt.NDArray[np.bool_]:
    """Return among which items answers are chosen, where feedback is exact.

    Those that have been tried, and the others with the best `levels` as far as there is room: of
    many items it is better to know some well (Bayati, Hamidi, Johari and Khosravi 2020: as many as
    the root of all visits). `shown` is how often each was.
    """
    tried = shown >= TRIED
    room = max(_ROOM, _GROWTH * math.sqrt(max(visits, 0.0)))
    chosen: npt.NDArray[np.bool_] = tried.copy()
    chosen[np.argsort(np.where(tried, -np.inf, -levels), kind="stable")[: int(room)]] = True
    return chosen


def first_looks(visits: float) -> float:
    """Return the share of answers for items that do not contend and were never shown."""
    return min(0.5, _LOOKS / math.sqrt(max(visits, 1.0)))


def expected_improvement(ahead: Floats, errors: Floats) -> Floats:
    """Return the mean of the positive part of normals with these means and deviations."""
    scaled = ahead / np.maximum(errors, 1e-9)
    density = np.exp(-0.5 * scaled**2) / math.sqrt(2.0 * math.pi)
    improvement: Floats = errors * (scaled * cumulatives(scaled) + density)
    return improvement


def listed_worth(shares: Floats, among: Floats, odds: float) -> float:
    """Return what answers from a shortlist are worth; `among` are the means of its items."""
    best, every = float(shares @ among.max(axis=1)), float(shares @ among.sum(axis=1))
    return float(((odds - 1.0) * best + every) / (odds + among.shape[1] - 1.0))


def private_gains(
    shares: Floats, means: Floats, improvement: Floats, among: Floats, errors: Floats, odds: float
) -> tuple[Floats, float]:
    """Return what knowing each item could gain for answers that are private, and what they are
    worth now; `among` are the means of the listed items, `errors` those of the items' levels.

    An item can join the shortlist, which is then obeyed less, or be all of it. Either could turn
    out better than it looks by the standard error of its level.
    """
    size, worth = among.shape[1], listed_worth(shares, among, odds)
    levels, improved = shares @ means, shares @ improvement
    joined = (worth * (odds + size - 1.0) + (odds - 1.0) * improved + levels) / (odds + size)
    gains = np.maximum(
        expected_improvement(joined - worth, errors * odds / (odds + size)),
        expected_improvement(levels - worth, errors),
    )
    return gains + 1e-12, worth


def worthwhile_trials(
    levels: Floats,
    errors: Floats,
    worth: float,
    *,
    untried: npt.NDArray[np.bool_],
    tastes: Floats,
    visits: float,
    horizon: float,
    variance: float,
) -> Floats:
    """Return the share of answers that each item should get until the next release, to be known
    better: 0 for most, and together at most `MOST_TRIED`, and less with more traffic.

    Through noise of `variance`, n visits tell as much as n**2 / (n q + variance) exact ones, q the
    variance of a reward. So a few items are tried in earnest, of the `visits` until then, and only
    those whose trial costs less than knowing them can gain in `horizon` visits after it. An item
    that is `untried` may be unlike all others, which those cannot tell. `tastes` is what a trial of
    each size (a row) could gain for a visit by telling to whom an item appeals.
    """
    spread = max(worth * (1.0 - worth), 0.003)
    noise = variance * ((1.0 - worth) ** 2 + worth**2)
    shown = visits * TRIALS[:, None]
    told = shown**2 / (shown * spread + noise)
    gained = horizon * expected_improvement(levels - worth, _learned(errors, told))
    unlike = np.where(untried, _UNLIKE * 4.0 * spread, 0.0)
    surprising = _UNLIKELY / (2.0 + float(np.count_nonzero(~untried)))
    gained += surprising * horizon * expected_improvement(levels - worth, _learned(unlike, told))
    gained += horizon * tastes
    net = gained - shown * np.maximum(worth - levels, 0.0)
    worthwhile = net / TRIALS[:, None]
    sizes, by_visit = worthwhile.argmax(axis=0), worthwhile.max(axis=0)
    shares = np.zeros(len(levels))
    left = min(MOST_TRIED, _TRIED_WITH_TIME / math.sqrt(horizon))
    for item in np.argsort(-by_visit, kind="stable"):
        if by_visit[item] <= 0.0 or left <= 0.0:
            break
        shares[item] = min(float(TRIALS[sizes[item]]), left)
        left -= shares[item]
    return shares


def told_of_tastes(
    unknown: Floats, *, size: int, length: float, shown: Floats, noise: float, spread: float
) -> Floats:
    """Return what part of an item's unknown tastes so many visits tell, a row each.

    Contexts have `size` numbers, and `length` is the mean square of their distance from their mean;
    `unknown` is the variance of an item's means among people that is due to its tastes. For each
    number, n visits tell the slope with precision (n l)^2 / (n l q + noise), l = `length` / `size`.
    """
    each = length / size
    told = shown[:, None] ** 2 * each / (shown[:, None] * each * spread + noise)
    odds = unknown * told / size
    part: Floats = odds / (1.0 + odds)
    return part


def _learned(errors: Floats, told: Floats) -> Floats:
    """Return the deviation of what will be thought of items, known so well, once told so much."""
    learned: Floats = errors**2 * np.sqrt(told / (1.0 + errors**2 * told))
    return learned
