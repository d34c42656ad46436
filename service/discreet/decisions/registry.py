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
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from discreet.decisions.ledger_groups import fix_ledger, fix_terms
from discreet.errors import (
    DiscreetError,
    InvalidArgument,
    RecommenderUnreadable,
    StoreUnavailable,
    UnknownItem,
    UnknownRecommender,
)
from discreet.families.contract import Recommender, Resources
from discreet.families.documents import (
    MOST_ITEMS,
    ItemDocument,
    RecommenderDocument,
    UnusableItem,
)
from discreet.families.registration import FAMILIES, read_stored
from discreet.families.stored import (
    GENERATION_BYTES,
    StoredDocument,
    UnreadableRecord,
    describe,
)
from discreet.state.stores import Configurations

log = logging.getLogger(__name__)

RECOMMENDER = "recommender/"
KEY = "key/"
_UNKNOWN = "no recommender of that name; GET /recommenders lists them"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything configured, at one epoch; `unreadable` has reasons, by recommender."""

    epoch: int
    documents: Mapping[str, bytes]
    recommenders: Mapping[str, Recommender[Any]]
    by_generation: Mapping[bytes, Recommender[Any]]
    unreadable: Mapping[str, str]


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
        self._snapshot = Snapshot(-1, {}, {}, {}, {})
        self._trusted_until = -1.0
        self._refreshing: asyncio.Task[None] | None = None
        self._poll: asyncio.Task[None] | None = None

    def _read(self, name: str, content: bytes) -> Recommender[Any]:
        stored = read_stored(content)
        try:
            return self._build(name, stored)
        except Exception as error:
            log.exception("a stored document cannot be served")
            raise UnreadableRecord("nothing can be built from it") from error

    def _build(self, name: str, stored: StoredDocument) -> Recommender[Any]:
        family = FAMILIES[stored.document.algorithm]
        return family(name=name, stored=stored, resources=self._resources)

    # Reading.

    def trusted(self) -> Snapshot | None:
        """Return the snapshot if the lease still holds: the request path's way, no awaiting."""
        return self._snapshot if time.monotonic() < self._trusted_until else None

    async def current(self) -> Snapshot:
        """Return a snapshot that is true now."""
        if time.monotonic() >= self._trusted_until:
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
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.ensure_future(self._load())
        await asyncio.shield(self._refreshing)

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
        unreadable: dict[str, str] = {}
        for name, content in documents.items():
            if not name.startswith(RECOMMENDER):
                continue
            short = name.removeprefix(RECOMMENDER)
            if previous.documents.get(name) == content and short in previous.recommenders:
                recommenders[short] = previous.recommenders[short]
                continue
            try:
                recommender = self._read(short, content)
                await self._prepare(recommender)
            except UnreadableRecord as reason:
                # Perhaps of a version that knows more than we do; the others go on serving.
                unreadable[short] = str(reason)
                if unreadable[short] != previous.unreadable.get(short):
                    log.error("the recommender %s is not served: %s", short, reason)
            else:
                recommenders[short] = recommender
        self._snapshot = Snapshot(
            epoch=epoch,
            documents=dict(documents),
            recommenders=recommenders,
            by_generation={one.generation: one for one in recommenders.values()},
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
        raise self._absent(name)

    def _absent(self, name: str) -> DiscreetError:
        reason = self._snapshot.unreadable.get(name)
        if reason is None:
            return UnknownRecommender(_UNKNOWN)
        return RecommenderUnreadable(reason)

    def by_generation(self, generation: bytes) -> Recommender[Any] | None:
        """Return the recommender that a token belongs to, unless it has been removed."""
        return self._snapshot.by_generation.get(generation)

    def loaded(self) -> list[Recommender[Any]]:
        """Return the recommenders in memory, however old."""
        return list(self._snapshot.recommenders.values())

    async def names(self) -> list[str]:
        """Return the name of every recommender that is served, sorted."""
        return sorted((await self.current()).recommenders)

    async def unreadable(self) -> Mapping[str, str]:
        """Return the recommenders that this version cannot read, with reasons."""
        return dict(sorted((await self.current()).unreadable.items()))

    async def show(self, name: str) -> dict[str, Any]:
        """Return a recommender's document."""
        return describe((await self.find(name)).stored.document)

    async def items(self, name: str) -> list[dict[str, Any]]:
        """Return a recommender's items."""
        document = (await self.find(name)).stored.document
        return [item.model_dump(exclude_none=True) for item in document.items]

    # Changing.

    async def put(self, name: str, document: RecommenderDocument, *, repair: bool = False) -> bool:
        """Create or change a recommender; tell whether it is new. What was learned stays.

        One that cannot be read is begun anew if `repair` says so, and left alone otherwise: it may
        be another version's, which still serves it.
        """

        def change(stored: StoredDocument | None) -> StoredDocument:
            if stored is None:
                generation = os.urandom(GENERATION_BYTES)
                stored = StoredDocument(document, generation, self._resources.clock(), {}, 0)
            else:
                _refuse_reshaping(stored.document, document)
                # Whoever puts a document says all of it.
                stored = replace(stored, unknown={})
            return stored.with_document(document)

        return await self._change(name, change, repair=repair)

    async def add_items(self, name: str, items: Sequence[ItemDocument]) -> None:
        """Add items, or replace the settings of those that are there."""

        def change(stored: StoredDocument | None) -> StoredDocument:
            held = _present(stored)
            for position, item in enumerate(items):
                try:
                    held.document.require_usable(item)
                except UnusableItem as error:
                    raise InvalidArgument(error.field_at(position), str(error)) from None
            merged = {item.id: item for item in held.document.items}
            merged.update((item.id, item) for item in items)
            return held.with_document(_with_items(held.document, list(merged.values())))

        await self._change(name, change)

    async def hide_item(self, name: str, item: str, hidden: bool) -> None:
        """Hide an item or show it again."""

        def change(stored: StoredDocument | None) -> StoredDocument:
            held = _present(stored)
            _require_item(held, item)
            items = [
                one.model_copy(update={"hidden": hidden}) if one.id == item else one
                for one in held.document.items
            ]
            return held.with_document(_with_items(held.document, items))

        await self._change(name, change)

    async def remove_item(self, name: str, item: str) -> None:
        """Remove an item; its slot is retired, so what was learned about it is never reused."""

        def change(stored: StoredDocument | None) -> StoredDocument:
            held = _present(stored)
            _require_item(held, item)
            items = [one for one in held.document.items if one.id != item]
            return held.with_document(_with_items(held.document, items))

        await self._change(name, change)

    async def remove(self, name: str) -> None:
        """Remove a recommender and everything it learned. Ledgers stay.

        Of one whose document cannot be read only that goes: where it learned is not known here.
        """
        snapshot = self.trusted() or await self.current()
        if name not in snapshot.recommenders and name not in snapshot.unreadable:
            raise UnknownRecommender(_UNKNOWN)
        if not await self._store.remove_document(name=RECOMMENDER + name):
            raise UnknownRecommender(_UNKNOWN)
        await self.settle()
        await self._forget(name, snapshot.documents[RECOMMENDER + name])

    async def _forget(self, name: str, content: bytes) -> None:
        """Erase what the recommender of this document learned, if that can be known."""
        with suppress(UnreadableRecord):
            await self._erase(self._read(name, content))

    async def _change(
        self,
        name: str,
        change: Callable[[StoredDocument | None], StoredDocument],
        *,
        repair: bool = False,
    ) -> bool:
        full = RECOMMENDER + name
        while True:
            expected = (await self._store.registry()).documents.get(full)
            standing = None
            if expected is not None:
                try:
                    standing = self._standing(name, expected)
                except UnreadableRecord as reason:
                    if not repair:
                        raise RecommenderUnreadable(reason) from None
                    log.warning("the recommender %s begins anew: it could not be read", name)
            changed = change(standing)
            content = changed.encode()
            if content == expected:
                break
            # Built before it is stored: a document that cannot be served must not be stored.
            built = self._build(name, changed)
            if standing is None:
                await fix_ledger(self._store, name, changed.document.ledger)
            await fix_terms(self._store, built, self._snapshot.recommenders.get(name))
            if await self._store.put_document(name=full, document=content, expected=expected):
                await self.settle()
                if standing is None and expected is not None:
                    await self._forget(name, expected)
                break
        return standing is None

    def _standing(self, name: str, content: bytes) -> StoredDocument:
        """Return the record that stands in the store, or raise why it is not served."""
        snapshot = self._snapshot
        if name in snapshot.unreadable and snapshot.documents.get(RECOMMENDER + name) == content:
            raise UnreadableRecord(snapshot.unreadable[name])
        return read_stored(content)

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
        """Stop keeping the lease fresh."""
        if self._poll is not None:
            self._poll.cancel()
            with suppress(asyncio.CancelledError):
                await self._poll
        for recommender in self.loaded():
            await self._retire(recommender)

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
            self._refreshing = asyncio.ensure_future(self._load())
        await asyncio.shield(self._refreshing)


def _present(stored: StoredDocument | None) -> StoredDocument:
    if stored is None:
        raise UnknownRecommender(_UNKNOWN)
    return stored


def _require_item(stored: StoredDocument, item: str) -> None:
    if all(item != one.id for one in stored.document.items):
        raise UnknownItem("no such item in this recommender")


def _with_items(document: RecommenderDocument, items: list[ItemDocument]) -> RecommenderDocument:
    # Copies are not validated: how many there are is looked at here, each of them in `add_items`.
    if len(items) > MOST_ITEMS:
        raise InvalidArgument("items", f"a recommender holds at most {MOST_ITEMS} items")
    return document.model_copy(update={"items": items})


def _refuse_reshaping(old: RecommenderDocument, new: RecommenderDocument) -> None:
    """What was learned cannot always be carried over: losing it must be said aloud."""
    before, after = old.fixed(), new.fixed()
    for field in before:
        if before[field] != after.get(field):
            if field == "ledger":
                raise InvalidArgument(field, "cannot change: it would give everybody a new budget")
            raise InvalidArgument(
                field, "cannot change without losing what was learned; DELETE the recommender first"
            )
