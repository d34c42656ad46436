"""The released model of the adaptive partition, and decisions made from it.

After P. Zhou, Y. Zhou, D. Wu, H. Jin: Differentially Private Online Learning for Cloud-Based Video
Recommendation with Multimedia Big Data in Social Networks. IEEE Transactions on Multimedia 18(6),
2016. The partition is theirs. The choice is not: their exploration and their sensitivity do not
bear the guarantee that they claim (`discreet.research.published.p_dap` is their own reading and
says why). Here everything that depends on the context goes through one randomised response, and
everything else comes from released sums.

| paper's symbol | name here | range |
|---|---|---|
| x_i(t) | `PartitionQuestion.context` | [0,1]^d |
| d | `dimensions` | >= 1 |
| K, M_i | slots, of which `PartitionQuestion.available` may be answered | >= 0 |
| m | `segments` | >= 2 |
| A, p | `base`, `growth`: a cell splits at A * m^(p l) arrivals | >= 1, > 0 |
| alpha | `similarity`, for geometric privacy only | > 0 |
| epsilon, epsilon_0 | `epsilon`, of one recommended item | (0, 50] |
| l | depth / d | >= 0 |
| M_C, r_kC | arrivals and means of a cell, as released | any, [0,1] |

Why geometric mode charges the deepest level. A cell of level l is answered with
eps_l = epsilon * m^(alpha l), up to a ceiling. Two contexts may lie in cells of any two levels of
the released tree, and both epsilons are at most that of its deepest level, eps_D; by the proof in
`discreet.families.choice` the draw is eps_D-DP. D is part of the released model, hence public.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.families.choice import (
    COIN_SIDES,
    Floats,
    ShortlistOdds,
    Slots,
    Weights,
    filled,
    repeated,
)
from discreet.families.p_dap.statistics import CellStatistics
from discreet.families.questions import Choice, Question, Utilities, utilities_of
from discreet.families.shortlist import grow_shortlist
from discreet.privacy.choice import ShortlistResponse
from discreet.privacy.events import ExactRelease, PrivacyEvent, RandomisedResponse
from discreet.privacy.noise import NoiseSource

OPTIMISM = 0.3
"""Standard errors by which an item's mean is flattered, in the shortlist and in the choice.

