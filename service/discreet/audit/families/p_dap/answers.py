"""One answer of the adaptive partition: exact losses between contexts in all cells.

A model is released, with noise that stands still, from sums that make its cells disagree about the
best item and lie at different depths. Every context's answer is then compared with every other's.
What is compared with the charge is read off the shipped `decide`, in a batch: it asks for all coins
of the rows that share a level, and then for all their uniforms, and a row has a place of its own
in both. The whole tape is fixed but for one place, and what the shipped code makes of it is read:

- which rows it moves (one, whatever the others' bits are);
- the law of that row, which must be the one that `ShortlistOdds.law` states for its cell, must cost
  what was charged between any two contexts, and stay the same wherever its neighbours lie.

Lists, whose draws would take too long to script, are enumerated from the integers of each draw.
"""

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from discreet.audit.claims import AuditRun, Claim, Finding, Method
from discreet.audit.examine_exact import Distribution, Pair, judge_pure, judge_zcdp
from discreet.audit.scripted_noise import ConstantNoise, ScriptedNoise, coin_law
from discreet.families.choice import COIN_SIDES, ShortlistOdds
from discreet.families.contract import REWARD_STEPS
from discreet.families.observer import NullObserver
from discreet.families.p_dap.learning import OWN_USERS, block
from discreet.families.p_dap.model import PartitionQuestion
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.peering import NoPeers
from discreet.families.questions import Ask, Decision
from discreet.families.registration import read_document
from discreet.families.resources import Resources
from discreet.families.stored import StoredDocument
from discreet.privacy.charges import NANO
from discreet.privacy.choice import RESPONSE_BITS
from discreet.privacy.draw import BIAS
from discreet.privacy.noise import NoiseSource, SystemNoise
from discreet.state.memory import MemoryStore
from discreet.state.principals import Principals

Mode = Literal["uniform", "geometric"]

ITEMS = ("a", "b", "c")
CONTEXTS = (0.05, 0.3, 0.6, 0.95)
"""One for each cell that the lesson leaves, two of them one level deeper than the others."""
NEIGHBOURS = (0.04, 0.95)
"""Who stands before and after the row that is looked at; each shares a cell with one context."""

_COIN_BITS = COIN_SIDES.bit_length() - 1
_WIDTHS = (_COIN_BITS, RESPONSE_BITS)
_TOP = 2**_COIN_BITS - 1
_FILLS = (0x00, 0xA5, 0xFF)
"""What the rest of a tape says, byte by byte: all explore, or none, or none with other items."""


def taught(
    mode: Mode, family: type[PartitionRecommender] = PartitionRecommender, *, slots: int = 2
) -> Any:
    """Return a recommender whose model was taught different tastes in different cells."""
    document = read_document(
        {
            "algorithm": "p-dap",
            "items": list(ITEMS),
            "context": {"dimensions": 1},
            "partition": {"base": 4, "growth": 0.1},
            "exploration": {"rate": 0.1},
            "privacy": {
                "answers": {"epsilon": 0.7, "mode": mode, "personal_slots": slots},
                "feedback": {"epsilon": 50, "budget": {"epsilon": 1e6}},
            },
        }
    )
    recommender = family(
        name="taught",
        stored=StoredDocument(document, os.urandom(8), 0.0, {}, 0).with_document(document),
        resources=Resources(
            store=MemoryStore(),
            noise=SystemNoise(),
            observer=NullObserver(),
            principals=Principals(bytes(32)),
            peers=NoPeers(),
            clock=lambda: 0.0,
        ),
    )
    for number, cells in enumerate(((0,), (1, 2), (2, 3, 4)), start=1):
        gathered = {}
        for cell in cells:
            # The left half likes the first item or the second, the right half the third.
            sums = np.zeros(2 * len(ITEMS), dtype=np.int64)
            for slot in range(len(ITEMS)):
                sums[2 * slot + (slot != (cell + 1) % len(ITEMS))] = 12 * REWARD_STEPS
            gathered[block(OWN_USERS, cell)] = sums if cell != 2 or number > 2 else sums // 8
        model = recommender.release(recommender.current.model, gathered, ConstantNoise())
        recommender.adopt(number=number, released_at=0.0, model=model)
    return recommender


class Place(NamedTuple):
    """A row's share of the tape: which pair of requests, and which part of both."""

    pair: int
    part: int


