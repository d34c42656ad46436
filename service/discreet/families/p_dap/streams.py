"""Noisy running sums of the rewards that our items earned with other vendors' users.

One stream for each asking vendor and each of its cells, or groups of cells that it names. The
store holds the exact count and sum of a stream, and beside them the noise of every node that a
release has used (see `discreet.privacy.continual.shared`). A node's noise is stored before it is
released and never drawn again: whoever needs a node that has none proposes a draw under a claim
that only the first can make, and then reads what stands there. Everybody releases the same number
for the same step.

Noise n is stored as 2n + 1. A field that is zero has not been drawn; one that is even has been
written twice, which the claims prevent, and if it happened all the same nothing is released.

Paying. One reward enters one stream, and all releases of all streams at one epsilon cost one
reward that epsilon, once (parallel composition over streams, and over the epochs of a stream).
Changing `vendor_privacy.epsilon` draws new noise for the same rewards, which composes. So the
account of (recommender, asking vendor) is debited once for each epsilon, before the first release
under it. When the account's budget does not allow that, nothing is told.
"""

import math
import struct
from hashlib import blake2b
from typing import TYPE_CHECKING

from discreet.families.p_dap.forwarding import Forward, RunningSum
from discreet.families.p_dap.notes import STREAM_BYTES
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.privacy.accountants import Budget, accountant
from discreet.privacy.continual.shared import STEPS
from discreet.state.stores import Claim

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

COUNT = 0
SUM = 1
_PAID = 0
_CLAIM_SECONDS = 7 * 86_400
"""Far longer than any worker can hold a draw that it has not stored yet."""
_RADIX = 256
_ACCOUNT = "\x01vendor "
"""Begins the name of a vendor's account. No client can have it: client ids are printable."""


def stream_of(recommender: PartitionRecommender, *, requester: str, forward: Forward) -> bytes:
    """Return the name under which we keep the stream that a forward's reward belongs to."""
    if forward.stream:
        named = b"\1" + forward.stream.encode()
    else:
        named = b"\0" + struct.pack(f"<q{len(forward.centre)}d", forward.level, *forward.centre)
    name = requester.encode()
    content = recommender.guests.streams + struct.pack("<q", len(name)) + name + named
    return blake2b(content, digest_size=STREAM_BYTES, person=b"stream").digest()


async def add_reward(
    runtime: "Runtime",
    recommender: PartitionRecommender,
    *,
    stream: bytes,
    claim: bytes,
    steps: int,
    ttl: int,
) -> None:
    """Count a reward in its stream, once."""
    learned = await runtime.store.learn(
        address=stream,
        increments=((COUNT, 1), (SUM, steps)),
        claim=claim,
        reward=steps,
        claim_ttl=ttl,
    )
    if learned.claim is Claim.COUNTED and learned.arrivals & (learned.arrivals - 1) == 0:
        await _index(runtime, recommender, stream)


async def pay(runtime: "Runtime", recommender: PartitionRecommender, requester: str) -> bool:
    """Tell whether sums may be released to this vendor, debiting its account if they were not yet.

    The debit is idempotent under a marker, and what has been paid is noted for ever afterwards, so
    a crash in between can at worst pay twice.
    """
    guests = recommender.guests
    epsilon = guests.sums.epsilon
    account = runtime.principals.client(recommender.name, _ACCOUNT + requester)
    paid = blake2b(
        guests.streams + account + struct.pack("<d", epsilon), digest_size=16, person=b"paid"
    ).digest()
    if paid in guests.paid:
        return True
    (noted,) = await runtime.store.read(addresses=[paid])
    if not (len(noted) and noted[_PAID] > 0):
        rule = accountant("basic")
        budget = Budget(epsilon=recommender.document.vendor_privacy.budget)
        debit = await runtime.store.spend(
            principal=account,
            charge=rule.charge(guests.sums.event),
            limit=rule.limit(budget),
            marker=paid,
            marker_ttl=_CLAIM_SECONDS,
        )
        if not debit.granted:
            return False
        await runtime.store.learn(
            address=paid, increments=((_PAID, 1),), claim=b"p", reward=1, claim_ttl=_CLAIM_SECONDS
        )
        await _index(runtime, recommender, paid)
    guests.paid.add(paid)
    return True


async def release(
    runtime: "Runtime", recommender: PartitionRecommender, stream: bytes
) -> RunningSum | None:
    """Return the stream's noisy sum so far, or None if it is empty. Must have been paid for."""
    (exact,) = await runtime.store.read(addresses=[stream])
    if len(exact) <= SUM or exact[COUNT] < 1:
        return None
    count = int(exact[COUNT])
    sums = recommender.guests.sums
    nodes = sums.nodes(count)
    places = {node: _place(stream, sums.epsilon, node) for node in nodes}
    noises = await _noises(runtime, places)
    missing = [node for node in nodes if noises[node] == 0]
    if missing:
        for node in missing:
            address, field = places[node]
            await runtime.store.learn(
                address=address,
                increments=((field, 2 * sums.draw(node, runtime.noise) + 1),),
                claim=struct.pack("<q", node),
                reward=0,
                claim_ttl=_CLAIM_SECONDS,
            )
            await _index(runtime, recommender, address)
        noises = await _noises(runtime, places)
    if any(stored % 2 == 0 for stored in noises.values()):
        return None
    total = int(exact[SUM]) + sum((stored - 1) // 2 for stored in noises.values())
    return RunningSum(
        releases=count,
        count=count,
        total=total / STEPS,
        deviation=math.sqrt(sums.variance(count)),
    )


async def _noises(runtime: "Runtime", places: dict[int, tuple[bytes, int]]) -> dict[int, int]:
    """Return what is stored for every node; 0 if nothing is."""
    addresses = list({address for address, _ in places.values()})
    vectors = dict(zip(addresses, await runtime.store.read(addresses=addresses), strict=True))
    return {
        node: int(vectors[address][field]) if field < len(vectors[address]) else 0
        for node, (address, field) in places.items()
    }


def _place(stream: bytes, epsilon: float, node: int) -> tuple[bytes, int]:
    """Return where a node's noise is stored, so that a release reads few and short vectors.

    Nodes that close an epoch share one vector. The others lie in vectors of 256 by the size of
    the node, so that a prefix needs one vector for every eight levels of its tree.
    """
    epoch = node.bit_length() - 1
    place = node - (1 << epoch) + 1
    if place == 1 << epoch:
        key, field = struct.pack("<d", epsilon), epoch
    else:
        layer = ((place & -place).bit_length() - 1) // 8
        within = place >> (8 * layer)
        key = struct.pack("<dqqq", epsilon, epoch, layer, within // _RADIX)
        field = within % _RADIX
    return blake2b(stream + key, digest_size=16, person=b"noise").digest(), field


async def _index(runtime: "Runtime", recommender: PartitionRecommender, address: bytes) -> None:
    """Note an address, so that it is erased together with its recommender."""
    await runtime.store.index_cell(index=recommender.guests.streams, address=address, level=0)
