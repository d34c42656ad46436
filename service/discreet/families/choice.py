"""What an answer reveals about the visitor: one private draw, after the model.

Three ways to draw, and how to turn each off:

`ShortlistOdds`   where aggregates give a shortlist: the best of it for this visitor, or another, by
                  randomised response, mixed with a draw that ignores the visitor.
`UtilityChoice`   where every request brings its own candidates: the exponential mechanism on
                  utilities in [0, 1].
`BestChoice`      the same, where they are few: the best of them, or another, by randomised
                  response. Its odds are e^epsilon where those of the other are e^(epsilon / 2) at
                  the most; but what is nearly as good as the best has no more than the worst.

The shortlist's draw, and the proof that it is private. With a public probability g the answer is
drawn from a distribution q that ignores the visitor; otherwise from the shortlist H by
`ShortlistResponse`, which is told the best item of H for the visitor:

    p(k | x) = (1 - g) * r(k | x) + g * q(k).

Only which item of H is best depends on the visitor x. Everything else (H, g, q and the items that
are left) comes from the released model. r is eps-DP: r(k | x) <= e^eps * r(k | x') for all items k
and visitors x, x'. So

    p(k | x) <= (1 - g) * e^eps * r(k | x') + g * q(k) <= e^eps * p(k | x').

Exploration that ignores the visitor therefore costs nothing. Visitors may have epsilons of their
own, all at most E, with one H of h items (finer cells, in geometric mode). The largest ratio is
then that of an item which is best for x and not for x':
    e^eps_x * (e^eps_x' + h - 1) / (e^eps_x + h - 1).
It grows with both epsilons, so it is at most its value at eps_x = eps_x' = E, which is e^E. An item
that is best for neither has (e^eps_x' + h - 1) / (e^eps_x + h - 1) <= e^E, and the rest are
inverses of these. The integer weights have rational odds of at most e^eps, which take the place of
e^eps in the same lines. So the draw is E-DP between any two visitors.

A list is drawn item by item. Which items are left is known from the answer so far, so each draw is
such a mixture again, and the draws compose.

Only the first few items of a list are drawn for the visitor (`personal_slots` in a document), and
only they are paid for. Behind them stands a list that was made for anybody, from the released model
and fresh noise, without the items that were drawn (`filled`). The list for anybody is independent
of the visitor, and taking items away that the answer shows is post-processing of the draws. So n
draws at epsilon cost n epsilon, whatever the length of the list. Which places are personal is
public: always the first ones.
"""

import struct
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.families.questions import Choice
from discreet.privacy.choice import RESPONSE_BITS, ExponentialMechanism, ShortlistResponse
from discreet.privacy.events import (
    ExactRelease,
    ExponentialChoice,
    PrivacyEvent,
    RandomisedResponse,
    Repeated,
)
from discreet.privacy.noise import NoiseSource

Floats = npt.NDArray[np.float64]
Slots = npt.NDArray[np.intp]
Weights = npt.NDArray[np.int64]

COIN_SIDES = 2**32
COIN_BYTES = 4
_UNIFORM_BYTES = RESPONSE_BITS // 8
"""Random bytes of one draw: a coin, and more than enough for either way to answer."""
_NOT_LISTED = -1


def repeated(event: PrivacyEvent, draws: int) -> tuple[PrivacyEvent, ...]:
    """Return what so many draws release together."""
    if draws == 0:
        return ()
    return (event,) if draws == 1 else (Repeated(event, draws),)


def filled(drawn: Sequence[Choice], anybody: Sequence[Choice], limit: int) -> tuple[Choice, ...]:
    """Return what was drawn for the visitor, then what is left of a list for anybody.

    `anybody` must be made without looking at the visitor, as if nothing had been drawn: `limit`
    different items, or all there are.
    """
    taken = {choice.slot for choice in drawn}
    rest = [choice for choice in anybody if choice.slot not in taken]
    return (*drawn, *rest[: max(0, limit - len(drawn))])