class BatchTape(ScriptedNoise):
    """The same byte over and over, but for one row's coin and uniform."""

    def __init__(self, fill: int, place: Place | None = None, bits: tuple[int, int] = (0, 0)):
        super().__init__(())
        self._fill = fill
        self._place = place
        self._bits = bits

    def bits(self, count: int) -> int:
        """Return the tape's next part."""
        pair, half = divmod(len(self.asked), 2)
        self.asked.append(count)
        tape = int.from_bytes(bytes([self._fill]) * (count // 8), "little")
        if self._place is None or self._place.pair != pair:
            return tape
        width = _WIDTHS[half]
        start = width * self._place.part
        return tape & ~(((1 << width) - 1) << start) | self._bits[half] << start


Deciding = Callable[[Any, Sequence[PartitionQuestion], NoiseSource], list[Decision]]


def shipped(
    recommender: Any, questions: Sequence[PartitionQuestion], noise: NoiseSource
) -> list[Decision]:
    """Decide as requests that were paid for are decided."""
    decided: list[Decision] = recommender.decide(
        recommender.current.model, questions, [None] * len(questions), noise
    )
    return decided


def degraded(
    recommender: Any, questions: Sequence[PartitionQuestion], noise: NoiseSource
) -> list[Decision]:
    """Decide as requests of clients whose budget is spent are decided."""
    decided: list[Decision] = recommender.decide_without_client(
        recommender.current.model, questions, noise
    )
    return decided


class Batch:
    """Questions from several contexts that can be answered again and again."""

    def __init__(
        self,
        recommender: Any,
        contexts: Sequence[float],
        decide: Deciding = shipped,
        *,
        limit: int = 1,
    ) -> None:
        self._recommender = recommender
        self._decide = decide
        self.questions = [
            recommender.question(Ask("taught", f"client {place}", (context,), limit=limit))
            for place, context in enumerate(contexts)
        ]

    def answers(self, noise: NoiseSource) -> list[Hashable]:
        """Return what every row is shown."""
        decided = self._decide(self._recommender, self.questions, noise)
        return [decision.items for decision in decided]

    def places(self) -> list[Place]:
        """Return the parts of everything that is asked for."""
        tape = BatchTape(0)
        self.answers(tape)
        if len(tape.asked) % 2 or any(
            _COIN_BITS * uniforms != RESPONSE_BITS * coins
            for coins, uniforms in zip(tape.asked[::2], tape.asked[1::2], strict=True)
        ):
            raise ArithmeticError("a coin and a uniform a row were to be asked for")
        return [
            Place(pair, part)
            for pair, coins in enumerate(tape.asked[::2])
            for part in range(coins // _COIN_BITS)
        ]

    def moved(self, place: Place, fill: int) -> set[int]:
        """Return the rows whose answers change with the bits of this place."""
        seen = [
            self.answers(BatchTape(fill, place, bits))
            for bits in product((0, _TOP), (0, 2 ** (RESPONSE_BITS - 1), 2**RESPONSE_BITS - 1))
        ]
        return {row for row, answers in enumerate(zip(*seen, strict=True)) if len(set(answers)) > 1}


def row_law(batch: Batch, row: int) -> Distribution:
    """Return the exact distribution of one row's answer."""
    fill = _FILLS[1]
    places = [place for place in batch.places() if row in batch.moved(place, fill)]
    if not places:
        return {batch.answers(BatchTape(fill))[row]: Fraction(1)}
    if len(places) > 1:
        raise ArithmeticError("the answer to one row depends on the bits of several")

    def answer(coin: int, uniform: int) -> Hashable:
        return batch.answers(BatchTape(fill, places[0], (coin, uniform)))[row]

    return coin_law(answer, coin_bits=_COIN_BITS, uniform_bits=RESPONSE_BITS).shares


def laws_of(recommender: Any, decide: Deciding = shipped) -> tuple[Distribution, ...]:
    """Return the laws of a row in the midst of a batch, from all contexts."""
    before, after = NEIGHBOURS
    return tuple(row_law(Batch(recommender, (before, one, after), decide), 1) for one in CONTEXTS)


def pairs_of(laws: Sequence[Distribution]) -> list[Pair]:
    """Return every two of these laws."""
    return [(one, other) for place, one in enumerate(laws) for other in laws[place + 1 :]]


def charged(recommender: Any, *, limit: int = 1) -> tuple[Fraction, Fraction]:
    """Return the epsilon and the rho of an answer: nothing, if they depend on the context."""
    asks = [Ask("taught", "client", (context,), limit=limit) for context in CONTEXTS]
    prices = {recommender.price(recommender.question(ask)) for ask in asks}
    if len(prices) > 1:
        return Fraction(0), Fraction(0)
    (price,) = prices
    return Fraction(price.nano_epsilon, NANO), Fraction(price.nano_rho, NANO)


def odds_of(recommender: Any, context: float) -> tuple[ShortlistOdds, Any]:
    """Return the odds of an answer from a context, and the utilities that a list is drawn by."""
    people = recommender.current.model.own
    cell = int(people.statistics.tree.locate(np.array([[context]]))[0])
    outlook = people.outlook(recommender.rule)
    odds = people.odds(outlook, recommender.visible, people.levels[cell])
    return odds, people.utilities[cell, odds.ranking]


def listed_law(odds: ShortlistOdds, utilities: Any, limit: int) -> Distribution:
    """Return the exact distribution of a list, from the integers of every draw."""
    lists: dict[Hashable, Fraction] = {}

    def extend(rest: ShortlistOdds, left: Any, chosen: tuple[int, ...], mass: Fraction) -> None:
        if len(chosen) == limit:
            lists[chosen] = lists.get(chosen, Fraction(0)) + mass
            return
        best = int(left[: rest.size].argmax())
        for slot, share in rest.law(best).items():
            if share:
                kept = left[rest.ranking != slot]
                extend(rest.without(slot), kept, (*chosen, slot), mass * share)

    extend(odds, utilities, (), Fraction(1))
    return lists


def examine_charge(
    recommender: Any, laws: Sequence[Distribution], *, column: Literal["epsilon", "rho"]
) -> Finding:
    """Compare the losses between answers from all contexts with the charge."""
    epsilon, rho = charged(recommender)
    if column == "rho":
        return judge_zcdp(pairs=pairs_of(laws), claimed=rho)
    return judge_pure(pairs=pairs_of(laws), claimed=epsilon)


def examine_lists(recommender: Any, *, limit: int) -> Finding:
    """Compare the losses between lists from all contexts with the charge."""
    laws = [listed_law(*odds_of(recommender, context), limit) for context in CONTEXTS]
    return judge_pure(pairs=pairs_of(laws), claimed=charged(recommender, limit=limit)[0])


def examine_odds(recommender: Any, laws: Sequence[Distribution]) -> Finding:
    """Compare the law of answers with the one that the odds state for their cell."""
    pairs: list[Pair] = []
    for context, law in zip(CONTEXTS, laws, strict=True):
        odds, utilities = odds_of(recommender, context)
        stated = odds.law(int(utilities[: odds.size].argmax()))
        pairs.append((law, {(ITEMS[slot],): share for slot, share in stated.items()}))
    return judge_pure(pairs=pairs, claimed=BIAS)


def examine_bits(recommender: Any, decide: Deciding = shipped) -> Finding:
    """Count the rows that one row's bits move: no more than one, and every row by its own."""
    contexts = (*CONTEXTS, *NEIGHBOURS)
    batch = Batch(recommender, contexts, decide)
    most, own = 0, True
    for fill in _FILLS:
        moved = [batch.moved(place, fill) for place in batch.places()]
        most = max(most, *map(len, moved))
        rows = sorted(row for each in moved for row in each)
        own = own and rows == list(range(len(contexts)))
    return Finding(1.0, float(most), holds=own and most == 1)


def examine_neighbours(
    recommender: Any, decide: Deciding = shipped, *, contexts: Sequence[float] = CONTEXTS
) -> Finding:
    """Compare the laws of one row's answers while another one's context moves: no loss at all."""
    laws = [row_law(Batch(recommender, (context, 0.3), decide), 1) for context in contexts]
    return judge_pure(pairs=pairs_of(laws), claimed=Fraction(0))


def examine_degraded(recommender: Any, decide: Deciding = degraded) -> Finding:
    """Compare the laws of free answers from all contexts: no loss at all."""
    laws = [row_law(Batch(recommender, (context,), decide), 0) for context in CONTEXTS]
    return judge_pure(pairs=pairs_of(laws), claimed=Fraction(0))


@cache
def _taught(mode: Mode) -> Any:
    return taught(mode)


@cache
def _laws(mode: Mode) -> tuple[Distribution, ...]:
    """Return the shipped laws: several claims are about the same ones."""
    return laws_of(_taught(mode))


def claims() -> Iterator[Claim]:
    """Yield the claims about one answer, and about many that are drawn together."""
    modes: tuple[Mode, ...] = ("uniform", "geometric")
    for mode in modes:
        examined: dict[str, Callable[[Any, Mode], Finding]] = {
            "epsilon": lambda one, mode: examine_charge(one, _laws(mode), column="epsilon"),
            "rho": lambda one, mode: examine_charge(one, _laws(mode), column="rho"),
            "off the stated odds": lambda one, mode: examine_odds(one, _laws(mode)),
            "rows moved by one row's bits": lambda one, _: examine_bits(one),
            "loss to a neighbour in the batch": lambda one, _: examine_neighbours(one),
            "list of 2, epsilon": lambda one, _: examine_lists(one, limit=2),
            "degraded answers, loss": lambda one, _: examine_degraded(one),
        }
        for name, examine in examined.items():

            def look(
                _: AuditRun,
                examine: Callable[[Any, Mode], Finding] = examine,
                mode: Mode = mode,
            ) -> Finding:
                return examine(_taught(mode), mode)

            yield Claim(f"p-dap, an answer, {mode}: {name}", Method.EXACT, look)
