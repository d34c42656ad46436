"""Lists of which only the first item is drawn for the visitor: exact losses of the whole list.

A list of three has one personal item; the others are filled in from the model. The shipped `decide`
asks for the bits of the personal draw first and for those of the filling after it. The bits of the
filling are fixed, in several ways, and the law of the *whole list* over the personal draw is read
off the shipped code, for every context. The bits of the filling are independent of the context, so
a bound on the loss that holds for each of their values holds for the list.

What this finds: a filling that looks at the context, and a personal item whose place in the list
depends on the context.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from discreet.audit.claims import AuditRun, Claim, Finding, Method, PlantedFault
from discreet.audit.examine_exact import Distribution, judge_pure
from discreet.audit.families.p_dap.answers import (
    CONTEXTS,
    ITEMS,
    Batch,
    BatchTape,
    Deciding,
    Place,
    charged,
    pairs_of,
    shipped,
    taught,
)
from discreet.audit.scripted_noise import coin_law
from discreet.families.choice import COIN_SIDES
from discreet.families.p_dap.model import PartitionQuestion
from discreet.families.questions import Choice, Decision
from discreet.privacy.choice import RESPONSE_BITS
from discreet.privacy.noise import NoiseSource

_FILLS = (0xA5, 0x00, 0xFF, 0x5A, 0xC3)
"""What the filling's bits say, byte by byte: all explore, or none, with several items."""
_FIRST = Place(0, 0)


def list_law(recommender: Any, context: float, fill: int, decide: Deciding) -> Distribution:
    """Return the law of a whole list over its personal draw, with the filling's bits fixed."""
    batch = Batch(recommender, (context,), decide, limit=len(ITEMS))

    def answer(coin: int, uniform: int) -> Hashable:
        return batch.answers(BatchTape(fill, _FIRST, (coin, uniform)))[0]

    coin_bits = COIN_SIDES.bit_length() - 1
    return coin_law(answer, coin_bits=coin_bits, uniform_bits=RESPONSE_BITS).shares


def examine_slots(recommender: Any, decide: Deciding = shipped, *, fills: int = 2) -> Finding:
    """Compare the losses between whole lists from all contexts with the charge of one item."""
    pairs = [
        pair
        for fill in _FILLS[:fills]
        for pair in pairs_of([list_law(recommender, each, fill, decide) for each in CONTEXTS])
    ]
    return judge_pure(pairs=pairs, claimed=charged(recommender, limit=len(ITEMS))[0])


def examine_price(recommender: Any) -> Finding:
    """Compare the price of a list with that of one item."""
    one, whole = charged(recommender)[0], charged(recommender, limit=len(ITEMS))[0]
    return Finding(float(one), float(whole), holds=0 < whole == one)


def claims() -> Iterator[Claim]:
    """Yield the claims about lists with one personal item."""
    for mode in ("uniform", "geometric"):
        recommender = taught(mode, slots=1)

        def lose(run: AuditRun, recommender: Any = recommender) -> Finding:
            return examine_slots(recommender, fills=run.size(quick=1, full=len(_FILLS)))

        def cost(_: AuditRun, recommender: Any = recommender) -> Finding:
            return examine_price(recommender)

        name = f"p-dap, a list with one personal item, {mode}"
        yield Claim(f"{name}: epsilon", Method.EXACT, lose)
        yield Claim(f"{name}: costs as one item", Method.EXACT, cost)


def _relisted(change: Callable[[Any, PartitionQuestion, Decision], Sequence[str]]) -> Deciding:
    """Return a way to decide that puts the items of a list into another order."""

    def decide(
        recommender: Any, questions: Sequence[PartitionQuestion], noise: NoiseSource
    ) -> list[Decision]:
        decided = shipped(recommender, questions, noise)
        return [
            Decision(
                tuple(change(recommender, question, one)),
                tuple(Choice(0, 1.0) for _ in one.items),
                personalised=True,
            )
            for question, one in zip(questions, decided, strict=True)
        ]

    return decide


def _cell(recommender: Any, question: PartitionQuestion) -> int:
    tree = recommender.current.model.own.statistics.tree
    return int(tree.locate(np.array([question.context]))[0])


def _fills_by_cell(recommender: Any, question: PartitionQuestion, one: Decision) -> Sequence[str]:
    """Fill the list with what is liked in the visitor's own cell, which is not paid for."""
    utilities = recommender.current.model.own.utilities[_cell(recommender, question)]
    rest = sorted(one.items[1:], key=lambda item: -utilities[ITEMS.index(item)])
    return (one.items[0], *rest)


def _places_by_cell(recommender: Any, question: PartitionQuestion, one: Decision) -> Sequence[str]:
    """Put the personal item where the visitor's cell says."""
    place = _cell(recommender, question) % len(one.items)
    rest = list(one.items[1:])
    return (*rest[:place], one.items[0], *rest[place:])


def faults() -> Iterator[PlantedFault]:
    """Yield the mistakes that a list can make beside its personal item."""
    recommender = taught("uniform", slots=1)
    for name, change in {
        "a list filled by the visitor's cell": _fills_by_cell,
        "a personal item whose place tells the cell": _places_by_cell,
    }.items():
        decide = _relisted(change)

        def look(_: AuditRun, decide: Deciding = decide) -> Finding:
            return examine_slots(recommender, decide)

        yield PlantedFault(f"p-dap, a list: {name}", look)
