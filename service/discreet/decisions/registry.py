"""Which recommenders and keys exist, seen alike by every worker at once.

Workers answer from memory, under a *lease*: they may trust what they hold for `lease_seconds`
after they last asked the store for its epoch, and they ask several times in that span. Whoever
changes something waits out one lease before saying that it is done. So once a change has been
acknowledged, no worker anywhere answers from before it, and no request pays a round trip for that.

An infinite lease is for a process that is alone with its store: simulations.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakSet

from discreet.decisions import changes
from discreet.decisions.changes import ALWAYS, UNKNOWN, ChangedRecord, Precondition
from discreet.decisions.endings import cancelled, end_all, ended, retrieve
from discreet.decisions.ledger_groups import fix_ledger, fix_terms
from discreet.errors import (
    DiscreetError,
    InvalidArgument,
    RecommenderUnreadable,
    StoreUnavailable,
    UnknownRecommender,
    only_reading,
)
from discreet.families.contract import Recommender, Resources
from discreet.families.documents import RecommenderDocument
from discreet.families.experiments import ExperimentDocument, read_experiment
from discreet.families.registration import FAMILIES, read_stored
from discreet.families.stored import StoredDocument, UnreadableRecord
from discreet.state.stores import Configurations

log = logging.getLogger(__name__)

RECOMMENDER = "recommender/"
EXPERIMENT = "experiment/"
KEY = "key/"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything configured, at one epoch; `unreadable` has reasons, by name."""

    epoch: int
    documents: Mapping[str, bytes]
    recommenders: Mapping[str, Recommender[Any]]
    by_generation: Mapping[bytes, Recommender[Any]]
    experiments: Mapping[str, ExperimentDocument]
    unreadable: Mapping[str, str]

    @property
    def unserved(self) -> list[str]:
        """The names of recommenders, and of no experiments, that cannot be read."""
        return [name for name in self.unreadable if RECOMMENDER + name in self.documents]


Visit = Callable[[Recommender[Any]], Awaitable[None]]


