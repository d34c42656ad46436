"""Releases that protect everything a person did, in a closed loop: the reading `person`.

A person's own sums serve that person. Everybody else, on the same server too, is served from what
releases tell. A release is a sum over people, with noise that covers all that one of them put in
(`person_noise` has the proof of what that costs).

What a person puts in. In a release a person takes part or not; who takes part gives their own sums,
scaled so that they count as `contribution` observations however many they are, to one of the
*slots* of the release, one for each kind of users. Which slot that is, the person's own sums and
the last released model decide. Noise is drawn for every number of every slot.

Who else takes part, and what they put in, depends on their own data and on released models alone.
So nothing that others see, ever, depends on a person's feedback in any way but through that noise:
the loop is closed.

Taking part is paid for, from the person's budget for feedback, in the same atomic step that notes
it in their own sums (`gather`); whoever cannot pay is left out. A release that is repeated after a
crash finds it paid. The noise of a release that was not stored was seen by nobody.

How the slots come to mean something. At first people go to the slot whose direction, one of some
public random directions, is nearest to what they liked; later to the slot whose released knowledge
fits their own sums best, or, if none fits better than none, to a slot that is still free, again by
direction. Early releases mix kinds up, so older ones are weighted less. A release counts as much as
people took part in it, judged by its own noisy count: one in which few did is mostly noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.families.budgets import BudgetPolicy
from discreet.families.fclub.codec import (
    Arrays,
    kinds_as_arrays,
    read_kinds,
    read_updates,
    updates_as_arrays,
)
from discreet.families.fclub.consensus import information
from discreet.families.fclub.evidence import Floats, Knowledge, widened
from discreet.families.fclub.learning import (
    FederatedClusters,
    Integers,
    OwnSums,
    Reading,
    lot,
    own_sums_by_chunk,
)
from discreet.families.fclub.model import ClusterModel, NumberedUpdate, UserKinds
from discreet.families.fclub.own_rows import OwnEncoding
from discreet.families.fclub.person_noise import COUNT_WEIGHT, PersonNoise
from discreet.families.fclub.sums import COUNT, STEPS, LinearSums, NoisyUpdate, unfolded
from discreet.families.fclub.sync.merged_model import MergedModel, MergedModelStore
from discreet.privacy.charges import Charge
from discreet.privacy.matrices import half_size
from discreet.privacy.noise import NoiseSource
from discreet.privacy.normal import quantiles
from discreet.state.stores import OWN, FeedbackRecord, Learned, Store

FIRST_UPDATE = 10
"""Observations of a person before they first take part, unless the document says another number."""
GROWTH = 0.3
"""How much more must have come before they take part again, unless the document says."""
MOST_PEOPLE = 200_000
"""Who take part in one release, about. If the largest release so far had more, everybody draws a
lot whether to wait for the next: the share is known from released counts, so that nobody's part
depends on others' feedback."""

