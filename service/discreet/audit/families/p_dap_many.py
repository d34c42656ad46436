"""The claims of the served adaptive partition when many ask at once, for the audit.

Most answers are drawn by `decide_many`. It asks for all coins of the rows that share a level, and
then for all their uniforms; a row has a place of its own in both. Here the whole tape is fixed but
for one place, and what the shipped code makes of that place is read off:

- which rows it moves (one, whatever the others' bits are);
- the law of that row, at both sides of the coin by bisection of its uniform; and by bisection of
  the coin, wherever the two sides answer differently, that there is one threshold between them;
- that this law is the one that the odds state, costs what was charged between any two contexts,
  and stays the same wherever the neighbours in the batch lie.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate, product
from typing import Literal, NamedTuple

import numpy as np

from discreet.families.p_dap.adaptive_partition_many import decide_many, plan_many
from discreet.audit.families.p_dap import CONTEXTS, Taught, pairs_of
from discreet.families.p_dap.contract import Decision, Deeper
from discreet.audit.claims import AuditRun, Claim, Finding, Method
from discreet.audit.examine_exact import Distribution, Pair, judge_pure, judge_zcdp
from discreet.audit.prices import epsilon_charged, rho_charged
from discreet.audit.scripted_noise import ScriptedNoise, distribution
from discreet.privacy.choice import RESPONSE_BITS
from discreet.privacy.draw import BIAS
from discreet.privacy.events import Composed
from discreet.privacy.noise import NoiseSource

Mode = Literal["uniform", "geometric"]
Deciding = Callable[..., list[Decision | Deeper]]
"""`decide_many`, or what a fault puts in its place."""

COIN_BITS = 32
_WIDTHS = (COIN_BITS, RESPONSE_BITS)
_TOP = 2**COIN_BITS - 1
_WAYS = ("explored", "listed")
_FILLS = (0x00, 0xA5, 0xFF)
"""What the rest of a tape says, byte by byte: all explore, or none, or none with other arms."""
_NEIGHBOURS = (0.04, 0.95)
"""Who stands before and after the row that is looked at; each shares a cell with one context."""


class Place(NamedTuple):
    """A row's share of the tape: which pair of requests, and which part of both."""

    pair: int
    part: int


class Tape(ScriptedNoise):
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


