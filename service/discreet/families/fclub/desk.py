"""Where letters are written, and wait until they are delivered: a blob of the store.

The same observations must never be written with other noise, and nothing leaves unpaid. So, in
this order, each step after the one before has been acknowledged:

1. the account of each letter is debited;
2. noise is drawn, and the letters are kept here as a *draft*, with what they cover;
3. what they cover is noted (`sent`), which is the moment at which the letters count as written: a
   draft for which that cannot be done any more is thrown away, unseen by anybody;
4. the letters wait here, numbered, until the global server says that it has them.

Whoever finds a draft goes on from there. The desk is saved by compare-and-set, and the page of what
was sent has its stamp, so two workers that both believe to hold the lease do no harm.

While letters wait no others are written: observations gather, and the next letter covers more of
them with the same noise. An unreachable global server therefore costs neither room nor privacy.

Each letter has an account of its own, which admits one debit: an observation is in one letter.
"""

import asyncio
import json
import os
from base64 import b64decode, b64encode
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.fclub.sent import STAMP_BYTES, Integers, Sent, commit, read_sent, room
from discreet.families.fclub.users import Users, read_users
from discreet.families.fclub.view import stored_view
from discreet.errors import Underpaid

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

MOST_LETTERS = 64
MOST_MEMBERS = 10_000
"""Of all letters of one draft; what is left over makes the next."""


@dataclass(frozen=True, slots=True)
class Enclosed:
    """A numbered letter: whom it is about, noisy sums in steps, and with what noise."""

    sequence: int
    members: tuple[int, ...]
    steps: tuple[int, ...]
    epsilon: float | None
    delta: float

    def fields(self) -> tuple[object, ...]:
        """Return what is stored."""
        return (self.sequence, self.members, self.steps, self.epsilon, self.delta)


@dataclass(frozen=True, slots=True)
class Draft:
    """Letters not yet noted: the page's stamp before and after, and the users' new records."""

    base: bytes
    stamp: bytes
    letters: tuple[Enclosed, ...]
    rows: dict[int, bytes]


@dataclass(frozen=True, slots=True)
class Desk:
    """`version` is the blob's; `next` the number of the next letter."""

    version: int
    next: int
    waiting: tuple[Enclosed, ...]
    draft: Draft | None


async def load_desk(runtime: "Runtime", recommender: ClusterRecommender) -> Desk:
    """Return the desk as it stands; an empty one if there is none yet."""
    (blob,) = await runtime.store.load(keys=[recommender.key(b"desk")])
    if blob is None:
        return Desk(0, 0, (), None)
    fields: dict[str, Any] = json.loads(blob.content)
    draft = fields["draft"]
    return Desk(
        version=blob.version,
        next=fields["next"],
        waiting=tuple(map(_letter, fields["waiting"])),
        draft=draft
        and Draft(
            base=bytes.fromhex(draft["base"]),
            stamp=bytes.fromhex(draft["stamp"]),
            letters=tuple(map(_letter, draft["letters"])),
            rows={int(number): b64decode(row) for number, row in draft["rows"].items()},
        ),
    )


async def save_desk(runtime: "Runtime", recommender: ClusterRecommender, desk: Desk) -> Desk | None:
    """Replace the desk that `desk` was made from; None if somebody else was faster."""
    draft = desk.draft
    content = {
        "next": desk.next,
        "waiting": [one.fields() for one in desk.waiting],
        "draft": draft
        and {
            "base": draft.base.hex(),
            "stamp": draft.stamp.hex(),
            "letters": [one.fields() for one in draft.letters],
            "rows": {str(number): b64encode(row).decode() for number, row in draft.rows.items()},
        },
    }
    version = await runtime.store.save(
        key=recommender.key(b"desk"),
        content=json.dumps(content, separators=(",", ":")).encode(),
        expected=desk.version,
    )
    return None if version is None else replace(desk, version=version)


async def settle(runtime: "Runtime", recommender: ClusterRecommender, desk: Desk) -> Desk | None:
    """Note what a draft covers, or throw it away; return the desk after it."""
    draft = desk.draft
    if draft is None:
        return desk
    if await commit(runtime, recommender, base=draft.base, stamp=draft.stamp, rows=draft.rows):
        desk = replace(
            desk, next=desk.next + len(draft.letters), waiting=desk.waiting + draft.letters
        )
    return await save_desk(runtime, recommender, replace(desk, draft=None))


