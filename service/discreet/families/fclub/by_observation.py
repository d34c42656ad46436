"""Releases that protect one observation, outside the server: the reading `observation`.

The model is made from the exact sums of this server's users and from other servers' noisy updates.
It serves this server's users only, and they are not protected from each other. What leaves the
server is noisy updates: a first one about a user alone, after `introduction` observations, when
noise no longer drowns it; later ones about all users of the server whom the merged model puts into
one cluster, once as much has come as was sent.

Why updates do not compose. Let two records of a server's observations differ in one, o. Whether and
when an update is written, about whom, and which observations it covers, depends on counts and on
the merged model, which is a function of updates sent before. So, given those, the two records' next
updates cover the same observations. Exactly one update covers o; every other has the same
distribution for both records. So all updates together lose what that one loses.

Clusters that the server finds in its own exact data never decide what is in an update: they depend
on observations, and a change of one could move a whole user from one update to another.

What this holds fixed is everything else. In the served loop an observation also changes what is
shown next, and with it later observations, which are protected each by itself and not as a trace of
the first. So this is a promise about an observation, not about a person, and not a closed loop.

The updates, and which sums they covered, are part of the model, which is stored in one step: the
same observations are never written with other noise. While updates wait for the global server no
others are written: observations gather, and the next update covers more of them with one noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from discreet.families.fclub.codec import (
    Arrays,
    kinds_as_arrays,
    pack_principals,
    read_kinds,
    read_updates,
    unpack_principals,
    updates_as_arrays,
)
from discreet.families.fclub.evidence import Knowledge
from discreet.families.fclub.learning import (
    FederatedClusters,
    Integers,
    OwnSums,
    Reading,
    lot,
    own_sums_by_chunk,
)
from discreet.families.fclub.model import (
    ClusterModel,
    NumberedUpdate,
    Preferences,
    UserKinds,
)
from discreet.families.fclub.own_rows import OwnEncoding
from discreet.families.fclub.sums import COUNT, NoisyUpdate, folded, unfolded
from discreet.families.fclub.sync.local_server import Deliveries
from discreet.families.fclub.sync.merged_model import MergedModel, MergedModelStore
from discreet.privacy.matrices import half_size
from discreet.privacy.noise import NoiseSource
from discreet.state.principals import DIGEST_BYTES
from discreet.state.stores import Store

MOST_USERS = 50_000
"""Users that a release looks at; fewer if their features are long."""
MOST_UPDATES = 64
MOST_MEMBERS = 10_000
"""Of all updates of one release; what is left over is in the next."""
_MOST_BYTES = 24 * 2**20
"""For each of the large parts of a model: others' knowledge by user, covered sums, updates."""
_NOBODY = bytes(DIGEST_BYTES)


@dataclass(frozen=True, slots=True, eq=False)
class ReportedSums:
    """The sums that updates have covered, a row for each user who was in one.

    A user's number is the place of their row, for ever; an erased user's row is nobody's.
    """

    principals: tuple[bytes, ...]
    covered: Integers

    def numbers(self) -> dict[bytes, int]:
        """Return the number of each user."""
        return {
            principal: number
            for number, principal in enumerate(self.principals)
            if principal != _NOBODY
        }

    def without(self, principals: frozenset[bytes]) -> "ReportedSums":
        """Return the same without what was covered of these users."""
        gone = np.array([each in principals for each in self.principals], dtype=np.bool_)
        if not gone.any():
            return self
        kept = tuple(
            _NOBODY if left else each for each, left in zip(self.principals, gone, strict=True)
        )
        return ReportedSums(kept, np.where(gone[:, None], 0, self.covered))


@dataclass(frozen=True, eq=False, kw_only=True)
class ObservationModel(ClusterModel):
    """Clusters of a server's users, and what was written about them.

    `others` has a row for each of `principals`: what everybody else tells, half matrix and vector.
    """

    principals: tuple[bytes, ...]
    others: npt.NDArray[np.float32]
    kinds: UserKinds
    cluster_count: int
    reported: ReportedSums
    updates: tuple[NumberedUpdate, ...]
    next_number: int
    places: dict[bytes, int] = field(init=False)

    def __post_init__(self) -> None:
        places = {principal: place for place, principal in enumerate(self.principals)}
        object.__setattr__(self, "places", places)

    @property
    def clusters(self) -> int:
        """How many clusters of this server's users there are."""
        return self.cluster_count

    def preferences(self, clients: Sequence[bytes], own: Knowledge) -> Preferences:
        """Return each client's preferences: own sums, and those of the client's cluster.

        Who came since the release is compared with the clusters that it found.
        """
        places = np.array([self.places.get(client, -1) for client in clients], dtype=np.intp)
        estimate, covariance = np.empty_like(own.vector), np.empty_like(own.matrix)
        placed, new = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
        if len(placed):
            rows = self.others[places[placed]].astype(np.float64)
            dimensions = own.vector.shape[-1]
            half = half_size(dimensions)
            known = np.eye(dimensions) / self.kinds.variety + own.matrix[placed]
            inverse = np.asarray(
                np.linalg.inv(known + unfolded(rows[:, :half], dimensions)), dtype=np.float64
            )
            vector = own.vector[placed] + rows[:, half:]
            covariance[placed] = inverse
            estimate[placed] = (inverse @ vector[..., None])[..., 0]
        if len(new):
            estimate[new], covariance[new] = self.kinds.preferences(own[new])
        return Preferences(estimate, covariance)


