"""Our private choice in front of somebody else's model.

A rival's estimates go in, one private draw comes out: the shortlist is grown on the estimates for
recent visitors, and the visitor's own best item of it is answered by randomised response, mixed
with a little exploration (`discreet.families.choice`). The epsilon is that of the answer in the
visitor's context *for a fixed model*. What the model and the shortlist say about earlier visitors
is not protected: the rival is given that for nothing.
"""

import math

import numpy as np

from discreet.families.choice import COIN_SIDES, ShortlistOdds
from discreet.families.shortlist import grow_shortlist
from discreet.privacy.choice import ShortlistResponse
from discreet.research.noise import SeededNoise
from discreet.research.suite.stretches import Places
from discreet.research.worlds.environments import Floats

EXPLORED = 0.02
"""The share of answers that ignore the visitor, as in our own learners."""


class PrivateChoice:
    """Draws items by a rival's estimates, privately."""

    def __init__(self, epsilon: float, *, seed: int) -> None:
        self._response = ShortlistResponse(epsilon=epsilon)
        self._odds = math.exp(epsilon)
        self._noise = SeededNoise(np.random.SeedSequence([seed, 77]))
        self._law: ShortlistOdds | None = None

    def renew(self, estimates: Floats, offered: Places) -> None:
        """Choose the shortlist: a row a recent visitor, a column an item on offer."""
        shares = np.ones(len(estimates))
        listed = grow_shortlist(
            means=np.clip(estimates, 0.0, 1.5), shares=shares, odds=self._odds * shares
        )
        rest = np.setdiff1d(np.arange(len(offered)), listed)
        self._law = ShortlistOdds(
            items=np.arange(len(offered)),
            curiosity=np.ones(len(offered), dtype=np.int64),
            coin=round(EXPLORED * COIN_SIDES),
            ranking=np.concatenate([listed, rest]),
            size=len(listed),
            response=self._response,
        )

    def draw(self, estimates: Floats) -> tuple[Places, Floats]:
        """Return a column for every visitor, and the probability with which it was drawn."""
        assert self._law is not None
        bests = estimates[:, self._law.shortlist].argmax(axis=1).tolist()
        choices = self._law.draw(bests, self._noise)
        return (
            np.array([choice.slot for choice in choices], dtype=np.intp),
            np.array([choice.propensity for choice in choices]),
        )
