"""Mistakes that one answer, a list, or a batch of answers of the adaptive partition can make."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.audit.claims import Finding, PlantedFault
from discreet.audit.examine_exact import judge_pure
from discreet.audit.families.p_dap.answers import (
    CONTEXTS,
    ITEMS,
    Deciding,
    charged,
    examine_bits,
    examine_charge,
    examine_degraded,
    examine_neighbours,
    laws_of,
    listed_law,
    odds_of,
    pairs_of,
    shipped,
    taught,
)
from discreet.audit.scripted_noise import ScriptedNoise
from discreet.families.choice import ShortlistOdds
from discreet.families.p_dap.model import PartitionQuestion
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.questions import Choice, Decision, Question
from discreet.privacy.charges import Charge
from discreet.privacy.choice import RESPONSE_BITS
from discreet.privacy.noise import NoiseSource

ChangeOdds = Callable[[ShortlistOdds, int], ShortlistOdds]
"""(the odds of an answer, where the context's best item stands) -> other odds."""


def _decision(choice: Choice) -> Decision:
    return Decision((ITEMS[choice.slot],), (choice,), personalised=True)


def _best(recommender: Any, question: PartitionQuestion) -> tuple[ShortlistOdds, int]:
    odds, utilities = odds_of(recommender, question.context[0])
    return odds, int(utilities[: odds.size].argmax())


def with_odds(change: ChangeOdds) -> Deciding:
    """Return a way to decide by other odds."""

    def decide(
        recommender: Any, questions: Sequence[PartitionQuestion], noise: NoiseSource
    ) -> list[Decision]:
        decisions = []
        for question in questions:
            odds, best = _best(recommender, question)
            (choice,) = change(odds, best).draw([best], noise)
            decisions.append(_decision(choice))
        return decisions

    return decide


def _explores_by_cell(odds: ShortlistOdds, best: int) -> ShortlistOdds:
    """Explore what was tried little in the cell, as the paper does."""
    weights = np.ones(len(odds.items), dtype=np.int64)
    weights[best] += 10**6
    return replace(odds, curiosity=weights)


def _lists_by_cell(odds: ShortlistOdds, best: int) -> ShortlistOdds:
    """Cut the shortlist behind the item that is best in the cell."""
    return replace(odds, size=best + 1)


def _tosses_by_cell(odds: ShortlistOdds, best: int) -> ShortlistOdds:
    """Explore the less, the further down the shortlist the cell's best item stands."""
    return replace(odds, coin=(odds.coin >> 4 * best) + 1)


class _OneUniform(ScriptedNoise):
    """A source whose wide requests repeat their first uniform for every row."""

    def __init__(self, noise: NoiseSource) -> None:
        super().__init__(())
        self._noise = noise

    def bits(self, count: int) -> int:
        drawn = self._noise.bits(count)
        if count % RESPONSE_BITS:
            return drawn
        first = drawn % 2**RESPONSE_BITS
        return sum(first << start for start in range(0, count, RESPONSE_BITS))


def _share_uniform(
    recommender: Any, questions: Sequence[PartitionQuestion], noise: NoiseSource
) -> list[Decision]:
    return shipped(recommender, questions, _OneUniform(noise))


def _cells(decided: Sequence[Decision]) -> list[bytes]:
    return [decision.note for decision in decided]


def _one_draw_a_cell(
    recommender: Any, questions: Sequence[PartitionQuestion], noise: NoiseSource
) -> list[Decision]:
    """Answer all rows of a cell as the first of them, which saves drawing."""
    decided = shipped(recommender, questions, noise)
    first_of: dict[bytes, Decision] = {}
    return [first_of.setdefault(one.note, one) for one in decided]


def _sure_in_company(
    recommender: Any, questions: Sequence[PartitionQuestion], noise: NoiseSource
) -> list[Decision]:
    """Answer the best item itself to rows that lie in one cell."""
    decided = shipped(recommender, questions, noise)
    cells = _cells(decided)
    for row, question in enumerate(questions):
        if cells.count(cells[row]) > 1:
            odds, best = _best(recommender, question)
            decided[row] = _decision(Choice(int(odds.ranking[best]), 1.0))
    return decided


def _first_epsilon(
    recommender: Any, questions: Sequence[PartitionQuestion], noise: NoiseSource
) -> list[Decision]:
    """Answer every row by the response of the first one's level."""
    first, _ = _best(recommender, questions[0])
    return with_odds(lambda odds, _: replace(odds, response=first.response))(
        recommender, questions, noise
    )


def _mixed_up(
    recommender: Any, questions: Sequence[PartitionQuestion], noise: NoiseSource
) -> list[Decision]:
    """Answer every row by the best item of the one before it."""
    bests = [_best(recommender, question)[1] for question in questions]
    decisions = []
    for question, best in zip(questions, [*bests[-1:], *bests[:-1]], strict=True):
        (choice,) = _best(recommender, question)[0].draw([best], noise)
        decisions.append(_decision(choice))
    return decisions


class PricedByCell(PartitionRecommender):
    """Charges a context for the depth of its own cell, not for the deepest there is."""

    def price(self, question: Question) -> Charge:
        """Return what the context's own level costs, which tells where it lies."""
        assert isinstance(question, PartitionQuestion)
        people = self.current.model.own
        cell = int(people.statistics.tree.locate(np.array([question.context]))[0])
        return Charge(nano_epsilon=10**9 * (1 + people.levels[cell]), nano_rho=10**9)


def _charged(decide: Deciding) -> Finding:
    recommender = taught("uniform")
    return examine_charge(recommender, laws_of(recommender, decide), column="epsilon")


def _neighbourly(decide: Deciding) -> Finding:
    """Two contexts are enough to see that a neighbour's matters."""
    return examine_neighbours(taught("geometric"), decide, contexts=(0.05, 0.95))


def _shallow_price() -> Finding:
    """Compare geometric answers with the price of the first level."""
    recommender = taught("geometric")
    claimed = Fraction(repr(recommender.rule.epsilon))
    return judge_pure(pairs=pairs_of(laws_of(recommender)), claimed=claimed)


def _list_charged_once() -> Finding:
    """Compare lists of two with the price of one item."""
    recommender = taught("uniform")
    laws = [listed_law(*odds_of(recommender, context), 2) for context in CONTEXTS]
    return judge_pure(pairs=pairs_of(laws), claimed=charged(recommender)[0])


def _own_price() -> Finding:
    recommender = taught("geometric", PricedByCell)
    return examine_charge(recommender, laws_of(recommender), column="epsilon")


def faults() -> Iterator[PlantedFault]:
    """Yield the mistakes, each with the examination that must notice it."""
    geometric = taught("geometric")
    for name, examine in {
        "geometric answers charged at the first level": _shallow_price,
        "a list of two charged as one item": _list_charged_once,
        "a price that depends on the cell": _own_price,
        "exploration that looks at the cell": lambda: _charged(with_odds(_explores_by_cell)),
        "a shortlist that depends on the cell": lambda: _charged(with_odds(_lists_by_cell)),
        "coins that look at the cell": lambda: _charged(with_odds(_tosses_by_cell)),
        "the best item for sure to rows of one cell": lambda: _charged(_sure_in_company),
        "one uniform for a whole batch": lambda: examine_bits(geometric, _share_uniform),
        "one draw for all rows of a cell": lambda: examine_bits(geometric, _one_draw_a_cell),
        "the first row's epsilon for a whole batch": lambda: _neighbourly(_first_epsilon),
        "best items handed to the wrong rows": lambda: _neighbourly(_mixed_up),
        "degraded answers that look at the context": lambda: examine_degraded(geometric, shipped),
    }.items():

        def look(_: object, examine: Callable[[], Finding] = examine) -> Finding:
            return examine()

        yield PlantedFault(f"p-dap, an answer: {name}", look)