An item that was tried little may be better than it looks. All of it comes from released sums, so
it costs nothing.
"""
EPSILON_CEILING = 8.0
"""In geometric mode no level has more than this, or `epsilon` if that is more."""

_MOST_CELLS = 512
_MOST_VALUES = 512_000
"""Cells times items that the shortlist is chosen from; the heaviest cells decide it anyway."""
_CURIOSITY_STEPS = 2**20
_SETTLING = 5.0
"""Observations an item after which half of the early exploration is over."""


@dataclass(slots=True, eq=False)
class PartitionQuestion(Question):
    """A question with its context, and the slots that may be answered, ascending.

    `vendors` are the slots of the vendors that may be drawn beside our items; `whole` says that
    every visible item is available.
    """

    context: tuple[float, ...]
    available: Slots
    vendors: tuple[int, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class ChoiceRule:
    """How much an answer may reveal: `epsilon` None answers the best item itself.

    In geometric mode `similarity` is alpha, by which epsilon grows with the level. Of a list the
    first `slots` are drawn for the visitor, all of it if that is None.
    """

    epsilon: float | None
    similarity: float | None = None
    slots: int | None = None

    def most_drawn(self, limit: int) -> int:
        """Return how many items of a list of `limit` are drawn for the visitor."""
        return limit if self.slots is None else min(limit, self.slots)

    def epsilon_at(self, level: float, segments: int) -> float | None:
        """Return the epsilon of a draw from a cell of this level."""
        if self.epsilon is None or self.similarity is None:
            return self.epsilon
        most = max(self.epsilon, EPSILON_CEILING)
        return float(min(self.epsilon * segments ** (self.similarity * level), most))


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """What the model says about all items together, under one choice rule.

    `ranking` holds every slot, the `size` shortlisted ones first, and `popular` every slot by its
    overall mean. With probability `coin` / 2**32 an answer ignores the context and is drawn by the
    integer weights `curiosity`. `best` is, for every cell, the place in the shortlist of the item
    that is best there; `responses` the randomised response of every level.
    """

    rule: ChoiceRule
    ranking: Slots
    size: int
    popular: Slots
    curiosity: Weights
    coin: int
    best: list[int]
    responses: tuple[ShortlistResponse | None, ...]
    event: PrivacyEvent

    def events(self, draws: int) -> tuple[PrivacyEvent, ...]:
        """Return what so many draws release: the context has no part in it."""
        return repeated(self.event, draws)


class Population:
    """The people whom one set of statistics is about, and how they are answered."""

    def __init__(
        self,
        statistics: CellStatistics,
        *,
        dimensions: int,
        visible: Slots,
        exploration_rate: float,
    ) -> None:
        self.statistics = statistics
        self._dimensions = dimensions
        self._visible = visible
        self._rate = exploration_rate
        self.means, errors = statistics.estimates()
        self.utilities: Floats = self.means + OPTIMISM * errors
        self.levels = [int(depth) // dimensions for depth in statistics.tree.depth.tolist()]
        self.deepest = max(self.levels)
        self._outlooks: dict[tuple[ChoiceRule, tuple[int, ...]], Outlook] = {}
        self._odds: dict[tuple[ChoiceRule, tuple[int, ...], int], ShortlistOdds] = {}

    def outlook(self, rule: ChoiceRule, vendors: tuple[int, ...] = ()) -> Outlook:
        """Return what is public about answers under a rule, beside these vendors."""
        known = self._outlooks.get((rule, vendors))
        if known is None:
            if len(self._outlooks) >= _MOST_OUTLOOKS:
                self._outlooks.clear()
                self._odds.clear()
            known = self._outlooks[rule, vendors] = self._compute(rule, vendors)
        return known

    def _compute(self, rule: ChoiceRule, vendors: tuple[int, ...]) -> Outlook:
        statistics, segments = self.statistics, self.statistics.tree.segments
        slots = statistics.slots
        offered = np.sort(np.concatenate([self._visible, np.array(vendors, dtype=np.intp)]))
        levels = range(self.deepest + 1)
        epsilons = [rule.epsilon_at(level, segments) for level in levels]
        counts = np.maximum((statistics.liked + statistics.disliked).sum(axis=0), 0.0)
        leaves = statistics.tree.leaves
        weights = statistics.shares()
        overall: Floats = weights @ self.means[leaves]
        popular = np.argsort(-overall, kind="stable")
        if not len(offered) or not counts[offered].any():
            shortlist = offered
            promise = np.ones(slots)
            early = 1.0
        else:
            heavy = np.argsort(-weights, kind="stable")
            heavy = heavy[: min(_MOST_CELLS, max(32, _MOST_VALUES // len(offered)))]
            cells = leaves[heavy]
            flattered = np.clip(self.utilities[np.ix_(cells, offered)], 0.0, 1.5)
            odds = [math.exp(min(epsilons[self.levels[cell]] or _GREAT, _GREAT)) for cell in cells]
            listed = grow_shortlist(means=flattered, shares=weights[heavy], odds=np.array(odds))
            shortlist = offered[listed]
            # Worth exploring is what was tried little and does well somewhere.
            promise = np.ones(slots)
            promise[offered] = flattered.max(axis=0) / flattered.max()
            early = 1.0 / (1.0 + counts[offered].sum() / (_SETTLING * len(offered)))
        rank = np.full(slots, 2)  # not offered
        rank[offered] = 1
        rank[shortlist] = 0
        by_class = [shortlist, popular[rank[popular] == 1], popular[rank[popular] == 2]]
        curiosity = np.ceil(_CURIOSITY_STEPS * promise**2 / np.sqrt(1.0 + counts))
        rate = self._rate + (1.0 - self._rate) * early if self._rate else 0.0
        best = self.utilities[:, shortlist].argmax(axis=1) if len(shortlist) else leaves[:0]
        largest = epsilons[-1]
        return Outlook(
            rule=rule,
            ranking=np.concatenate(by_class).astype(np.intp),
            size=max(1, len(shortlist)),
            popular=popular,
            curiosity=curiosity.astype(np.int64),
            coin=round(rate * COIN_SIDES),
            best=best.tolist(),
            responses=tuple(
                None if epsilon is None else ShortlistResponse(epsilon=epsilon)
                for epsilon in epsilons
            ),
            event=ExactRelease() if largest is None else RandomisedResponse(largest),
        )

    def first_choices(self, contexts: Floats, rule: ChoiceRule) -> Slots:
        """Return the slot that an answer is most likely to be, for each context."""
        outlook = self.outlook(rule)
        listed = self._visible if rule.epsilon is None else outlook.ranking[: outlook.size]
        cells = self.statistics.tree.locate(contexts)
        best: Slots = listed[self.utilities[np.ix_(cells, listed)].argmax(axis=1)]
        return best

    def odds(self, outlook: Outlook, offer: Slots, level: int) -> ShortlistOdds:
        """Return what is public about an answer of these slots from a cell of this level."""
        allowed = np.zeros(self.statistics.slots, dtype=np.bool_)
        allowed[offer] = True
        ranking, size = outlook.ranking[allowed[outlook.ranking]], outlook.size
        response = outlook.responses[level]
        if response is None:
            size = len(ranking)
        return ShortlistOdds(
            items=offer,
            curiosity=outlook.curiosity[offer],
            coin=outlook.coin,
            ranking=ranking,
            size=min(size, len(ranking)),
            response=response,
        )

    def decide(
        self, questions: Sequence[PartitionQuestion], rule: ChoiceRule, noise: NoiseSource
    ) -> list[tuple[tuple[Choice, ...], int]]:
        """Return the choices and the cell for each question."""
        contexts = np.array([question.context for question in questions], dtype=np.float64)
        cells, levels = self.statistics.tree.locate(contexts).tolist(), self.levels
        decided: list[tuple[tuple[Choice, ...], int]] = [((), 0)] * len(questions)
        together: dict[tuple[tuple[int, ...], int], list[int]] = {}
        for row, (question, cell) in enumerate(zip(questions, cells, strict=True)):
            if question.limit == 1 and question.whole:
                key = (question.vendors, levels[cell])
                if key in together:
                    together[key].append(row)
                else:
                    together[key] = [row]
            elif len(question.available):
                outlook = self.outlook(rule, question.vendors)
                offer = question.available
                if question.vendors:
                    arms = np.array(question.vendors, dtype=np.intp)
                    offer = np.sort(np.concatenate([offer, arms]))
                odds = self.odds(outlook, offer, self.levels[cell])
                utilities = self.utilities[cell, odds.ranking]
                choices = odds.draw_list(utilities, rule.most_drawn(question.limit), noise)
                if len(choices) < min(question.limit, len(offer)):
                    anybody = self.decide_for_anybody(question, rule, noise)
                    choices = filled(choices, anybody, question.limit)
                decided[row] = (choices, cell)
        for (vendors, level), rows in together.items():
            outlook = self.outlook(rule, vendors)
            odds = self._whole_odds(outlook, vendors, level)
            if not len(odds.items):
                continue
            if odds.response is None:
                bests = [self._best(outlook, odds, cells[row]) for row in rows]
            else:
                best_of = outlook.best
                bests = [best_of[cells[row]] for row in rows]
            drawn = odds.draw(bests, noise)
            for row, choice in zip(rows, drawn, strict=True):
                decided[row] = ((choice,), cells[row])
        return decided

    def answer_law(
        self, questions: Sequence[PartitionQuestion], rule: ChoiceRule, *, paid: bool
    ) -> Floats:
        """Return every slot's probability of being answered first, a row a question."""
        contexts = np.array([question.context for question in questions], dtype=np.float64)
        law = np.zeros((len(questions), self.statistics.slots))
        cells = self.statistics.tree.locate(contexts).tolist()
        for row, (question, cell) in enumerate(zip(questions, cells, strict=True)):
            if not len(question.available):
                continue
            best = 0
            if not paid:
                odds = self._odds_for_anybody(question, rule)
            elif question.whole:
                outlook = self.outlook(rule, question.vendors)
                odds = self._whole_odds(outlook, question.vendors, self.levels[cell])
                best = self._best(outlook, odds, cell)
            else:
                arms = np.array(question.vendors, dtype=np.intp)
                offer = np.sort(np.concatenate([question.available, arms]))
                odds = self.odds(self.outlook(rule, question.vendors), offer, self.levels[cell])
                best = int(self.utilities[cell, odds.shortlist].argmax())
            law[row, odds.items] = odds.shares([best])[0]
        return law

    def explain(self, question: PartitionQuestion, rule: ChoiceRule) -> Utilities:
        """Return what each available item is worth in the visitor's cell, and the shortlist."""
        (cell,) = self.statistics.tree.locate(np.array([question.context])).tolist()
        outlook, slots = self.outlook(rule, question.vendors), question.available
        odds = self.odds(outlook, slots, self.levels[cell])
        return utilities_of(slots, self.utilities[cell, slots], odds.shortlist)

    def _whole_odds(self, outlook: Outlook, vendors: tuple[int, ...], level: int) -> ShortlistOdds:
        """Return the odds of one item of the whole catalogue, which most questions ask for."""
        key = (outlook.rule, vendors, level)
        known = self._odds.get(key)
        if known is None:
            arms = np.array(vendors, dtype=np.intp)
            offer = np.sort(np.concatenate([self._visible, arms]))
            known = self._odds[key] = self.odds(outlook, offer, level)
        return known

    def _best(self, outlook: Outlook, odds: ShortlistOdds, cell: int) -> int:
        if odds.response is None:
            return int(self.utilities[cell, odds.ranking].argmax())
        return outlook.best[cell]

    def expected_regret(self, rule: ChoiceRule) -> float:
        """Return how far one item answered from this model is expected to fall short of the best.

        By the model's own means, over the cells as often as they are visited and over the law of
        the answer. A function of the released model: no visitor has a part in it.
        """
        if not len(self._visible):
            return 0.0
        outlook = self.outlook(rule)
        leaves = self.statistics.tree.leaves
        shares = self.statistics.shares()
        if len(leaves) > _MOST_CELLS:
            heavy = np.argsort(-shares, kind="stable")[:_MOST_CELLS]
            leaves, shares = leaves[heavy], shares[heavy] / shares[heavy].sum()
        means = self.means[np.ix_(leaves, self._visible)]
        explored = outlook.coin / COIN_SIDES
        curiosity = outlook.curiosity[self._visible]
        at_random: Floats = means @ (curiosity / curiosity.sum())
        paid = np.empty(len(leaves))
        for row, cell in enumerate(leaves.tolist()):
            odds = self._whole_odds(outlook, (), self.levels[cell])
            listed = self.means[cell, odds.shortlist]
            best = float(self.means[cell, odds.ranking[self._best(outlook, odds, cell)]])
            if odds.response is None:
                paid[row] = best
            else:
                other = odds.response.probability(is_best=False, size=len(listed))
                more = odds.response.probability(is_best=True, size=len(listed)) - other
                paid[row] = other * listed.sum() + more * best
        expected = explored * at_random + (1.0 - explored) * paid
        return float(shares @ (means.max(axis=1) - expected))

    def decide_for_anybody(
        self, question: PartitionQuestion, rule: ChoiceRule, noise: NoiseSource
    ) -> tuple[Choice, ...]:
        """Return what most people like, or explore. No probability depends on the client."""
        odds = self._odds_for_anybody(question, rule)
        utilities = -np.arange(len(odds.ranking), dtype=np.float64)
        return odds.draw_list(utilities, question.limit, noise)

    def _odds_for_anybody(self, question: PartitionQuestion, rule: ChoiceRule) -> ShortlistOdds:
        outlook = self.outlook(rule)
        allowed = np.zeros(self.statistics.slots, dtype=np.bool_)
        allowed[question.available] = True
        return ShortlistOdds(
            items=question.available,
            curiosity=outlook.curiosity[question.available],
            coin=outlook.coin,
            ranking=outlook.popular[allowed[outlook.popular]],
            size=1,
            response=None,
        )


_MOST_OUTLOOKS = 64
"""Rules and sets of vendors whose outlook is kept; there are few of either."""
_GREAT = 50.0
"""Stands for the epsilon of an exact answer."""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionModel:
    """What was released: statistics of our own users, and of guests (other vendors' users)."""

    own: Population
    guests: Population