async def write(runtime: "Runtime", recommender: ClusterRecommender, desk: Desk) -> Desk | None:
    """Write the letters that are due; return the desk after it, None if somebody else was faster.

    What is due depends on counts, on what was sent, and on what the global server made of it.
    """
    sent = await read_sent(runtime, recommender)
    view = await stored_view(runtime, recommender)
    users = await read_users(runtime, recommender)
    chosen, numbers = await _numbered(runtime, recommender, users)
    have, told = users.steps[chosen], sent.of(numbers)
    # Closed records and sums that were erased meanwhile: nothing may be written about those.
    usable = told[:, 0] <= have[:, 0]
    have, told, numbers = have[usable], told[usable], numbers[usable]
    groups = {} if view is None else view.groups
    due = recommender.learner.due(
        counts=have[:, 0],
        sent=told[:, 0],
        groups={
            place: groups[number]
            for place, number in enumerate(numbers.tolist())
            if number in groups
        },
    )
    batch = _bounded(due)
    if not batch:
        return desk
    draft = await _drafted(runtime, recommender, desk, sent, batch, numbers, have, told)
    kept = await save_desk(runtime, recommender, replace(desk, draft=draft))
    return None if kept is None else await settle(runtime, recommender, kept)


async def _numbered(
    runtime: "Runtime", recommender: ClusterRecommender, users: Users
) -> tuple[Integers, Integers]:
    """Return the places and numbers of users who may be in letters, giving numbers to new ones."""
    roster, known = recommender.key(b"users"), recommender.numbers
    unknown = [address for address in users.addresses if address not in known]
    found = await runtime.store.number_of(roster=roster, names=unknown)
    known.update(
        (address, number)
        for address, number in zip(unknown, found, strict=True)
        if number is not None
    )
    least = recommender.learner.introduction
    fresh = [
        address
        for address, count in zip(users.addresses, users.steps[:, 0].tolist(), strict=True)
        if count >= least and address not in known
    ]
    if fresh:
        given = await runtime.store.enrol(roster=roster, names=fresh)
        known.update(zip(fresh, given, strict=True))
    most = room(recommender)
    pairs = [
        (place, known[address])
        for place, address in enumerate(users.addresses)
        if known.get(address, most) < most
    ]
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _bounded(due: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    batch: list[tuple[int, ...]] = []
    members = 0
    for letter in due[:MOST_LETTERS]:
        members += len(letter)
        if batch and members > MOST_MEMBERS:
            break
        batch.append(letter)
    return batch


async def _drafted(
    runtime: "Runtime",
    recommender: ClusterRecommender,
    desk: Desk,
    sent: Sent,
    batch: list[tuple[int, ...]],
    numbers: Integers,
    have: Integers,
    told: Integers,
) -> Draft:
    """Pay for the letters, then write them."""
    stamp = os.urandom(STAMP_BYTES)
    await _pay(runtime, recommender, stamp, len(batch))
    privatizer = recommender.privatizer

    def written() -> tuple[Enclosed, ...]:
        letters = []
        for place, members in enumerate(batch):
            rows = list(members)
            released = privatizer.write(
                members=numbers[rows].tolist(),
                pending=(have[rows] - told[rows]).sum(axis=0),
                noise=runtime.noise,
            )
            if released.event != privatizer.event:
                raise Underpaid("a letter that was not paid for")
            letter = released.value
            letters.append(
                Enclosed(
                    sequence=desk.next + place,
                    members=letter.members,
                    steps=tuple(letter.steps.tolist()),
                    epsilon=privatizer.epsilon,
                    delta=privatizer.delta,
                )
            )
        return tuple(letters)

    covered = [row for members in batch for row in members]
    return Draft(
        base=sent.stamp,
        stamp=stamp,
        letters=await asyncio.to_thread(written),
        rows={int(numbers[row]): have[row].astype(">i8").tobytes() for row in covered},
    )


async def _pay(
    runtime: "Runtime", recommender: ClusterRecommender, stamp: bytes, letters: int
) -> None:
    """Debit the account of every letter, each once; a draft that is thrown away was paid too."""
    if recommender.exact_letters:
        return  # said aloud: these letters protect nobody
    charge = recommender.privatizer.charge
    debits = [
        runtime.store.spend(
            principal=recommender.key(b"letter account", stamp + place.to_bytes(4, "big")),
            charge=charge,
            limit=recommender.letter_limit,
        )
        for place in range(letters)
    ]
    for debit in debits:
        if not (await debit).granted:
            raise Underpaid("a letter's account was debited before")
        runtime.observer.spent(
            recommender=recommender.name, algorithm=recommender.algorithm, charge=charge
        )


def _letter(fields: Any) -> Enclosed:
    sequence, members, steps, epsilon, delta = fields
    return Enclosed(sequence, tuple(members), tuple(steps), epsilon, delta)
