"""The ceiling: what the best private rule earns that knows every mean.

Under epsilon it is the shortlist grown on the true means (`discreet.families.shortlist`), answered
by randomised response: with odds e = e^epsilon and h shortlisted items, an answer earns

    ((e - 1) * best of the shortlist + sum of the shortlist) / (e + h - 1)

on average. Unprotected it is the best item. The rule may be another in every stretch, so that it
follows drift and changed items at once; nothing that learns can.
"""

import math

import numpy as np

from discreet.families.shortlist import grow_shortlist
from discreet.research.worlds.environments import Floats

_MOST_VALUES = 1_000_000
"""Rows times items that a shortlist is grown from."""


def private_optimum(means: Floats, epsilon: float | None) -> Floats:
    """Return what the optimum earns at each row of true means, on average over its own draw."""
    if epsilon is None:
        best: Floats = means.max(axis=1)
        return best
    odds = math.exp(epsilon)
    every = max(1, math.ceil(means.size / _MOST_VALUES))
    people = means[::every]
    shares = np.ones(len(people))
    listed = grow_shortlist(means=people, shares=shares, odds=odds * shares)
    known = means[:, listed]
    earned: Floats = ((odds - 1.0) * known.max(axis=1) + known.sum(axis=1)) / (
        odds + len(listed) - 1.0
    )
    return earned