class _Tables(NamedTuple):
    """The odds in plain numbers: what is looked up in them is quicker than worked out."""

    items: list[int]
    ends: list[int]
    ranking: list[int]
    position_of: dict[int, int]
    free: dict[int, float]
    paid: tuple[float, float]
    """The share of an item that is shortlisted and not the best, and of the best."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ShortlistOdds:
    """What is public about one answer: all of its law but which shortlisted item is the best.

    `items` are the slots that are left, ascending, with their weights in q (`curiosity`);
    `ranking` those of them that can be shortlisted, of which the first `size` are. With probability
    `coin` / 2**32 the answer ignores the visitor. `response` None answers the best item itself.
    Visitors who are offered the same share one of these.
    """

    items: Slots
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

    def draw(self, bests: Sequence[int], noise: NoiseSource) -> list[Choice]:
        """Return an item for each visitor, given the position in H of the visitor's best one.

        Each draw takes as many bits whichever way it goes, and all bits are asked for at once.
        """
        if len(self.items) == 1:
            return [Choice(int(self.items[0]), 1.0)] * len(bests)
        tables, response, coin = self._tables, self.response, self.coin
        size = min(self.size, len(self.ranking))
        coins = uniform_integers(noise, len(bests), COIN_BYTES)
        uniforms = uniform_integers(noise, len(bests), _UNIFORM_BYTES)
        items, ends, ranking, position_of, free, paid = tables
        choices = []
        for tossed, uniform, best in zip(coins, uniforms, bests, strict=True):
            if tossed < coin:
                drawn = uniform * self.curiosity_total >> RESPONSE_BITS
                slot = items[bisect_right(ends, drawn)]
                position = position_of.get(slot, _NOT_LISTED)
            else:
                position = best
                if response is not None:
                    position = response.position_at(uniform, best=best, size=size)
                slot = ranking[position]
            share = free[slot]
            if position != _NOT_LISTED:
                share += paid[position == best]
            choices.append(Choice(slot, share))
        return choices

    def draw_list(self, utilities: Floats, limit: int, noise: NoiseSource) -> tuple[Choice, ...]:
        """Return up to `limit` different items; `utilities` are of the ranking's items."""
        odds, choices = self, []
        for _ in range(min(limit, len(self.items))):
            best = int(utilities[: odds.size].argmax()) if odds.size > 1 else 0
            choice = odds._draw_one(best, noise)
            choices.append(choice)
            if len(odds.items) > 1:
                utilities = utilities[odds.ranking != choice.slot]
                odds = odds.without(choice.slot)
        return tuple(choices)

    def _draw_one(self, best: int, noise: NoiseSource) -> Choice:
        """Return what `draw` returns for one visitor, without tables that serve for one draw."""
        if len(self.items) == 1:
            return Choice(int(self.items[0]), 1.0)
        (tossed,) = uniform_integers(noise, 1, COIN_BYTES)
        (uniform,) = uniform_integers(noise, 1, _UNIFORM_BYTES)
        ends = self.curiosity.cumsum()
        if tossed < self.coin:
            drawn = uniform * self.curiosity_total >> RESPONSE_BITS
            place = int(ends.searchsorted(drawn, side="right"))
            slot = int(self.items[place])
            found = (self.shortlist == slot).nonzero()[0]
            position = int(found[0]) if len(found) else _NOT_LISTED
        else:
            position = best
            if self.response is not None:
                size = min(self.size, len(self.ranking))
                position = self.response.position_at(uniform, best=best, size=size)
            slot = int(self.ranking[position])
            place = int(self.items.searchsorted(slot))
        share = self.coin / COIN_SIDES * int(self.curiosity[place]) / self.curiosity_total
        if position != _NOT_LISTED:
            share += self._paid[position == best]
        return Choice(slot, share)

    @property
    def _paid(self) -> tuple[float, float]:
        """The share of an item that is shortlisted and not the best, and of the best."""
        visited, size = 1.0 - self.coin / COIN_SIDES, len(self.shortlist)
        if self.response is None:
            return (0.0, visited)
        return (
            visited * self.response.probability(is_best=False, size=size),
            visited * self.response.probability(is_best=True, size=size),
        )

    @cached_property
    def _tables(self) -> _Tables:
        explored = self.coin / COIN_SIDES
        items, shortlist = self.items.tolist(), self.shortlist.tolist()
        weights = zip(items, self.curiosity.tolist(), strict=True)
        return _Tables(
            items=items,
            ends=self.curiosity.cumsum().tolist(),
            ranking=self.ranking.tolist(),
            position_of={slot: position for position, slot in enumerate(shortlist)},
            free={slot: explored * weight / self.curiosity_total for slot, weight in weights},
            paid=self._paid,
        )

    def shares(self, bests: Sequence[int]) -> Floats:
        """Return the probability of every one of `items`, a row for each visitor's best position.

        Rounded to double precision; `law` is exact, and slower.
        """
        if len(self.items) == 1:
            return np.ones((len(bests), 1))
        explored = self.coin / COIN_SIDES * self.curiosity / self.curiosity_total
        shares = np.tile(explored, (len(bests), 1))
        columns = self.items.searchsorted(self.shortlist)
        other, best = self._paid
        shares[:, columns] += other
        shares[np.arange(len(bests)), columns[np.asarray(bests, dtype=np.intp)]] += best - other
        return shares

    def law(self, best: int) -> dict[int, Fraction]:
        """Return every item's probability exactly, from the integers that are drawn from."""
        explored = Fraction(self.coin, COIN_SIDES)
        law = {
            int(slot): explored * int(weight) / self.curiosity_total
            for slot, weight in zip(self.items, self.curiosity, strict=True)
        }
        shortlist = self.shortlist
        weights = [int(position == best) for position in range(len(shortlist))]
        if self.response is not None:
            drawn = self.response.weights(best=best, size=len(shortlist))
            weights = [int(weight) for weight in drawn]
        for slot, weight in zip(shortlist, weights, strict=True):
            law[int(slot)] += (1 - explored) * Fraction(weight, sum(weights))
        return law

    def without(self, slot: int) -> "ShortlistOdds":
        """Return the odds of the next answer of a list, after `slot`."""
        kept = self.items != slot
        return replace(
            self,
            items=self.items[kept],
            curiosity=self.curiosity[kept],
            ranking=self.ranking[self.ranking != slot],
        )


