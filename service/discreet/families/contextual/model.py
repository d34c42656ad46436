"""The released model of `contextual`, and decisions made from it.

Linear models with optimism (Li, Chu, Langford, Schapire: A contextual-bandit approach to
personalized news article recommendation, WWW 2010) whose statistics are released with noise
(Shariff and Sheffet: Differentially private contextual linear bandits, NeurIPS 2018), with priors
fitted to all items together, and behind a private choice.

| symbol | name here | range |
|---|---|---|
| x | `ContextualQuestion.context` | [0,1]^d |
| f(x) | a row of the space (`spaces`) | |
| c_k | `Estimates.coefficients` | |
| H | `CatalogueOutlook.listed`, the shortlist | items |
| g | `CatalogueOutlook.coin` / 2**32 | [rate, 1] |
| q | `CatalogueOutlook.curiosity` | integers |

Everything but f(x) comes from released sums. What depends on f(x) is which item of the shortlist is
best, and it goes through the randomised response of `discreet.families.choice`.

How much is explored. What could be gained by knowing more is the expected improvement of an item
over the best one that is listed, for those who come. An answer ignores the visitor with a
probability that falls with the square of that, never below `rate`. Then half of the draws go to
items that have hardly been tried, if there are any; the rest by expected improvement, with a fifth
for all items alike.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from discreet.families.choice import (
    COIN_SIDES,
    Floats,
    ShortlistOdds,
    Slots,
    Weights,
    filled,
    repeated,
)
from discreet.families.contextual.estimates import Estimates
from discreet.families.contextual.exploring import (
    expected_improvement,
    first_curiosity,
    listed_worth,
    private_gains,
    worthwhile_trials,
)
from discreet.families.contextual.spaces import CellSpace, LinearSpace
from discreet.families.contextual.sums import ContextualSums
from discreet.families.questions import Choice, Question
from discreet.families.shortlist import grow_shortlist
from discreet.privacy.choice import ShortlistResponse
from discreet.privacy.events import ExactRelease, PrivacyEvent, RandomisedResponse
from discreet.privacy.noise import NoiseSource

OPTIMISM = 0.6
"""Standard errors by which an item's mean is flattered, in the shortlist and in the choice;"""
NOISY_OPTIMISM = 0.3
"""less where feedback is private: noise hides what a few more visits would tell;"""
UNPROTECTED_OPTIMISM = 2.0
"""more where neither dial is on: no draw explores by chance, and no noise hides what was found."""
TRIED = 10.0
"""Visits after which an item has been tried, as far as noise lets one tell."""

_EAGERNESS = 1.0
"""All answers explore while knowing more could gain as much as the best listed items earn;"""
_EAGERNESS_EXACT_CELLS = 2.0
"""in cells half as much, which say less about each other; not with noise, which leaves much unknown
that exploring will not tell soon."""
_IGNORANT = 4
"""In noisy cells answers explore at least as the unknown part of the items' levels to this power: a
release of hardly any feedback, after a night without visitors, is noise and must not end exploring.
How items differ between cells has no part in it: fine differences stay unknown for long."""
_ALIKE = 0.2
_CURIOSITY_STEPS = 2**20
_GREAT = 50.0
"""Stands for the epsilon of an exact answer."""


@dataclass(slots=True, eq=False)
class ContextualQuestion(Question):
    """A question with its context, and the slots that may be answered, ascending.

    `whole` says that every visible item is available.
    """

    context: tuple[float, ...]
    available: Slots
    whole: bool = False


@dataclass(frozen=True, slots=True)
class AnswerRule:
    """How much an answer may reveal: `epsilon` None answers the best item itself.

    Of a list the first `slots` are drawn for the visitor, all of it if that is None.
    """

    epsilon: float | None
    slots: int | None = None

    def most_drawn(self, limit: int) -> int:
        """Return how many items of a list of `limit` are drawn for the visitor."""
        return limit if self.slots is None else min(limit, self.slots)

    def events(self, draws: int) -> tuple[PrivacyEvent, ...]:
        """Return what so many draws release: the context has no part in it."""
        event = ExactRelease() if self.epsilon is None else RandomisedResponse(self.epsilon)
        return repeated(event, draws)


