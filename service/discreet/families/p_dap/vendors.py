"""Other vendors as arms of our own recommender: what is asked of them, and what is believed.

Algorithm 1, as served, for one request. Our own draw is between our items and the vendors that can
be reached, at epsilon1; if a vendor is drawn, it is told the level and the centre of the cell, and
draws one of its items at epsilon2. Who sees the item that is shown learns at most
epsilon1 + epsilon2 about the context:

    P(vendor v, item k | C) = P(v | C) * P_v(k | C)
                           <= e^epsilon1 * P(v | C') * e^epsilon2 * P_v(k | C'),

for any two cells C, C', because the vendor's draw is epsilon2-DP between any two centres, whatever
our draw was. An item of our own has only the first factor. Both parts are charged whenever a
vendor might be drawn: whether one was depends on the context, so a price that depended on it would
tell. A vendor that does not answer is replaced by an item of ours that is drawn without looking at
the context: P(k | C) + sum over failing v of P(v | C) * q(k) is post-processing of our own draw.

What that does not cover: the vendor that is asked learns the cell. Whether it fails is its own
doing; that an honest one fails regardless of the cell is an assumption. And that it draws at no
more than epsilon2 is its promise to us (`forwards` keeps it on the other side).

How a vendor is judged. Never by a reward that we saw: a vendor's rewards are its own secret, and
what it tells of them is a noisy running sum (Algorithm 2). The mean of the latest sum enters the
cell's statistics with the weight of n / (1 + 4 s^2 / n) observations, where s is the standard
deviation of the noise in a sum of n rewards: a mean of so many exact rewards of variance 1/4 would
be as uncertain.

Which rewards make one sum. Noise drowns short sums, so cells share a stream until it is worth
something: all of them at first; once a stream counts as `ENOUGH` observations, each of the cells
one level below it has its own, and so on down. A cell believes whatever sum above it weighs most.
Before a stream begins the vendor must have been trained for it (line 6): the first `TRAINING`
forwards that got feedback are marked, and counted apart.
"""

import math
import struct
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

from discreet.families.p_dap.cell import REWARD_STEPS, count_field, sum_field
from discreet.families.p_dap.contract import Address, Decision, Request, Vector
from discreet.families.p_dap.forwarding import Forward, Forwarded, RunningSum, centre_of
from discreet.families.p_dap.notes import BOOKS_BYTES
from discreet.errors import PeerUnavailable
from discreet.state.stores import Claim

if TYPE_CHECKING:
    from discreet.families.p_dap.recommender import PartitionRecommender
    from discreet.decisions.runtime import Runtime

__all__ = [
    "Forward",
    "Forwarded",
    "NoVendors",
    "PeerUnavailable",
    "RunningSum",
    "VendorGateway",
]

TRAINING = 16
"""Forwards with feedback that train a vendor before a stream of its rewards begins."""
ENOUGH = 25
"""Observations that a stream must be worth before the cells below it have their own."""
_DEVIATIONS = 40
"""A noisy sum farther out than this has probability below 1e-20: the vendor lies, or is broken."""
_MOST_COUNT = 2**40
"""No stream has so many rewards; what is within it fits a cell's fields."""
_CLAIM_SECONDS = 86_400

# What we keep about a stream of a vendor's: a vector of these fields.
TRAINED, MERGED, WEIGHT = range(3)
# What we keep about a vendor in a cell: how often it changed, and what stands in the cell.
VERSION, COUNTED, SUMMED = range(3)


class VendorGateway(Protocol):
    """The way to other vendors: over HTTP when serving, within the process in simulations."""

    def reachable(self, vendor: str) -> bool:
        """Tell, without waiting, whether the vendor may be asked now."""
        ...

    async def forward(self, *, vendor: str, forward: Forward) -> Forwarded:
        """Ask a vendor for an item; raise `PeerUnavailable` if none can be had in time."""
        ...

    async def feedback(self, *, vendor: str, recommender: str, handle: str, reward: float) -> None:
        """Tell a vendor how its item was received; raise `PeerUnavailable` to try again later."""
        ...

    def distrust(self, *, vendor: str) -> None:
        """Note that what the vendor said cannot be true: it counts as a failure."""
        ...