def uniform_integers(noise: NoiseSource, count: int, size: int) -> list[int]:
    """Return so many independent integers of `size` bytes, asked for at once."""
    content = noise.bits(8 * size * count).to_bytes(size * count, "little")
    if size == COIN_BYTES:
        return list(struct.unpack(f"<{count}I", content))
    return [
        int.from_bytes(content[start : start + size], "little")
        for start in range(0, len(content), size)
    ]


class UtilityChoice:
    """Draws from utilities in [0, 1] by the exponential mechanism; exactly if `epsilon` is None.

    The utilities of every item may change by the whole range between two visitors, so the
    sensitivity is 1. `discreet.privacy.choice.ExponentialMechanism` has the proof for the integers
    that are really drawn from. With `epsilon` None the best are taken, ties in the order given:
    nothing is protected, and the events say so.

    Of a list the first `slots` are drawn, all of it if that is None; `filled` adds the rest.
    """

    def __init__(self, epsilon: float | None, slots: int | None = None) -> None:
        self.epsilon = epsilon
        self.slots = None if epsilon is None else slots
        self.by_order = epsilon is None
        """Whether only the order of utilities counts, so that they need no range."""
        self._mechanism = None if epsilon is None else ExponentialMechanism(epsilon=epsilon)

    def events(self, *, available: int, limit: int) -> tuple[PrivacyEvent, ...]:
        """Return what an answer releases: nothing if there is at most one item to choose from."""
        draws = min(self.most_drawn(limit), available - 1)
        if draws <= 0:
            return ()
        if self._mechanism is None:
            return (ExactRelease(),)
        return repeated(ExponentialChoice(self._mechanism.epsilon), draws)

    def most_drawn(self, limit: int) -> int:
        """Return how many items of a list of `limit` are drawn, if there are enough."""
        return limit if self.slots is None else min(limit, self.slots)

    def probabilities(self, utilities: Floats) -> Floats:
        """Return with which probability each position is drawn first."""
        if self._mechanism is None:
            certain: Floats = (np.arange(len(utilities)) == utilities.argmax()).astype(np.float64)
            return certain
        return self._mechanism.probabilities(np.clip(utilities, 0.0, 1.0))

    def draw(self, utilities: Floats, limit: int, noise: NoiseSource) -> tuple[Choice, ...]:
        """Return the positions of different items, with their propensities: `most_drawn(limit)`,
        or all there are."""
        count = min(self.most_drawn(limit), len(utilities))
        if self._mechanism is None:
            best = np.argsort(-utilities, kind="stable")[:count]
            return tuple(Choice(int(position), 1.0) for position in best)
        return self._drawn_after((), np.clip(utilities, 0.0, 1.0), count, noise)

    def draw_each(
        self, utilities: Floats, limits: Sequence[int], noise: NoiseSource
    ) -> list[tuple[Choice, ...]]:
        """Return what `draw` returns for each row of utilities; the first items together."""
        items = utilities.shape[1]
        if self._mechanism is None or not utilities.size:
            pairs = zip(utilities, limits, strict=True)
            return [self.draw(row, limit, noise) for row, limit in pairs]
        values = np.clip(utilities, 0.0, 1.0)
        firsts, shares = self._mechanism.choose_each(utilities=values, noise=noise)
        choices: list[tuple[Choice, ...]] = [
            (choice,) for choice in map(Choice, firsts, shares.tolist())
        ]
        for row, limit in enumerate(limits):
            count = min(self.most_drawn(limit), items)
            if count > 1:
                choices[row] = self._drawn_after(choices[row], values[row], count, noise)
        return choices

    def _drawn_after(
        self, choices: tuple[Choice, ...], values: Floats, count: int, noise: NoiseSource
    ) -> tuple[Choice, ...]:
        """Return the choices and as many further ones as make `count`."""
        assert self._mechanism is not None
        left = np.ones(len(values), dtype=np.int64)
        left[[choice.slot for choice in choices]] = 0
        drawn = list(choices)
        while len(drawn) < count:
            shares = self._mechanism.probabilities(values, left)
            position = self._mechanism.choose(utilities=values, noise=noise, base=left).value
            drawn.append(Choice(position, float(shares[position])))
            left[position] = 0
        return tuple(drawn)


