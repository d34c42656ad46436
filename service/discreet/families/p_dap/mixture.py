"""One draw of the served adaptive partition, and the proof that it is private.

With a public probability g the answer is drawn from a distribution q that ignores the context;
otherwise from the shortlist H by `ShortlistResponse`, which is told the best arm of H for the cell:

    p(k | C) = (1 - g) * r(k | C) + g * q(k).

Only which arm of H is best depends on the context. Everything else (H, g, q and the arms that are
left) is fixed before the context is looked at.

Proof. r is eps-DP: r(k | C) <= e^eps * r(k | C') for all arms k and cells C, C'. So
    p(k | C) <= (1 - g) * e^eps * r(k | C') + g * q(k) <= e^eps * p(k | C').
More exactly, an arm of H has r in {a, e^eps * a} with a = 1 / (e^eps + h - 1), hence
    p(k | C) / p(k | C') <= ((1 - g) * e^eps * a + g * q(k)) / ((1 - g) * a + g * q(k)),
which falls from e^eps at g = 0 to 1 at g = 1; an arm outside H has the ratio 1. Exploration that
ignores the context therefore costs nothing.

Cells may have epsilons of their own (geometric mode), all at most E, with one H of h arms. The
largest ratio is then that of an arm which is best in C and not in C':
    e^eps_C * (e^eps_C' + h - 1) / (e^eps_C + h - 1).
It grows with both epsilons, so it is at most its value at eps_C = eps_C' = E, which is e^E. An arm
that is best in neither has (e^eps_C' + h - 1) / (e^eps_C + h - 1) <= e^E, and the rest are inverses
of these. The integer weights have rational odds of at most e^eps, which take the place of e^eps in
the same lines. So the draw is E-DP between any two contexts, wherever they lie.

A list is drawn arm by arm. Which arms are left is known from the answer so far, so each draw is
such a mixture again, and the draws compose.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from discreet.families.p_dap.contract import Choice, Floats
from discreet.families.p_dap.outlook import COIN_SIDES, Weights
from discreet.families.shortlist import Slots
from discreet.privacy.choice import RESPONSE_BITS, ShortlistResponse
from discreet.privacy.draw import draw_narrow
from discreet.privacy.noise import NoiseSource

_COIN_BYTES = 4
_UNIFORM_BYTES = RESPONSE_BITS // 8
"""Random bytes of one draw among many: a coin, and more than enough for either way to answer."""


def _lots(noise: NoiseSource, count: int, size: int) -> list[int]:
    """Return so many independent integers of `size` bytes, asked for at once."""
    content = noise.bits(8 * size * count).to_bytes(size * count, "little")
    return [
        int.from_bytes(content[start : start + size], "little")
        for start in range(0, len(content), size)
    ]


_UNLISTED = -1


class _Tables(NamedTuple):
    """The odds in plain numbers: what is looked up in them is quicker than worked out."""

    arms: list[int]
    ends: list[int]
    ranking: list[int]
    position_of: dict[int, int]
    free: dict[int, float]
    paid: tuple[float, float]
    """The share of an arm that is shortlisted and not the best, and of the best."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Odds:
    """What is public about one answer: all of its law but which shortlisted arm is the best.

    `arms` are the arms that are left, ascending, with their weights in q; `ranking` those of them
    that can be shortlisted, of which the first `size` are. `response` None answers the best arm
    itself. People who are offered the same share one of these.
    """

    arms: Slots
    curiosity: Weights
    coin: int
    ranking: Slots
    size: int
    response: ShortlistResponse | None
    curiosity_total: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "curiosity_total", int(self.curiosity.sum()))

    @property
    def shortlist(self) -> Slots:
        """Return H."""
        return self.ranking[: self.size]

    def draw(self, best: int, noise: NoiseSource) -> Choice:
        """Return an arm and the probability that it had; `best` is a position in H."""
        if len(self.arms) == 1:
            return Choice(int(self.arms[0]), 1.0)
        if self.coin and noise.bits(32) < self.coin:
            slot = int(self.arms[draw_narrow(self.curiosity, noise)])
            (listed,) = np.nonzero(self.shortlist == slot)
            position = int(listed[0]) if len(listed) else None
        else:
            position = best
            if self.response is not None:
                size = min(self.size, len(self.ranking))
                position = self.response.choose(best=best, size=size, noise=noise).value
            slot = int(self.ranking[position])
        return Choice(slot, self._propensity(slot, position, best))

    def draw_each(self, bests: Sequence[int], noise: NoiseSource) -> list[Choice]:
        """Return what `draw` would for each of these, by the same law.

        Each takes as many bits whichever way it goes, and all bits are asked for at once.
        """
        if len(self.arms) == 1:
            return [Choice(int(self.arms[0]), 1.0)] * len(bests)
        tables, response, coin = self._tables, self.response, self.coin
        size = min(self.size, len(self.ranking))
        coins = _lots(noise, len(bests), _COIN_BYTES)
        uniforms = _lots(noise, len(bests), _UNIFORM_BYTES)
        choices = []
        for tossed, uniform, best in zip(coins, uniforms, bests, strict=True):
            if tossed < coin:
                drawn = uniform * self.curiosity_total >> RESPONSE_BITS
                slot = tables.arms[bisect_right(tables.ends, drawn)]
                position = tables.position_of.get(slot, _UNLISTED)
            else:
                position = best
                if response is not None:
                    position = response.position_at(uniform, best=best, size=size)
                slot = tables.ranking[position]
            share = tables.free[slot]
            if position != _UNLISTED:
                share += tables.paid[position == best]
            choices.append(Choice(slot, share))
        return choices

    @cached_property
    def _tables(self) -> "_Tables":
        explored = self.coin / COIN_SIDES
        arms, shortlist = self.arms.tolist(), self.shortlist.tolist()
        paid = (0.0, 1.0)
        if self.response is not None:
            size = len(shortlist)
            paid = (
                self.response.probability(is_best=False, size=size),
                self.response.probability(is_best=True, size=size),
            )
        weights = zip(arms, self.curiosity.tolist(), strict=True)
        return _Tables(
            arms=arms,
            ends=self.curiosity.cumsum().tolist(),
            ranking=self.ranking.tolist(),
            position_of={slot: position for position, slot in enumerate(shortlist)},
            free={slot: explored * weight / self.curiosity_total for slot, weight in weights},
            paid=((1.0 - explored) * paid[0], (1.0 - explored) * paid[1]),
        )

    def _propensity(self, slot: int, position: int | None, best: int) -> float:
        """Return the probability of an arm, over both ways of answering it."""
        explored = self.coin / COIN_SIDES
        free = explored * int(self.curiosity[self._place(slot)]) / self.curiosity_total
        if position is None:
            return free
        paid = float(position == best)
        if self.response is not None:
            size = min(self.size, len(self.ranking))
            paid = self.response.probability(is_best=position == best, size=size)
        return free + (1.0 - explored) * paid

    def _place(self, slot: int) -> int:
        """Return where an arm stands among those left."""
        # Ascending slots from 0 on: when none is missing up to here, an arm stands at its own.
        if slot < len(self.arms) and self.arms[slot] == slot:
            return slot
        return int(self.arms.searchsorted(slot))

    def law(self, best: int) -> dict[int, Fraction]:
        """Return every arm's probability exactly, from the integers that are drawn from."""
        explored = Fraction(self.coin, COIN_SIDES)
        law = {
            int(slot): explored * int(weight) / self.curiosity_total
            for slot, weight in zip(self.arms, self.curiosity, strict=True)
        }
        shortlist = self.shortlist
        weights = [int(position == best) for position in range(len(shortlist))]
        if self.response is not None:
            drawn = self.response.weights(best=best, size=len(shortlist))
            weights = [int(weight) for weight in drawn]
        for slot, weight in zip(shortlist, weights, strict=True):
            law[int(slot)] += (1 - explored) * Fraction(weight, sum(weights))
        return law

    def without(self, slot: int) -> "Odds":
        """Return the odds of the next answer of a list, after `slot`."""
        kept = self.arms != slot
        return replace(
            self,
            arms=self.arms[kept],
            curiosity=self.curiosity[kept],
            ranking=self.ranking[self.ranking != slot],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """The law of one answer: the odds, and the cell's utilities of the arms in their ranking."""

    odds: Odds
    utilities: Floats
    best: int = field(init=False)
    """The position in H of the best arm; among equals, of the better ranked one."""

    def __post_init__(self) -> None:
        size = self.odds.size
        best = int(self.utilities[:size].argmax()) if size > 1 else 0
        object.__setattr__(self, "best", best)

    def draw(self, noise: NoiseSource) -> Choice:
        """Return an arm and the probability that it had."""
        return self.odds.draw(self.best, noise)

    def law(self) -> dict[int, Fraction]:
        """Return every arm's probability exactly."""
        return self.odds.law(self.best)

    def without(self, slot: int) -> "Mixture":
        """Return the law of the next answer of a list, after `slot`."""
        return Mixture(self.odds.without(slot), self.utilities[self.odds.ranking != slot])
