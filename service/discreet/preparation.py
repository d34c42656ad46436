"""What is done once, before any worker serves: the file's recommenders, and a first key."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from discreet import __version__
from discreet.app import store_of
from discreet.configuration import Configuration
from discreet.decisions.changes import ChangedRecord, ItemCounts
from discreet.decisions.keys import KeyRing
from discreet.decisions.services import DecisionServices, open_services
from discreet.errors import (
    InvalidArgument,
    RecommenderUnreadable,
    StoreEmpty,
    StoreFenced,
    StoreUnavailable,
)
from discreet.families.documents import RecommenderDocument
from discreet.privacy.noise import SystemNoise
from discreet.settings import Settings

log = logging.getLogger(__name__)

SCOPES = frozenset({"serve", "admin", "metrics"})
"""What a key that is made for a beginner may do: everything on this machine."""
DEMO_LABEL = "demo"
FIRST_LABEL = "first"
_RETRY_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to tell whoever started the server. `key` is there only if it was made just now."""

    key: str | None = None
    key_file: Path | None = None

    def announcement(self, settings: Settings, *, port: int, embedded: bool) -> str:
        """Return where the server is, with a key that was made just now: it is shown once."""
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        url = f"http://{host}:{port}"
        store = f"embedded store in {settings.data_dir}" if embedded else "store by URL"
        if self.key is None:
            page, key = f"{url}/", str(self.key_file or "as given or made before")
        else:
            kept = "" if self.key_file is None else f"; kept in {self.key_file}"
            page, key = f"{url}/#key={self.key}", f"{self.key}   (shown once{kept})"
        return (
            f"Discreet {__version__} at {url} ({settings.workers} workers, {store})\n"
            f"  page  {page}\n  docs  {url}/docs\n  key   {key}"
        )


@asynccontextmanager
async def opened(settings: Settings, *, carries: bool = True) -> AsyncIterator[DecisionServices]:
    """Open the services for a moment, waiting for the store as long as the settings allow.

    `carries` is explained at `store_of`.
    """
    deadline = time.monotonic() + settings.wait_store_seconds
    while True:
        store = store_of(settings, carries=carries)
        try:
            services = await open_services(
                store=store,
                noise=SystemNoise(),
                token_keys=settings.token_keys,
                api_keys=settings.api_keys,
            )
        except (StoreUnavailable, StoreEmpty) as error:
            await store.close()
            if isinstance(error, StoreFenced):
                raise
            if time.monotonic() >= deadline:
                if isinstance(error, StoreEmpty):
                    raise
                raise StoreUnavailable(
                    f"cannot reach the store: {error}; --wait-store SECONDS waits for it"
                ) from None
            # One that holds nothing may be begun by somebody else in a moment.
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            break
    # Releasing is for servers: what is opened for a moment would hardly begin with it.
    await services.background.stop()
    try:
        yield services
    finally:
        await services.close()


async def prepare(settings: Settings, configured: Configuration, *, demo: bool) -> Prepared:
    """Put the file's recommenders (what they learned stays), and see that there is a key.

    A file adds items and changes them. It removes none, unless it says so: others may have been
    added over HTTP.
    """
    async with opened(settings) as services:
        for name, document in configured.recommenders.items():
            complete = name in configured.complete
            try:
                made = await services.registry.put(name, document, keep_unnamed=not complete)
                _log_items(name, document, made)
            except RecommenderUnreadable as error:
                # Perhaps a newer version's, which serves it: only the API may replace it.
                log.error("the file's recommender %s was left as it is: %s", name, error)
            except InvalidArgument as error:
                raise InvalidArgument(
                    f"recommenders.{name}.{error.argument}", error.reason
                ) from None
        if demo:
            return await _demo_key(services.keys, settings)
        if settings.api_key is not None or await services.keys.list():
            return Prepared()
        _require_loopback(settings)
        return Prepared(key=await services.keys.create(label=FIRST_LABEL, scopes=SCOPES))


def _log_items(name: str, document: RecommenderDocument, made: ChangedRecord) -> None:
    """Say what the file did to the catalogue, if there was one."""
    if made.created:
        return
    counts = ItemCounts.of(made)
    unnamed = len(made.after.document.items) - len(document.items)
    if counts.added or counts.changed or counts.removed or unnamed:
        log.info(
            "the file's recommender %s: %d items added, %d changed, %d removed; %d that the file "
            "does not name were kept",
            name,
            counts.added,
            counts.changed,
            counts.removed,
            unnamed,
        )


def _require_loopback(settings: Settings) -> None:
    if not settings.loopback:
        raise InvalidArgument(
            "--host",
            f"{settings.host} can be reached from elsewhere, and there is no key yet: set "
            "DISCREET_API_KEY, or make one with `discreet keys create`",
        )


async def _demo_key(keys: KeyRing, settings: Settings) -> Prepared:
    """Leave the demo's key in a file that only its owner can read, for the README's commands."""
    file = settings.data_dir / "demo-key"
    if settings.api_key is not None:
        _write_secret(file, settings.api_key)
        return Prepared(key_file=file)
    _require_loopback(settings)
    held = _read_secret(file)
    if held is not None and await keys.grant_of(held) is not None:
        return Prepared(key_file=file)
    for record in await keys.list():
        if record.label == DEMO_LABEL:
            # Its secret was lost with the file: it is of no use any more.
            await keys.revoke(record.id)
    key = await keys.create(label=DEMO_LABEL, scopes=SCOPES)
    _write_secret(file, key)
    return Prepared(key=key, key_file=file)


def _read_secret(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _write_secret(file: Path, secret: str) -> None:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidArgument("--data", f"{file} cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(secret + "\n")