@dataclass(frozen=True, slots=True, eq=False)
class GatheredUsers:
    """Everybody's exact sums, who is in no update any more, and what other servers tell."""

    own: OwnSums
    closed: frozenset[bytes]
    merged: MergedModel | None
    delivered: int
    """The number of the next update that the global server has not; -1 if there is none."""


class ObservationReading(Reading[ObservationModel]):
    """Releases exact clusters to this server's users, and noisy updates to other servers."""

    def __init__(
        self,
        *,
        rule: FederatedClusters,
        generation: bytes,
        store: Store,
        merged: MergedModelStore,
        deliveries: Deliveries | None,
        closed_roster: bytes,
    ) -> None:
        self.rule = rule
        self._generation = generation
        self._store = store
        self._merged = merged
        self._deliveries = deliveries
        self._closed = closed_roster
        self._encoding = rule.encoding
        half = half_size(rule.dimensions)
        self._most_users = min(MOST_USERS, _MOST_BYTES // (4 * (half + rule.dimensions)))
        self._most_rows = _MOST_BYTES // (8 * self._encoding.fields)

    def blank(self) -> ObservationModel:
        """Return the model that knows nobody."""
        fields = self._encoding.fields
        nobody = Knowledge.nothing(dimensions=self.rule.dimensions, pieces=0)
        return ObservationModel(
            principals=(),
            others=np.zeros((0, fields - 1), dtype=np.float32),
            kinds=UserKinds(nobody, np.zeros(0), self.rule.clustering.variety),
            cluster_count=0,
            reported=ReportedSums((), np.zeros((0, fields), dtype=np.int64)),
            updates=(),
            next_number=0,
        )

    async def gather(self, number: int, model: ObservationModel) -> GatheredUsers:
        """Read everybody's sums, and then who was erased.

        In this order: a user is closed before their sums are erased, so whoever gave feedback anew
        after that is found closed.
        """
        own = await self._read(number)
        users = [*{*own.principals, *model.reported.principals}]
        closings = await self._store.number_of(roster=self._closed, names=users)
        closed = frozenset(
            user for user, closing in zip(users, closings, strict=True) if closing is not None
        )
        return GatheredUsers(
            own,
            closed,
            await self._merged.load(),
            -1 if self._deliveries is None else await self._deliveries.load(),
        )

    async def _read(self, number: int) -> OwnSums:
        """Return everybody's own sums; of too many, a sample that changes with every release."""
        owners = list(await self._store.owners(generation=self._generation))
        if len(owners) > self._most_users:
            owners.sort(key=lambda principal: lot(principal, number))
            owners = sorted(owners[: self._most_users])
        chunks = own_sums_by_chunk(
            self._store,
            generation=self._generation,
            owners=owners,
            own=OwnEncoding(self._encoding),
        )
        found = [chunk async for chunk in chunks]
        fields = self._encoding.fields
        nobody = np.zeros((0, fields), dtype=np.int64)
        return OwnSums(
            tuple(principal for chunk in found for principal in chunk.principals),
            np.concatenate([nobody, *(chunk.steps[:, :fields] for chunk in found)]),
        )

    async def before_forgetting(self, principal: bytes) -> None:
        """Let no update be written about a user from now on.

        Sums that begin anew could not be told from those that an update has covered.
        """
        await self._store.enrol(roster=self._closed, names=[principal])

    async def erase(self) -> None:
        """Forget who was erased."""
        await self._store.remove_roster(roster=self._closed)

    def release(
        self, model: ObservationModel, gathered: GatheredUsers, noise: NoiseSource
    ) -> ObservationModel:
        """Return the next model: updates that are due, and clusters as they are now."""
        model = replace(model, reported=model.reported.without(gathered.closed))
        if gathered.delivered >= model.next_number:
            model = self._written(model, gathered, noise)
        return self._clustered(model, gathered)

    def _written(
        self, model: ObservationModel, gathered: GatheredUsers, noise: NoiseSource
    ) -> ObservationModel:
        own, reported = gathered.own, model.reported
        number_of = reported.numbers()
        numbers = np.array([number_of.get(each, -1) for each in own.principals], dtype=np.int64)
        covered = np.zeros_like(own.steps)
        covered[numbers >= 0] = reported.covered[numbers[numbers >= 0]]
        usable = covered[:, COUNT] <= own.steps[:, COUNT]
        usable &= np.array([each not in gathered.closed for each in own.principals], dtype=np.bool_)
        if len(reported.principals) >= self._most_rows or len(model.updates) >= self._most_rows:
            usable &= numbers >= 0
        rows = np.flatnonzero(usable)
        groups = {} if gathered.merged is None else gathered.merged.groups
        due = self.rule.due(
            counts=own.steps[rows, COUNT],
            sent=covered[rows, COUNT],
            groups={
                place: groups[int(numbers[row])]
                for place, row in enumerate(rows)
                if int(numbers[row]) in groups
            },
        )
        batch = [rows[list(places)] for places in _bounded(due)]
        named = [int(row) for members in batch for row in members]
        fresh = [row for row in named if numbers[row] < 0]
        numbers[fresh] = len(reported.principals) + np.arange(len(fresh))
        table = np.concatenate([reported.covered, own.steps[fresh]])
        table[numbers[named]] = own.steps[named]
        totals = {each.update.members: each for each in model.updates}
        for number, members in enumerate(batch, start=model.next_number):
            written = self.rule.privatizer.write(
                members=sorted(numbers[members].tolist()),
                pending=(own.steps[members] - covered[members]).sum(axis=0),
                noise=noise,
            ).value
            total = _added(totals.get(written.members), written)
            totals[written.members] = NumberedUpdate(number, total)
        return replace(
            model,
            reported=ReportedSums(
                (*reported.principals, *(own.principals[row] for row in fresh)), table
            ),
            updates=tuple(sorted(totals.values(), key=lambda each: each.number)),
            next_number=model.next_number + len(batch),
        )

    def _clustered(self, model: ObservationModel, gathered: GatheredUsers) -> ObservationModel:
        own, merged = gathered.own, gathered.merged
        foreign = None if merged is None else merged.foreign
        sums = self._encoding.sums(own.steps)
        found = self.rule.local_clusters(
            users=self.rule.knowledge(grams=sums.gram, moments=sums.moment), foreign=foreign
        )
        # A cluster that only other servers know counts as one user.
        shares = np.bincount(found.labels, minlength=len(found.total)).astype(np.float64)
        shares[: 0 if foreign is None else len(foreign)] += 1.0
        others = np.concatenate([folded(found.others.matrix), found.others.vector], axis=1)
        return replace(
            model,
            principals=own.principals,
            others=others.astype(np.float32),
            kinds=UserKinds(found.total, shares, self.rule.clustering.variety).largest(),
            cluster_count=found.clusters,
        )

    # As bytes.

    def as_arrays(self, model: ObservationModel) -> Arrays:
        """Return a model as named arrays."""
        return {
            "principals": pack_principals(model.principals),
            "others": model.others,
            "numbers": np.array([model.cluster_count, model.next_number]),
            "reported": pack_principals(model.reported.principals),
            "covered": model.reported.covered,
            **kinds_as_arrays(model.kinds),
            **updates_as_arrays(model.updates),
        }

    def from_arrays(self, arrays: Arrays) -> ObservationModel:
        """Return the model that `as_arrays` wrote."""
        clusters, next_number = arrays["numbers"].tolist()
        variety = self.rule.clustering.variety
        return ObservationModel(
            principals=unpack_principals(arrays["principals"]),
            others=arrays["others"],
            kinds=read_kinds(arrays, dimensions=self.rule.dimensions, variety=variety),
            cluster_count=clusters,
            reported=ReportedSums(unpack_principals(arrays["reported"]), arrays["covered"]),
            updates=read_updates(arrays),
            next_number=next_number,
        )


def _added(total: NumberedUpdate | None, written: NoisyUpdate) -> NoisyUpdate:
    """Return the total about some members with what was written about them now."""
    if total is None:
        return written
    return NoisyUpdate(
        written.members,
        total.update.steps + written.steps,
        math.hypot(total.update.deviation, written.deviation),
    )


def _bounded(due: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    batch: list[tuple[int, ...]] = []
    members = 0
    for update in due[:MOST_UPDATES]:
        members += len(update)
        if batch and members > MOST_MEMBERS:
            break
        batch.append(update)
    return batch