class NoVendors:
    """Nobody to ask."""

    def reachable(self, vendor: str) -> bool:
        return False

    async def forward(self, *, vendor: str, forward: Forward) -> Forwarded:
        raise PeerUnavailable("no vendors are joined to this process")

    async def feedback(self, *, vendor: str, recommender: str, handle: str, reward: float) -> None:
        raise PeerUnavailable("no vendors are joined to this process")

    def distrust(self, *, vendor: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Item:
    """A vendor's item, as far as we know it."""

    vendor: str
    handle: str
    expires_at: int
    training: bool
    books: bytes
    """Where we keep what we know about the stream that its reward belongs to."""


def open_arms(runtime: "Runtime", recommender: "PartitionRecommender") -> tuple[int, ...]:
    """Return the arms of the vendors that can be reached now. The context has no part in it."""
    reachable = runtime.vendors.reachable
    return tuple(slot for name, slot in recommender.vendors.items() if reachable(name))


async def ask_vendor(
    runtime: "Runtime", recommender: "PartitionRecommender", request: Request, decision: Decision
) -> Item | None:
    """Ask the vendor that was drawn; None if it gave no answer that can be used."""
    address, slot = decision.address, decision.choices[0].slot
    vendor = recommender.vendor_of[slot]
    segments = recommender.document.partition.segments
    centres = [
        centre_of(context=request.context, level=level, segments=segments)
        for level in range(address.level + 1)
    ]
    levels = [books_of(recommender, slot, level, centre) for level, centre in enumerate(centres)]
    belief = _belief_of(address, slot)
    *kept, believed = await runtime.store.read(addresses=[*levels, belief])
    # The highest stream that is not worth enough yet, or else that of the cell itself.
    judged = next(
        (level for level, one in enumerate(kept) if _field(one, WEIGHT) < ENOUGH), address.level
    )
    books, seen = levels[judged], _field(kept[judged], MERGED)
    training = _field(kept[judged], TRAINED) < TRAINING
    forward = Forward(
        recommender=recommender.name,
        level=address.level,
        centre=centres[-1],
        epsilon=recommender.vendor_epsilon,
        training=training,
        stream=books.hex(),
    )
    try:
        answer = await runtime.vendors.forward(vendor=vendor, forward=forward)
        if answer.expires_at <= runtime.clock():
            raise PeerUnavailable("a handle that has expired already", reason="implausible")
        if answer.sums is not None and not _plausible(answer.sums, seen=seen):
            runtime.vendors.distrust(vendor=vendor)
            raise PeerUnavailable("a sum that cannot be true", reason="implausible")
    except PeerUnavailable as failure:
        runtime.observer.forward(
            recommender=recommender.name, vendor=vendor, outcome=failure.reason
        )
        return None
    if answer.sums is not None:
        weight, total = worth(answer.sums)
        if answer.sums.count > seen:
            standing = _field(kept[judged], WEIGHT)
            await _note(runtime, recommender, books, answer.sums.count, seen, weight - standing)
        if weight >= _field(believed, COUNTED):
            await _believe(runtime, recommender, address, slot, believed, weight, total)
    runtime.observer.forward(
        recommender=recommender.name,
        vendor=vendor,
        outcome="trained" if training else "answered",
    )
    return Item(vendor, answer.handle, answer.expires_at, training, books)


def books_of(
    recommender: "PartitionRecommender", slot: int, level: int, centre: tuple[float, ...]
) -> bytes:
    """Return where we keep what we know about the stream of a vendor's rewards in a cell."""
    cell = struct.pack(f"<qq{len(centre)}d", slot, level, *centre)
    content = recommender.guests.books + cell
    return blake2b(content, digest_size=BOOKS_BYTES, person=b"vendor books").digest()


def _belief_of(address: Address, slot: int) -> bytes:
    """Return where we keep what stands in a cell about a vendor."""
    content = address.key + struct.pack("<q", slot)
    return blake2b(content, digest_size=16, person=b"vendor belief").digest()


def _field(vector: Vector, field: int) -> int:
    return int(vector[field]) if field < len(vector) else 0


def _plausible(sums: RunningSum, *, seen: int) -> bool:
    """Tell whether a sum of rewards in [0, 1] can look like this, and follows what we saw."""
    margin = _DEVIATIONS * sums.deviation
    return (
        max(seen, 1) <= sums.count <= _MOST_COUNT and -margin <= sums.total <= sums.count + margin
    )


def worth(sums: RunningSum) -> tuple[int, int]:
    """Return as how many observations a noisy sum counts, and their sum in reward steps."""
    mean = min(max(sums.total / sums.count, 0.0), 1.0)
    weight = math.floor(sums.count / (1.0 + 4.0 * sums.deviation**2 / sums.count))
    return weight, round(mean * weight * REWARD_STEPS)


async def _note(
    runtime: "Runtime",
    recommender: "PartitionRecommender",
    books: bytes,
    count: int,
    seen: int,
    heavier: int,
) -> None:
    """Note how far a stream has come; of several workers that hear it, one does."""
    await runtime.store.learn(
        address=books,
        increments=((MERGED, count - seen), (WEIGHT, heavier)),
        claim=b"seen" + struct.pack("<q", seen),
        reward=count,
        claim_ttl=_CLAIM_SECONDS,
    )
    await note_books(runtime, recommender, books)


async def _believe(
    runtime: "Runtime",
    recommender: "PartitionRecommender",
    address: Address,
    slot: int,
    believed: Vector,
    weight: int,
    total: int,
) -> None:
    """Let the vendor's arm in the cell stand at what the latest sum says.

    A change is claimed first where it is noted what stands in the cell, so that of several workers
    one makes it; then the difference is added to the cell.
    """
    version = _field(believed, VERSION)
    more, gained = weight - _field(believed, COUNTED), total - _field(believed, SUMMED)
    if not (more or gained):
        return
    claim = b"belief" + struct.pack("<qq", slot, version)
    belief = _belief_of(address, slot)
    change = await runtime.store.learn(
        address=belief,
        increments=((VERSION, 1), (COUNTED, more), (SUMMED, gained)),
        claim=claim,
        reward=total,
        claim_ttl=_CLAIM_SECONDS,
    )
    if change.claim is not Claim.COUNTED:
        return
    learned = await runtime.store.learn(
        address=address.key,
        increments=((count_field(slot), more), (sum_field(slot), gained)),
        claim=claim,
        reward=total,
        claim_ttl=_CLAIM_SECONDS,
    )
    await note_books(runtime, recommender, belief)
    if learned.arrivals == 0:
        await runtime.store.index_cell(
            index=recommender.generation, address=address.key, level=address.level
        )


async def note_books(runtime: "Runtime", recommender: "PartitionRecommender", books: bytes) -> None:
    """Note the address of books on a vendor, so that they are erased with the recommender."""
    await runtime.store.index_cell(index=recommender.guests.books, address=books, level=0)