_CLAIM_SECONDS = 30 * 86_400
_KEPT = 0.85
"""What an older release is worth after one that everybody took part in."""
_CLEARLY = 2.5
"""Deviations of its noise that a count must exceed to be believed."""
_SPREAD = 0.45
"""How much users of one kind differ, compared with how much anybody differs from anybody."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PersonModel(ClusterModel):
    """Weighted sums of what was released, a row a slot: count, half of V, b.

    `variance` is that of the noise on every entry of V. `largest` is the noisy count of the release
    in which most people took part; `next_number` the number of the next update.
    """

    totals: Floats
    variance: float
    largest: float
    next_number: int
    kinds: UserKinds
    slots: tuple[int, ...]
    """The slot where users of each kind go, -1 if none is left."""
    updates: tuple[NumberedUpdate, ...]

    @property
    def clusters(self) -> int:
        """How many kinds of users are told apart."""
        return len(self.kinds.shares)


@dataclass(frozen=True, slots=True, eq=False)
class GatheredPeople:
    """Those who take part in a release, and have paid: their own sums, a row each."""

    steps: Integers
    merged: MergedModel | None


class PersonReading(Reading[PersonModel]):
    """Releases sums over people, with noise that covers all of one."""

    def __init__(
        self,
        *,
        rule: FederatedClusters,
        slots: int,
        noise: PersonNoise,
        charge: Charge,
        budget: BudgetPolicy,
        purpose: bytes,
        generation: bytes,
        store: Store,
        merged: MergedModelStore,
    ) -> None:
        self.rule = rule
        self.noise = noise
        self._charge = charge
        self._budget = budget
        self._purpose = purpose
        self._generation = generation
        self._store = store
        self._merged = merged
        self._encoding = rule.encoding
        self._own = OwnEncoding(rule.encoding)
        # Public, and the same in every worker.
        rng = np.random.default_rng(int.from_bytes(generation, "big"))
        fractions = np.maximum(rng.random((slots, rule.dimensions)), 2.0**-54)
        drawn: Floats = quantiles(fractions)
        self._directions: Floats = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    def blank(self) -> PersonModel:
        """Return the model that knows nobody."""
        totals = np.zeros((len(self._directions), self._encoding.fields))
        kinds, slots = self._kinds(totals, 0.0, None)
        return PersonModel(
            totals=totals,
            variance=0.0,
            largest=0.0,
            next_number=0,
            kinds=kinds,
            slots=slots,
            updates=(),
        )

    # Who takes part.

    async def gather(self, number: int, model: PersonModel) -> GatheredPeople:
        """Return those who are due and can pay, having made them pay, each once.

        Beside their sums stand two numbers of this reading: in which release they took part last,
        and how many observations they had then.
        """
        # Begins the count of charged records anew: everybody's part is the first of this release.
        await self._store.freeze(generation=self._generation, number=number)
        fields = self._encoding.fields
        share = MOST_PEOPLE * self.noise.contribution / max(model.largest, 1.0)
        taking_part = [np.zeros((0, fields), dtype=np.int64)]
        async for people in own_sums_by_chunk(
            self._store,
            generation=self._generation,
            owners=await self._store.owners(generation=self._generation),
            own=self._own,
        ):
            due = self._due(people, number, share)
            paid = await self._paid(people, due, number)
            taking_part.append(people.steps[paid, :fields])
        return GatheredPeople(np.concatenate(taking_part), await self._merged.load())

    def _due(self, people: OwnSums, number: int, share: float) -> list[int]:
        """Return the rows of those who are due: by their own sums, and by nobody else's."""
        counts, last, had = people.steps[:, [COUNT, -2, -1]].T
        enough = np.maximum(self.noise.contribution, np.ceil(had * (1 + self.rule.growth)))
        # Those who paid for this release before a crash are asked again, and it says that they did.
        due = np.flatnonzero((counts >= enough) | (last == number)).tolist()
        return [row for row in due if lot(people.principals[row], number) < share]

    async def _paid(self, people: OwnSums, due: Sequence[int], number: int) -> list[int]:
        """Make those who are due pay, and return who did, now or before a crash."""
        fields = self._encoding.fields
        counts, last, had = people.steps[:, [COUNT, -2, -1]].T.tolist()
        learned = await self._store.learn(
            [
                FeedbackRecord(
                    principal=people.principals[row],
                    generation=self._generation,
                    claim=self._generation + b"part" + number.to_bytes(8, "big"),
                    reward=0,
                    claim_ttl=_CLAIM_SECONDS,
                    increments={
                        OWN: [(fields, number - last[row]), (fields + 1, counts[row] - had[row])]
                    },
                    charge=self._charge,
                    limit=self._budget.limit,
                    window=self._budget.window,
                    purpose=self._purpose,
                )
                for row in due
            ]
        )
        paid = []
        for row, outcome in zip(due, learned, strict=True):
            # Of an outcome that is not known nothing is released, though it may be paid.
            if not isinstance(outcome, Learned) or not outcome.added:
                continue
            paid.append(row)
        erased = await self._erased(people, paid)
        return [row for row in paid if row not in erased]

    async def _erased(self, people: OwnSums, paid: Sequence[int]) -> set[int]:
        """Take back what was noted about people who were erased after their sums were read.

        Observations become fewer in no other way. Asked also if nobody takes part: how often the
        store is asked shows on /metrics.
        """
        principals = [people.principals[row] for row in paid]
        found = await self._store.own(generation=self._generation, principals=principals)
        erased = {
            row
            for row, sums in zip(paid, found, strict=True)
            if self._own.count(sums) < people.steps[row, COUNT]
        }
        for row in erased:
            await self._store.forget_own(
                generation=self._generation, principal=people.principals[row]
            )
        return erased

    # What is released.

    def release(
        self, model: PersonModel, gathered: GatheredPeople, noise: NoiseSource
    ) -> PersonModel:
        """Return the last model with one more noisy sum in it."""
        exact = self._summed(model, gathered.steps)
        drawn = noise.discrete_gaussian(scale=self.noise.deviation * STEPS, size=exact.size)
        released = (exact + drawn.reshape(exact.shape)) / STEPS
        released[:, COUNT] /= COUNT_WEIGHT
        return self._followed(model, released, gathered.merged)

    def _summed(self, model: PersonModel, steps: Integers) -> Integers:
        """Return what those who take part put in, a row a slot."""
        summed = np.zeros(model.totals.shape, dtype=np.int64)
        if len(steps):
            share = self.noise.contribution / steps[:, [COUNT]]
            parts = np.rint(steps * share)
            parts[:, COUNT] = np.rint(self.noise.contribution * COUNT_WEIGHT * STEPS)
            np.add.at(summed, self._slots(model, steps), parts.astype(np.int64))
        return summed

    def _slots(self, model: PersonModel, steps: Integers) -> Integers:
        """Return the slot of each person, by their own sums and the released model."""
        sums = self._encoding.sums(steps)
        taken = np.array([slot for slot in model.slots if slot >= 0], dtype=np.int64)
        free = np.setdiff1d(np.arange(len(model.totals)), taken)
        if not len(free):
            free = np.argsort(model.totals[:, COUNT], kind="stable")[:1]
        liked = sums.moment @ self._directions[free].T
        slots: Integers = free[liked.argmax(axis=1)]
        if len(taken):
            homes = np.array(model.slots)
            kinds = model.kinds.knowledge[homes >= 0]
            users = self.rule.knowledge(grams=sums.gram, moments=sums.moment)
            factors = self.rule.clustering.factors(users=users, clusters=kinds)
            best = factors.argmax(axis=1)
            fits = factors[np.arange(len(best)), best] > 0
            slots[fits] = homes[homes >= 0][best[fits]]
        return slots

    def _followed(
        self, model: PersonModel, released: Floats, merged: MergedModel | None
    ) -> PersonModel:
        """Return the model after a release: everything from here on is post-processing."""
        half = half_size(self.rule.dimensions)
        released[:, 1 + half :] /= self._encoding.weight
        count_deviation = self.noise.deviation / COUNT_WEIGHT
        came = float(released[:, COUNT].sum())
        if came < _CLEARLY * count_deviation * math.sqrt(len(released)):
            # Too few took part to be told from none.
            kinds, slots = self._kinds(model.totals, model.variance, merged)
            return replace(model, kinds=kinds, slots=slots)
        largest = max(model.largest, came)
        weight = came / largest
        kept = _KEPT**weight * (model.largest / largest)
        totals = kept * model.totals + weight * released
        variance = kept**2 * model.variance + (weight * self.noise.deviation) ** 2
        number = model.next_number
        updates = tuple(
            NumberedUpdate(number + place, self._update(slot, totals[slot], variance))
            for place, slot in enumerate(_known(totals, variance))
        )
        kinds, slots = self._kinds(totals, variance, merged)
        return PersonModel(
            totals=totals,
            variance=variance,
            largest=largest,
            next_number=number + len(updates),
            kinds=kinds,
            slots=slots,
            updates=updates,
        )

    def _update(self, slot: int, total: Floats, variance: float) -> NoisyUpdate:
        half = half_size(self.rule.dimensions)
        stretched = np.concatenate([total[1 : 1 + half], self._encoding.weight * total[1 + half :]])
        steps = np.concatenate([[max(1, round(total[COUNT]))], np.rint(stretched * STEPS)])
        return NoisyUpdate((slot,), steps.astype(np.int64), math.sqrt(variance))

    def _kinds(
        self, totals: Floats, variance: float, merged: MergedModel | None
    ) -> tuple[UserKinds, tuple[int, ...]]:
        """Return what slots and other servers tell about kinds of users, and each kind's slot."""
        d, half = self.rule.dimensions, half_size(self.rule.dimensions)
        known = _known(totals, variance)
        rows = totals[known]
        own = Knowledge.nothing(dimensions=d, pieces=0)
        if known:
            own = information(
                LinearSums(unfolded(rows[:, 1 : 1 + half], d), rows[:, 1 + half :], rows[:, COUNT]),
                gram_noise=np.full(len(known), variance),
                moment_noise=np.full(len(known), variance / self._encoding.weight**2),
                variety=self.rule.clustering.variety,
                reward_variance=self.rule.reward_variance,
            )
        shares = rows[:, COUNT]
        slots = list(known)
        if merged is not None and len(merged.foreign):
            label_of = [merged.groups.get(slot, -1) for slot in known]
            labels = np.array(label_of, dtype=np.int64)
            told = labels >= 0
            own.matrix[told] += merged.foreign.matrix[labels[told]]
            own.vector[told] += merged.foreign.vector[labels[told]]
            others = np.setdiff1d(np.arange(len(merged.foreign)), labels)
            free = [slot for slot in range(len(totals)) if slot not in known]
            slots += [free[at] if at < len(free) else -1 for at in range(len(others))]
            foreign = merged.foreign[others]
            own = Knowledge(
                np.concatenate([own.matrix, foreign.matrix]),
                np.concatenate([own.vector, foreign.vector]),
            )
            shares = np.concatenate([shares, np.maximum(merged.counts[others], 1.0)])
        # A slot tells what its users like on average; each of them differs from that.
        variety = self.rule.clustering.variety
        loose = Knowledge(*widened(own.matrix, own.vector, _SPREAD * math.sqrt(variety)))
        return UserKinds(loose, shares, variety), tuple(slots)

    # As bytes.

    def as_arrays(self, model: PersonModel) -> Arrays:
        """Return a model as named arrays."""
        return {
            "totals": model.totals,
            "numbers": np.array([model.variance, model.largest]),
            "next_number": np.array(model.next_number),
            "slots": np.array(model.slots, dtype=np.int64),
            **kinds_as_arrays(model.kinds),
            **updates_as_arrays(model.updates),
        }

    def from_arrays(self, arrays: Arrays) -> PersonModel:
        """Return the model that `as_arrays` wrote."""
        variance, largest = arrays["numbers"].tolist()
        variety = self.rule.clustering.variety
        return PersonModel(
            totals=arrays["totals"],
            variance=variance,
            largest=largest,
            next_number=int(arrays["next_number"]),
            kinds=read_kinds(arrays, dimensions=self.rule.dimensions, variety=variety),
            slots=tuple(arrays["slots"].tolist()),
            updates=read_updates(arrays),
        )


def _known(totals: Floats, variance: float) -> Sequence[int]:
    """Return the slots whose noisy count is clearly above its noise."""
    least = _CLEARLY * math.sqrt(variance) / COUNT_WEIGHT
    counts = totals[:, COUNT]
    return [int(slot) for slot in np.flatnonzero((counts > least) & (counts > 0))]
