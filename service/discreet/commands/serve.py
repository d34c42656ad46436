"""`discreet serve`: several workers over one store, until told to stop."""

import argparse
import asyncio
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from discreet import __version__, configuration, logs
from discreet.commands.options import add_store_options, settings_of
from discreet.configuration import Configuration
from discreet.errors import DiscreetError
from discreet.settings import Settings

if TYPE_CHECKING:
    from discreet.preparation import Prepared
    from discreet.state.embedded import EmbeddedStore

log = logging.getLogger(__name__)

EXAMPLES = """\
examples:
  discreet serve --demo
  discreet serve --config discreet.yaml --port 8080 --workers 4
  DISCREET_API_KEY=… discreet serve --config discreet.yaml --host 0.0.0.0 \\
      --store rediss://user:password@redis.example:6379/0

Every option can also be set in the environment (DISCREET_PORT, DISCREET_STORE, …) or in the
file's `server:` part; options win over the environment, and the environment over the file.
Secrets come from DISCREET_API_KEY, DISCREET_TOKEN_KEYS and DISCREET_PEER_KEYS (vendors' keys, as
NAME=KEY,NAME=KEY), or from the files that DISCREET_API_KEY_FILE and so on name.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    absent = argparse.SUPPRESS
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="YAML with `recommenders:` and `server:`"
    )
    parser.add_argument(
        "--demo", action="store_true", help="serve a small catalogue of films to try things on"
    )
    parser.add_argument("--port", type=int, default=absent, help="(default: 8000)")
    parser.add_argument("--host", default=absent, help="(default: 127.0.0.1)")
    parser.add_argument(
        "--workers", type=int, default=absent, metavar="N", help="processes (default: 2 to 4)"
    )
    parser.add_argument("--log-level", choices=logs.LEVELS, default=absent, help="(default: info)")
    add_store_options(parser)


def run(args: argparse.Namespace) -> int:
    """Serve; return 0 after a graceful stop."""
    configured = _configuration(args)
    settings = settings_of(args, configured.server)
    logs.configure(settings.log_level)
    signal.signal(signal.SIGTERM, _leave)
    with ExitStack() as cleanup:
        cleanup.enter_context(_metrics_folder())
        # Only now: prometheus_client decides at import whether workers share their counters.
        from discreet.preparation import prepare
        from discreet.serving import Serving, listen
        from discreet.state.embedded import EmbeddedStore

        listener = cleanup.enter_context(listen(settings))
        embedded: EmbeddedStore | None = None
        if settings.store is None:
            embedded = EmbeddedStore(settings.data_dir)
            cleanup.callback(embedded.stop)
            settings = settings.model_copy(update={"store": embedded.start()})
        prepared = asyncio.run(prepare(settings, configured.recommenders, demo=args.demo))
        port = listener.getsockname()[1]
        _announce(settings, prepared, port=port, embedded=embedded is not None)

        Serving(settings, listener, look_after=lambda: _look_after(embedded)).run()
    return 0


def _configuration(args: argparse.Namespace) -> Configuration:
    configured = Configuration()
    if args.config is not None:
        configured = configuration.read(args.config)
    if args.demo:
        with as_file(files("discreet.demo") / "recommenders.yaml") as path:
            demo = configuration.read(path)
        configured = Configuration(
            server=configured.server,
            recommenders={**demo.recommenders, **configured.recommenders},
        )
    return configured


@contextmanager
def _metrics_folder() -> Iterator[None]:
    """Give the workers a private folder in which their counters meet."""
    folder = tempfile.mkdtemp(prefix="discreet-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _look_after(embedded: "EmbeddedStore | None") -> None:
    """Replace a keeper that was killed; it replaces its server by itself."""
    if embedded is None or embedded.running:
        return
    log.error("the keeper of the embedded store is gone; another is started")
    embedded.stop()
    try:
        embedded.start()
    except DiscreetError:
        log.exception("the embedded store does not start")


def _announce(settings: Settings, prepared: "Prepared", *, port: int, embedded: bool) -> None:
    """Say where the server is, and show a key that was made just now, once."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{host}:{port}"
    store = f"embedded store in {settings.data_dir}" if embedded else "store by URL"
    lines = [f"Discreet {__version__} at {url} ({settings.workers} workers, {store})"]
    if prepared.key is not None:
        kept = f"; kept in {prepared.key_file}" if prepared.key_file is not None else ""
        lines += [
            f"  page  {url}/#key={prepared.key}",
            f"  docs  {url}/docs",
            f"  key   {prepared.key}   (shown once{kept})",
        ]
    else:
        where = prepared.key_file or "as given or made before"
        lines += [f"  page  {url}/", f"  docs  {url}/docs", f"  key   {where}"]
    print("\n".join(lines), flush=True)


def _leave(number: int, frame: object) -> None:
    """Stop before serving has begun: what was started is stopped again."""
    raise SystemExit(0)