class BestChoice(UtilityChoice):
    """Draws the best, or another, by randomised response over all that may be answered.

    Who may be answered is public. Which of them is best depends on the visitor, and is all that
    does: `discreet.privacy.choice.ShortlistResponse` has the proof. Of equals the first is best.
    """

    def __init__(self, epsilon: float, slots: int | None = None) -> None:
        super().__init__(None)
        self.epsilon, self.slots = epsilon, slots
        self._response = ShortlistResponse(epsilon=epsilon)

    def events(self, *, available: int, limit: int) -> tuple[PrivacyEvent, ...]:
        """Return what an answer releases: nothing if there is at most one item to choose from."""
        draws = min(self.most_drawn(limit), available - 1)
        return repeated(RandomisedResponse(self._response.epsilon), max(0, draws))

    def draw_each(
        self, utilities: Floats, limits: Sequence[int], noise: NoiseSource
    ) -> list[tuple[Choice, ...]]:
        """Return what `draw` returns for each row of utilities."""
        return [self.draw(row, limit, noise) for row, limit in zip(utilities, limits, strict=True)]

    def draw(self, utilities: Floats, limit: int, noise: NoiseSource) -> tuple[Choice, ...]:
        """Return the positions of different items, with their propensities."""
        ranking = np.argsort(-utilities, kind="stable").tolist()
        count = min(self.most_drawn(limit), len(ranking))
        if not count:
            return ()
        drawn = self._response.choose_several(ranking=ranking, count=count, noise=noise).value
        shares = self._response.propensities(ranking=ranking, chosen=drawn)
        return tuple(map(Choice, drawn, shares))

    def probabilities(self, utilities: Floats) -> Floats:
        """Return with which probability each position is drawn first."""
        size = len(utilities)
        shares = np.full(size, self._response.probability(is_best=False, size=size))
        shares[utilities.argmax()] = self._response.probability(is_best=True, size=size)
        return shares