class RecommenderRegistry:
    """The worker's leased view of the store's registry, and the way to change it.

    `prepare` is awaited for a recommender before it answers anything, `retire` once it is replaced
    or removed in this worker, `erase` once it is removed everywhere.
    """

    def __init__(
        self,
        *,
        store: Configurations,
        resources: Resources,
        lease_seconds: float,
        prepare: Visit,
        retire: Visit,
        erase: Visit,
    ) -> None:
        self._store = store
        self._resources = resources
        self._lease = lease_seconds
        self._prepare = prepare
        self._retire = retire
        self._erase = erase
        self._snapshot = Snapshot(-1, {}, {}, {}, {}, {})
        self._built: dict[str, tuple[bytes, Recommender[Any]]] = {}
        """What this worker changed and has not adopted yet."""
        self._in_memory: WeakSet[Recommender[Any]] = WeakSet()
        self._trusted_until = -1.0
        self._refreshing: asyncio.Task[None] | None = None
        self._poll: asyncio.Task[None] | None = None

    def _read(self, name: str, content: bytes) -> Recommender[Any]:
        with changes.collection_paused():
            stored = read_stored(content)
        try:
            return self._build(name, stored)
        except Exception as error:
            log.exception("a stored document cannot be served")
            raise UnreadableRecord("nothing can be built from it") from error

    async def _built_or_read(self, full: str, name: str, content: bytes) -> Recommender[Any]:
        """Return what was built when it was changed here, or read it, in a thread: large
        catalogues take long, and requests go on meanwhile."""
        made, built = self._built.pop(full, (b"", None))
        if built is not None and made == content:
            return built
        return await asyncio.to_thread(self._read, name, content)

    def _build(self, name: str, stored: StoredDocument) -> Recommender[Any]:
        family = FAMILIES[stored.document.algorithm]
        built = family(name=name, stored=stored, resources=self._resources)
        self._in_memory.add(built)
        return built

    # Reading.

    def trusted(self) -> Snapshot | None:
        """Return the snapshot if the lease still holds: the request path's way, no awaiting."""
        return self._snapshot if time.monotonic() < self._trusted_until else None

    async def current(self) -> Snapshot:
        """Return a snapshot that is true now; to be asked for before anything is written."""
        if time.monotonic() >= self._trusted_until:
            with only_reading():
                await self.refresh()
        return self._snapshot

    async def refresh(self) -> None:
        """Ask the store; concurrent callers share one question that began after they called."""
        previous = self._refreshing
        if previous is not None and not previous.done():
            with suppress(DiscreetError):
                await asyncio.shield(previous)
            if time.monotonic() < self._trusted_until:
                return
        await self._load_once()

    async def _load(self) -> None:
        asked = time.monotonic()
        if self._snapshot.epoch != await self._store.epoch():
            asked = time.monotonic()
            found = await self._store.registry()
            await self._adopt(found.epoch, found.documents)
        self._trusted_until = asked + self._lease

    async def _adopt(self, epoch: int, documents: Mapping[str, bytes]) -> None:
        previous = self._snapshot
        recommenders: dict[str, Recommender[Any]] = {}
        experiments, unreadable = _experiments(documents)
        for name, content in documents.items():
            if not name.startswith(RECOMMENDER):
                continue
            short = name.removeprefix(RECOMMENDER)
            if previous.documents.get(name) == content and short in previous.recommenders:
                recommenders[short] = previous.recommenders[short]
                continue
            try:
                recommender = await self._built_or_read(name, short, content)
                await self._prepare(recommender)
            except UnreadableRecord as reason:
                # Perhaps of a version that knows more than we do; the others go on serving.
                unreadable[short] = str(reason)
            else:
                recommenders[short] = recommender
        for name, why in unreadable.items():
            if why != previous.unreadable.get(name):
                log.error("the recommender %s is not served: %s", name, why)
        self._snapshot = Snapshot(
            epoch=epoch,
            documents=dict(documents),
            recommenders=recommenders,
            by_generation={one.generation: one for one in recommenders.values()},
            experiments=experiments,
            unreadable=unreadable,
        )
        for name, dropped in previous.recommenders.items():
            if recommenders.get(name) is not dropped:
                await self._retire(dropped)

    async def find(self, name: str) -> Recommender[Any]:
        """Return a recommender by name, or raise `UnknownRecommender`, or why it is not served."""
        snapshot = self.trusted() or await self.current()
        recommender = snapshot.recommenders.get(name)
        if recommender is not None:
            return recommender
        raise self.absent(name)

    def absent(self, name: str) -> DiscreetError:
        """Return why there is no recommender of that name in memory."""
        reason = self._snapshot.unreadable.get(name)
        if reason is None:
            return UnknownRecommender(UNKNOWN)
        return RecommenderUnreadable(reason, name)

    def by_generation(self, generation: bytes) -> Recommender[Any] | None:
        """Return the recommender that a token belongs to, unless it has been removed.

        Raises `RecommenderUnreadable` if it is there and not served: another version serves it.
        """
        snapshot = self._snapshot
        found = snapshot.by_generation.get(generation)
        if found is None and snapshot.unreadable:
            written = generation.hex().encode()
            for name in snapshot.unserved:
                if written in snapshot.documents[RECOMMENDER + name]:
                    raise self.absent(name)
        return found

    def latest(self) -> Snapshot:
        """Return the snapshot in memory, however old."""
        return self._snapshot

    def loaded(self) -> list[Recommender[Any]]:
        """Return the recommenders in memory, however old."""
        return list(self._snapshot.recommenders.values())

    def lingering(self) -> bool:
        """Tell whether more recommenders are in memory than are served or about to be."""
        return len(self._in_memory) > len(self._snapshot.recommenders) + len(self._built)

    async def names(self) -> list[str]:
        """Return the name of every recommender that is served, sorted."""
        return sorted((await self.current()).recommenders)

    async def unreadable(self) -> Mapping[str, str]:
        """Return the recommenders that this version cannot read, with reasons."""
        return dict(sorted((await self.current()).unreadable.items()))

    async def stored(self, name: str) -> tuple[StoredDocument, str]:
        """Return a recommender's record, and its tag."""
        recommender = await self.find(name)
        return recommender.stored, changes.tag_of(self._snapshot.documents[RECOMMENDER + name])

    # Changing.

    async def put(
        self,
        name: str,
        document: RecommenderDocument,
        *,
        repair: bool = False,
        keep_unnamed: bool = False,
        condition: Precondition = ALWAYS,
    ) -> ChangedRecord:
        """Create or change a recommender; see `changes.put`.

        One that cannot be read is begun anew if `repair` says so, and left alone otherwise: it may
        be another version's, which still serves it.
        """
        change = changes.put(document, now=self._resources.clock(), keep_unnamed=keep_unnamed)
        return await self.change(name, change, repair=repair, condition=condition)

    async def change(
        self,
        name: str,
        change: changes.Change,
        *,
        repair: bool = False,
        condition: Precondition = ALWAYS,
    ) -> ChangedRecord:
        """Make a change, whoever else makes one meanwhile, and return once every worker sees it."""
        full = RECOMMENDER + name
        while True:
            documents = (await self._store.registry()).documents
            expected = documents.get(full)
            condition.require(expected)
            if EXPERIMENT + name in documents:
                raise InvalidArgument("name", "is an experiment's; give the recommender another")
            standing = await self._standing(name, expected, repair=repair)
            # In a thread, because a large catalogue takes long.
            made = await asyncio.to_thread(changes.made, change, standing, expected)
            if made.content == expected:
                return made
            # Built before it is stored: a document that cannot be served must not be stored.
            built = await asyncio.to_thread(self._build, name, made.after)
            built.require_alone(self.loaded())
            await fix_terms(self._store, built, self._snapshot.recommenders)
            if standing is None:
                await fix_ledger(self._store, name, made.after.document.ledger)
            if await self._store.put_document(name=full, document=made.content, expected=expected):
                self._built[full] = made.content, built
                try:
                    await self.settle()
                finally:
                    self._built.pop(full, None)  # somebody else may have changed it since
                if standing is None and expected is not None:
                    await self._forget(name, expected)
                return made

    async def _standing(
        self, name: str, content: bytes | None, *, repair: bool
    ) -> StoredDocument | None:
        if content is None:
            return None
        snapshot = self._snapshot
        try:
            if snapshot.documents.get(RECOMMENDER + name) != content:
                return await asyncio.to_thread(read_stored, content)
            if name in snapshot.unreadable:
                raise UnreadableRecord(snapshot.unreadable[name])
            return snapshot.recommenders[name].stored
        except UnreadableRecord as reason:
            if not repair:
                raise RecommenderUnreadable(reason) from None
            log.warning("the recommender %s begins anew: it could not be read", name)
            return None

    async def remove(self, name: str, *, condition: Precondition = ALWAYS) -> None:
        """Remove a recommender and everything it learned. Ledgers stay.

        Of one whose document cannot be read only that goes: where it learned is not known here.
        """
        full, known = RECOMMENDER + name, (await self.current()).recommenders
        if name in known:  # the next one of this name finds its ledgers
            await fix_terms(self._store, known[name], known)
        while True:
            documents = (await self._store.registry()).documents
            standing = documents.get(full)
            if standing is None:
                raise UnknownRecommender(UNKNOWN)
            condition.require(standing)
            self._require_no_arm(name, documents)
            if await self._store.remove_document(name=full, expected=standing):
                break
        await self.settle()
        await self._forget(name, standing)

    @staticmethod
    def _require_no_arm(name: str, documents: Mapping[str, bytes]) -> None:
        for other, experiment in _experiments(documents)[0].items():
            if name in experiment.traffic:
                raise InvalidArgument(
                    "name", f"is an arm of the experiment {other}; change or remove that first"
                )

    async def _forget(self, name: str, content: bytes) -> None:
        """Erase what the recommender of this document learned, if that can be known."""
        with suppress(UnreadableRecord):
            await self._erase(await asyncio.to_thread(self._read, name, content))

    async def settle(self) -> None:
        """Return once no worker can still be answering from before the last change."""
        self._trusted_until = -1.0
        await self.refresh()
        if math.isfinite(self._lease):
            await asyncio.sleep(self._lease)

    # Life.

    async def start(self) -> None:
        """Load the registry and keep the lease fresh from now on."""
        await self.refresh()
        if math.isfinite(self._lease):
            self._poll = asyncio.create_task(self._keep_fresh(), name="registry lease")

    async def stop(self) -> None:
        """Stop keeping the lease fresh. Nothing is asked of the store after this."""
        try:
            await end_all(partial(cancelled, self._poll), partial(ended, self._refreshing))
        finally:
            await end_all(*(partial(self._retire, one) for one in self.loaded()))

    async def _keep_fresh(self) -> None:
        while True:
            await asyncio.sleep(self._lease * 0.4)
            try:
                await self._load_once()
            except StoreUnavailable:
                # The lease lapses, and requests find out for themselves that the store is gone.
                continue
            except Exception:
                log.exception("the registry could not be loaded")

    async def _load_once(self) -> None:
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._load(), name="registry")
            self._refreshing.add_done_callback(retrieve)
        await asyncio.shield(self._refreshing)


def _experiments(
    documents: Mapping[str, bytes],
) -> tuple[dict[str, ExperimentDocument], dict[str, str]]:
    """Return the experiments among documents, and why others cannot be read, by name."""
    found, unreadable = {}, {}
    for full, content in documents.items():
        if full.startswith(EXPERIMENT):
            name = full.removeprefix(EXPERIMENT)
            try:
                found[name] = read_experiment(content)
            except UnreadableRecord as reason:
                unreadable[name] = f"it is an experiment (PUT /experiments/{name}), and {reason}"
    return found, unreadable
