"""Options that several subcommands share, and how they become settings."""

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from discreet.settings import Settings, settings_from
from discreet.state import keeper
from discreet.state.embedded import EmbeddedStore, socket_for

_ABSENT = argparse.SUPPRESS
"""Options that were not given must not hide what the environment says."""


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Declare where the store is."""
    where = parser.add_argument_group("store")
    where.add_argument(
        "--store",
        default=_ABSENT,
        metavar="URL",
        help="redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://; "
        "without it, an embedded Valkey in the data directory",
    )
    where.add_argument(
        "--data",
        dest="data_dir",
        type=Path,
        default=_ABSENT,
        metavar="DIR",
        help="the data directory (default: .discreet)",
    )
    where.add_argument(
        "--namespace", default=_ABSENT, metavar="NAME", help="prefix of every key in the store"
    )
    where.add_argument(
        "--init",
        action="store_true",
        default=_ABSENT,
        help="begin a namespace that holds nothing; without it an empty store is refused, because "
        "it may have been emptied (a new data directory needs no --init)",
    )
    where.add_argument(
        "--wait-store",
        dest="wait_store_seconds",
        type=float,
        default=_ABSENT,
        metavar="SECONDS",
        help="how long to wait for a store that does not answer yet (default: 0)",
    )


def settings_of(args: argparse.Namespace, file: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings from the file's part, the environment and the options."""
    flags = {name: value for name, value in vars(args).items() if name in Settings.model_fields}
    return settings_from(file=file or {}, environment=os.environ, flags=flags)


@contextmanager
def with_store(settings: Settings) -> Iterator[Settings]:
    """Give the settings a store that runs: the one named, the server's own, or one for a moment."""
    if settings.store is not None:
        yield settings
        return
    embedded = EmbeddedStore(settings.data_dir)
    settings = settings.model_copy(update={"init": settings.init or embedded.brand_new})
    if keeper.ask(str(socket_for(embedded.folder)), b"PING"):
        yield settings.model_copy(update={"store": embedded.url})
        return
    with embedded as url:
        yield settings.model_copy(update={"store": url})
