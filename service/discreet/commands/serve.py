"""`discreet serve`: several workers over one store, until told to stop."""

import argparse
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

from discreet import configuration, logs
from discreet.commands.options import add_store_options, settings_of
from discreet.configuration import Configuration
from discreet.peers.addresses import addresses_in, joined

EXAMPLES = """\
examples:
  discreet serve --demo
  discreet serve --config discreet.yaml --port 8080 --workers 4
  DISCREET_API_KEY=… discreet serve --config discreet.yaml --host 0.0.0.0 \\
      --store rediss://user:password@redis.example:6379/0

Every option can also be set in the environment (DISCREET_PORT, DISCREET_STORE, …) or in the
file's `server:` part; options win over the environment, and the environment over the file.
Secrets come from DISCREET_API_KEY, DISCREET_TOKEN_KEYS and DISCREET_PEER_KEYS (other
instances' keys, as NAME=KEY,NAME=KEY), or from the files that DISCREET_API_KEY_FILE and so on name.
A peer's key is sent to the addresses in the configuration file and in DISCREET_PEER_ADDRESSES
(NAME=URL,NAME=URL), and to no other.
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
    named = addresses_in([each.model_dump() for each in configured.recommenders.values()])
    allowed = joined(named, settings.peer_addresses)
    settings = settings.model_copy(update={"peer_addresses": allowed})
    logs.configure(settings.log_level)
    signal.signal(signal.SIGTERM, _stop_early)
    with _metrics_folder():
        # Only now: prometheus_client decides at import whether workers share their counters.
        from discreet.serving import serve

        serve(settings, configured, demo=args.demo)
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
            complete=configured.complete,
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


def _stop_early(number: int, frame: object) -> None:
    """Stop before serving has begun: what was started is stopped again."""
    raise SystemExit(0)