@dataclass(frozen=True, slots=True, eq=False)
class CatalogueOutlook:
    """What the model says about all items together.

    `ranking` holds every slot, the `listed` ones first; `popular` every slot by its mean among
    those who come. `odds` are those of one item of the whole catalogue.
    """

    ranking: Slots
    listed: Slots
    popular: Slots
    curiosity: Weights
    coin: int
    odds: ShortlistOdds | None


class ContextualModel:
    """Released sums, and everything that follows from them under one rule."""

    def __init__(
        self,
        space: CellSpace | LinearSpace,
        sums: ContextualSums,
        estimates: Estimates | None,
        *,
        rule: AnswerRule,
        visible: Slots,
        exploration_rate: float,
    ) -> None:
        self.space = space
        self.sums = sums
        self.estimates = estimates
        self._rule = rule
        self._visible = visible
        self._rate = exploration_rate
        noisy = bool(sums.variance.any())
        self._unprotected = rule.epsilon is None and not noisy
        self._optimism = NOISY_OPTIMISM if noisy else OPTIMISM
        if self._unprotected:
            self._optimism = UNPROTECTED_OPTIMISM
        self._response = None if rule.epsilon is None else ShortlistResponse(epsilon=rule.epsilon)

    @cached_property
    def outlook(self) -> CatalogueOutlook:
        """What is public about answers."""
        slots, visible = self.sums.slots, self._visible
        estimates = self.estimates
        curiosity = first_curiosity(slots, visible, exact=self.space.exact)
        listed, popular = visible, np.arange(slots, dtype=np.intp)
        chance = 1.0 if self._rate else 0.0
        if estimates is not None and len(visible):
            people, shares = estimates.people, estimates.shares
            means = estimates.means(people, visible)
            errors = estimates.deviations(people, visible)
            overall = np.full(slots, -np.inf)
            overall[visible] = shares @ means
            popular = np.argsort(-overall, kind="stable").astype(np.intp)
            if self._rule.epsilon is not None:
                odds = np.full(len(people), math.exp(min(self._rule.epsilon, _GREAT)))
                flattered = np.clip(means + self._optimism * errors, 0.0, 1.5)
                listed = visible[grow_shortlist(means=flattered, shares=shares, odds=odds)]
            curiosity[visible], gain = self._curious(means, errors, listed)
            if self._rate:
                exact_cells = isinstance(self.space, CellSpace) and not self.sums.variance.any()
                eagerness = _EAGERNESS_EXACT_CELLS if exact_cells else _EAGERNESS
                unsure = min(1.0, eagerness * gain) ** 2
                if isinstance(self.space, CellSpace) and not exact_cells:
                    unknown = 1.0 - float(estimates.known[visible].mean())
                    unsure = max(unsure, unknown**_IGNORANT)
                # Where every item has been tried, optimism explores and knows where.
                known = self._unprotected and not self._untried().any()
                least = 0.0 if known else self._rate
                chance = least + (1.0 - least) * unsure
                if self.sums.latest_variance and isinstance(self.space, LinearSpace):
                    together = chance * curiosity[visible] / curiosity[visible].sum()
                    together += (1.0 - chance) * self._trials(means, listed)
                    chance = float(together.sum())
                    curiosity[visible] = np.ceil(_CURIOSITY_STEPS * together / chance)
        rank = np.full(slots, 2)
        rank[visible] = 1
        rank[listed] = 0
        ranking = np.concatenate([listed, popular[rank[popular] == 1], popular[rank[popular] == 2]])
        made = CatalogueOutlook(
            ranking=ranking.astype(np.intp),
            listed=listed,
            popular=popular,
            curiosity=curiosity,
            coin=round(chance * COIN_SIDES),
            odds=None,
        )
        if not len(visible):
            return made
        return replace(made, odds=self.odds(made, visible))

    def _curious(self, means: Floats, errors: Floats, listed: Slots) -> tuple[Weights, float]:
        """Return what is worth exploring, of the visible items, and what there is to gain."""
        assert self.estimates is not None
        shares = self.estimates.shares
        best = means[:, np.isin(self._visible, listed)].max(axis=1)
        improvement = expected_improvement(means - best[:, None], errors)
        by_item = np.maximum(shares @ improvement, 0.0) + 1e-12
        most = float(shares @ improvement.max(axis=1))
        worth = float(shares @ best)
        if self._rule.epsilon is not None:
            among = means[:, np.isin(self._visible, listed)]
            odds = math.exp(min(self._rule.epsilon, _GREAT))
            errors = self.estimates.levels[self._visible]
            by_item, worth = private_gains(shares, means, improvement, among, errors, odds)
            most = min(float(by_item.sum()), most * (odds - 1.0) / (odds + len(listed) - 1.0))
        gain = most / max(worth, 1e-6)
        weights = (1.0 - _ALIKE) * by_item / by_item.sum() + _ALIKE / len(by_item)
        untried = self._untried()
        if untried.any():
            weights = 0.5 * weights + 0.5 * untried / untried.sum()
        return np.ceil(_CURIOSITY_STEPS * weights).astype(np.int64), gain

    def _trials(self, means: Floats, listed: Slots) -> Floats:
        """Return how much items are tried that are not listed, and so shown anyway."""
        assert self.estimates is not None
        shares, sums = self.estimates.shares, self.sums
        shown = np.isin(self._visible, listed)
        epsilon = _GREAT if self._rule.epsilon is None else min(self._rule.epsilon, _GREAT)
        return worthwhile_trials(
            shares @ means,
            np.where(shown, 0.0, self.estimates.levels[self._visible]),
            listed_worth(shares, means[:, shown], math.exp(epsilon)),
            visits=sums.latest,
            horizon=max(sums.feedback, sums.latest),
            variance=sums.latest_variance,
        )

    def _untried(self) -> npt.NDArray[np.bool_]:
        """Return which visible items have hardly been tried, as far as noise lets one tell."""
        tried = self.sums.count[self._visible].sum(axis=1)
        doubt = 2.0 * np.sqrt(self.sums.variance[self._visible].max(axis=1))
        untried: npt.NDArray[np.bool_] = tried < TRIED + doubt
        return untried

    def law(self) -> Floats:
        """Return every slot's share of the answers to the people of the model (a column each, or
        one for all of them): what the next release should have seen."""
        outlook, slots = self.outlook, self.sums.slots
        columns = self.sums.count.shape[1]
        if outlook.odds is None:
            return np.zeros((slots, columns))
        if self.estimates is None:
            return np.repeat(self._curiosity_law()[:, None], columns, axis=1)
        law = self._law_by_person()
        if columns > 1:
            by_person: Floats = law.T
            return by_person
        together: Floats = (self.estimates.shares @ law)[:, None]
        return together

    def _law_by_person(self) -> Floats:
        """Return every slot's probability for each of the model's people."""
        assert self.estimates is not None
        assert self.outlook.odds is not None
        return self._law_by_row(self.estimates.people, self.outlook.odds)

    def _law_by_row(self, rows: Floats, odds: ShortlistOdds) -> Floats:
        law = np.zeros((len(rows), self.sums.slots))
        bests = self.utilities(rows, odds.shortlist).argmax(axis=1)
        law[:, odds.items] = odds.shares(bests.tolist())
        return law

    def _curiosity_law(self) -> Floats:
        """Return q as probabilities."""
        law = np.zeros(self.sums.slots)
        law[self._visible] = self.outlook.curiosity[self._visible]
        law /= law.sum()
        return law

    def utilities(self, rows: Floats, slots: Slots) -> Floats:
        """Return what these slots are worth to visitors with these rows."""
        if self.estimates is None:
            return np.zeros((len(rows), len(slots)))
        means = self.estimates.means(rows, slots)
        means += self._optimism * self.estimates.deviations(rows, slots)
        return means

    def odds(self, outlook: CatalogueOutlook, offer: Slots) -> ShortlistOdds:
        """Return what is public about an answer of these slots."""
        allowed = np.zeros(self.sums.slots, dtype=np.bool_)
        allowed[offer] = True
        ranking = outlook.ranking[allowed[outlook.ranking]]
        size = len(ranking)
        if self._response is not None:
            size = min(size, max(1, len(outlook.listed)))
        return ShortlistOdds(
            items=offer,
            curiosity=outlook.curiosity[offer],
            coin=outlook.coin,
            ranking=ranking,
            size=size,
            response=self._response,
        )

    def decide(
        self, questions: Sequence[ContextualQuestion], noise: NoiseSource
    ) -> list[tuple[tuple[Choice, ...], bytes]]:
        """Return the choices for each question, and what feedback on them needs."""
        outlook = self.outlook
        contexts = np.array([question.context for question in questions], dtype=np.float64)
        rows = self.space.rows(contexts)
        notes = [self.space.note(row) for row in rows]
        decided: list[tuple[tuple[Choice, ...], bytes]] = [((), note) for note in notes]
        together = [place for place, one in enumerate(questions) if one.limit == 1 and one.whole]
        if together and outlook.odds is not None:
            odds = outlook.odds
            these = rows if len(together) == len(rows) else rows[together]
            bests = self.utilities(these, odds.ranking[: odds.size]).argmax(axis=1).tolist()
            for place, choice in zip(together, odds.draw(bests, noise), strict=True):
                decided[place] = ((choice,), notes[place])
        for place, question in enumerate(questions):
            if (question.limit == 1 and question.whole) or not len(question.available):
                continue
            odds = self.odds(outlook, question.available)
            utilities = self.utilities(rows[place : place + 1], odds.ranking)[0]
            choices = odds.draw_list(utilities, self._rule.most_drawn(question.limit), noise)
            if len(choices) < min(question.limit, len(question.available)):
                anybody = self.decide_for_anybody(question, noise)
                choices = filled(choices, anybody, question.limit)
            decided[place] = (choices, notes[place])
        return decided

    def answer_law(self, questions: Sequence[ContextualQuestion], *, paid: bool) -> Floats:
        """Return every slot's probability of being answered first, a row a question."""
        rows = self.space.rows(np.array([one.context for one in questions], dtype=np.float64))
        law = np.zeros((len(questions), self.sums.slots))
        together = [place for place, one in enumerate(questions) if one.whole and paid]
        if together and self.outlook.odds is not None:
            law[together] = self._law_by_row(rows[together], self.outlook.odds)
        for place, question in enumerate(questions):
            if not len(question.available) or (question.whole and paid):
                continue
            if paid:
                odds = self.odds(self.outlook, question.available)
                law[place] = self._law_by_row(rows[place : place + 1], odds)[0]
            else:
                odds = self._odds_for_anybody(question)
                law[place, odds.items] = odds.shares([0])[0]
        return law

    def expected_regret(self) -> float:
        """Return what an answer is expected to fall short of the best item, by the model's own
        means, for those who come."""
        if self.estimates is None or not len(self._visible):
            return 0.0
        estimates = self.estimates
        means = estimates.means(estimates.people, self._visible)
        law = self._law_by_person()[:, self._visible]
        lost = means.max(axis=1) - np.einsum("nk,nk->n", law, means)
        return float(estimates.shares @ lost)

    def decide_for_anybody(
        self, question: ContextualQuestion, noise: NoiseSource
    ) -> tuple[Choice, ...]:
        """Return what most people like, or explore. No probability depends on the client."""
        if not len(question.available):
            return ()
        odds = self._odds_for_anybody(question)
        utilities = -np.arange(len(odds.ranking), dtype=np.float64)
        return odds.draw_list(utilities, question.limit, noise)

    def _odds_for_anybody(self, question: ContextualQuestion) -> ShortlistOdds:
        outlook = self.outlook
        allowed = np.zeros(self.sums.slots, dtype=np.bool_)
        allowed[question.available] = True
        return ShortlistOdds(
            items=question.available,
            curiosity=outlook.curiosity[question.available],
            coin=outlook.coin,
            ranking=outlook.popular[allowed[outlook.popular]],
            size=1,
            response=None,
        )

    def first_choices(self, contexts: Floats) -> Slots:
        """Return the slot that an answer is most likely to be, for each context."""
        listed = self.outlook.listed
        best: Slots = listed[self.utilities(self.space.rows(contexts), listed).argmax(axis=1)]
        return best