class Batch:
    """Questions from several contexts, planned and read, that can be answered again and again."""

    def __init__(
        self, taught: Taught, contexts: Sequence[float], decide: Deciding = decide_many
    ) -> None:
        self._decide = decide
        self._learner = learner = taught.learner
        self.plan = plan_many(
            learner,
            contexts=np.array(contexts)[:, np.newaxis],
            available=taught.request(0.0).available,
        )
        reads = [address for row in self.plan.reads for address in row]
        self._sums = np.zeros((len(reads), 1 + 2 * learner.arms), dtype=np.int64)
        for row, address in zip(self._sums, reads, strict=True):
            known = taught.state.get(address, row)
            row[: len(known)] = known

    def slots(self, noise: NoiseSource) -> list[int]:
        """Return every row's answer."""
        decisions = self._decide(
            self._learner,
            plan=self.plan,
            rows=range(len(self.plan.reads)),
            starts=list(accumulate(map(len, self.plan.reads), initial=0)),
            sums=self._sums,
            noise=noise,
        )
        assert all(isinstance(one, Decision) for one in decisions)
        return [one.choices[0].slot for one in decisions if isinstance(one, Decision)]

    def places(self) -> list[Place]:
        """Return the parts of everything that is asked for."""
        tape = Tape(0)
        self.slots(tape)
        if len(tape.asked) % 2 or any(
            COIN_BITS * uniforms != RESPONSE_BITS * coins
            for coins, uniforms in zip(tape.asked[::2], tape.asked[1::2], strict=True)
        ):
            raise ArithmeticError("a coin and a uniform a row were to be asked for")
        return [
            Place(pair, part)
            for pair, coins in enumerate(tape.asked[::2])
            for part in range(coins // COIN_BITS)
        ]

    def moved(self, place: Place, fill: int) -> set[int]:
        """Return the rows whose answers change with the bits of this place."""
        seen = [
            self.slots(Tape(fill, place, bits))
            for bits in product((0, _TOP), (0, 2 ** (RESPONSE_BITS - 1), 2**RESPONSE_BITS - 1))
        ]
        return {row for row, answers in enumerate(zip(*seen, strict=True)) if len(set(answers)) > 1}


def row_law(batch: Batch, row: int) -> dict[Hashable, Fraction]:
    """Return the exact distribution of one row's answer and of the way that it was drawn.

    An observer is not told the way, so what holds for this holds for what is served.
    """
    fill = _FILLS[1]
    places = [place for place in batch.places() if row in batch.moved(place, fill)]
    if not places:
        return {("surely", batch.slots(Tape(fill))[row]): Fraction(1)}
    if len(places) > 1:
        raise ArithmeticError("the answer to one row depends on the bits of several")

    def slot(coin: int, uniform: int) -> int:
        return batch.slots(Tape(fill, places[0], (coin, uniform)))[row]

    def side(coin: int) -> Distribution:
        return distribution(lambda noise: slot(coin, noise.bits(RESPONSE_BITS)))

    def tossed(uniform: int) -> Distribution:
        return distribution(lambda noise: slot(noise.bits(COIN_BITS), uniform))

    sides = (side(0), side(_TOP))
    ends = {end for each in sides for end in accumulate(each.values(), initial=Fraction(0))}
    shares = set()
    for start in sorted(ends)[:-1]:
        uniform = int(start * 2**RESPONSE_BITS)
        ways = tossed(uniform)
        if len(ways) > 1:
            shares.add(ways[slot(0, uniform)])
    if len(shares) > 1:
        raise ArithmeticError("the coin has several thresholds")
    explored = shares.pop() if shares else Fraction(0)
    law: dict[Hashable, Fraction] = {}
    for way, share, each in zip(_WAYS, (explored, 1 - explored), sides, strict=True):
        law |= {(way, answer): share * mass for answer, mass in each.items() if share}
    return law


def shown(law: Distribution) -> Distribution:
    """Return the law of what an observer is told."""
    told: dict[Hashable, Fraction] = {}
    for outcome, mass in law.items():
        assert isinstance(outcome, tuple)
        told[outcome[1]] = told.get(outcome[1], Fraction(0)) + mass
    return told


def laws_of(taught: Taught, decide: Deciding = decide_many) -> tuple[Distribution, ...]:
    """Return the laws of a row in the midst of a batch, from all contexts."""
    before, after = _NEIGHBOURS
    return tuple(row_law(Batch(taught, (before, one, after), decide), 1) for one in CONTEXTS)


@cache
def _laws(mode: Mode) -> tuple[Distribution, ...]:
    """Return the shipped laws: several claims are about the same ones."""
    return laws_of(Taught(mode=mode))


def examine_charge(
    taught: Taught, laws: Sequence[Distribution], *, column: Literal["epsilon", "rho"]
) -> Finding:
    """Compare the losses between one row's answers from all contexts with the charge."""
    [events] = {Batch(taught, (context,)).plan.events for context in CONTEXTS}
    pairs = pairs_of(laws)
    if column == "rho":
        return judge_zcdp(pairs=pairs, claimed=rho_charged(Composed(events)))
    return judge_pure(pairs=pairs, claimed=epsilon_charged(Composed(events)))


def examine_odds(taught: Taught, laws: Sequence[Distribution]) -> Finding:
    """Compare the law of one row's answers with the one that its odds state for its cell."""
    pairs: list[Pair] = []
    for context, law in zip(CONTEXTS, laws, strict=True):
        stated: Distribution = {**taught.found(context).mixture.law()}  # type: ignore[dict-item]
        pairs.append((shown(law), stated))
    return judge_pure(pairs=pairs, claimed=BIAS)


def examine_bits(taught: Taught, decide: Deciding = decide_many) -> Finding:
    """Count the rows that one row's bits move: no more than one, and every row by its own."""
    batch = Batch(taught, (*CONTEXTS, *_NEIGHBOURS), decide)
    most, own = 0, True
    for fill in _FILLS:
        moved = [batch.moved(place, fill) for place in batch.places()]
        most = max(most, *map(len, moved))
        rows = sorted(row for each in moved for row in each)
        own = own and rows == list(range(len(batch.plan.reads)))
    return Finding(1.0, float(most), holds=own and most == 1)


def examine_neighbours(
    taught: Taught, decide: Deciding = decide_many, *, contexts: Sequence[float] = CONTEXTS
) -> Finding:
    """Compare the laws of one row's answers while another one's context moves: no loss at all."""
    laws = [row_law(Batch(taught, (context, 0.3), decide), 1) for context in contexts]
    if all(law == laws[0] for law in laws):
        return Finding(0.0, 0.0, holds=True)
    return judge_pure(pairs=pairs_of(laws), claimed=Fraction(0))


def many_checks() -> Iterator[Claim]:
    """Yield the claims of the adaptive partition when it answers many at once."""
    yield from _checks("uniform")
    yield from _checks("geometric")


def _checks(mode: Mode) -> Iterator[Claim]:
    taught = Taught(mode=mode)
    claims: dict[str, Callable[[AuditRun], Finding]] = {
        "epsilon": lambda _: examine_charge(taught, _laws(mode), column="epsilon"),
        "rho": lambda _: examine_charge(taught, _laws(mode), column="rho"),
        "off the stated odds": lambda _: examine_odds(taught, _laws(mode)),
        "rows moved by one row's bits": lambda _: examine_bits(taught),
        "loss to a neighbour": lambda _: examine_neighbours(taught),
    }
    for claim, examine in claims.items():
        yield Claim(f"adaptive partition, many, {mode}: {claim}", Method.EXACT, examine)
