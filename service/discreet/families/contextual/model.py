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
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet.families.choice import (
    Floats,
    ShortlistOdds,
    Slots,
    filled,
    repeated,
)
from discreet.families.contextual.cells import CellSpace
from discreet.families.contextual.estimates import Estimates
from discreet.families.contextual.outlook import CatalogueOutlook, Prospects
from discreet.families.contextual.spaces import LinearSpace
from discreet.families.contextual.sums import ContextualSums
from discreet.families.questions import Choice, Question
from discreet.privacy.choice import ShortlistResponse
from discreet.privacy.events import ExactRelease, PrivacyEvent, RandomisedResponse
from discreet.privacy.noise import NoiseSource

OPTIMISM = 0.6
"""Standard errors by which an item's mean is flattered, in the shortlist and in the choice;"""
NOISY_OPTIMISM = 0.3
"""less where feedback is private: noise hides what a few more visits would tell;"""
UNPROTECTED_OPTIMISM = 2.0
"""more where neither dial is on: no draw explores by chance, and no noise hides what was found."""


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
        made = Prospects(
            space=self.space,
            sums=self.sums,
            estimates=self.estimates,
            visible=self._visible,
            epsilon=self._rule.epsilon,
            optimism=self._optimism,
            rate=self._rate,
        ).outlook()
        if not len(self._visible):
            return made
        return replace(made, odds=self.odds(made, self._visible))

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
        size = min(len(ranking), max(1, len(outlook.listed)))
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
