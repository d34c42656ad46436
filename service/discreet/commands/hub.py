"""`discreet hub`: the client on the user's own device, with its page, on loopback only."""

import argparse
import contextlib
import json
import secrets
import signal
import socket
import ssl
import threading
import webbrowser
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn

from discreet import __version__
from discreet.errors import InvalidArgument
from discreet.hub import enrolment, service_files
from discreet.hub.app import create_app
from discreet.hub.catalogue import from_file, parse
from discreet.hub.database import Database
from discreet.hub.folders import LINK_FILE, private_folder, users_folder, write_private
from discreet.hub.hub import Hub
from discreet.hub.push import KEY_FILE, PushEndpoint, push_key
from discreet.hub.server import RecommendationServer, ServiceAdapter
from discreet.hub.services import HubServices

DEFAULT_PORT = 8765
DEFAULT_PUSH_PORT = 8766
_STOP_SECONDS = 5.0
ALONE = "recommendations"
"""What the only service is called if it has no server."""

EXAMPLES = """\
examples:
  discreet hub --demo                     an invented catalogue; everything but sending works
  discreet hub --server https://recommend.example --recommender films --key-file ~/films.key
  discreet hub --server https://recommend.example --code 7Q4F-9M2X-0TRW
  discreet hub --service films.yaml --service bookshop.yaml         several services at once
  discreet hub --demo-document            print a recommender that serves the demo's catalogue

The history stays in the user's own directory. Nothing is sent before it was shown and its owner
agreed. A code gives a device a key of its own; docs/hub.md describes service files.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    option = parser.add_argument
    option("--server", metavar="URL", help="the recommendation server")
    option("--recommender", metavar="NAME", help="one of its recommenders that takes profiles")
    option("--key-file", type=Path, metavar="FILE", help="a file with an API key of the server")
    option(
        "--code",
        help="a code from the server, which this device trades for a key of its own, once",
    )
    option(
        "--service",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a file that describes a service; may be given several times",
    )
    option(
        "--catalogue",
        type=Path,
        metavar="FILE",
        help="take the catalogue from a file (JSON or CSV), not from the server",
    )
    option("--demo", action="store_true", help="use a small invented catalogue")
    option("--demo-document", action="store_true", help="print a recommender for it, and stop")
    option(
        "--port",
        type=int,
        default=DEFAULT_PORT,
        help=f"on 127.0.0.1; 0 takes a free one (default: {DEFAULT_PORT})",
    )
    option(
        "--data", type=Path, metavar="DIR", help="where the history is kept (default: the user's)"
    )
    option("--no-browser", action="store_true", help="print the address only")
    option(
        "--push-host",
        metavar="ADDRESS",
        help="take titles from other devices at this address too; needs the next two options",
    )
    option("--push-port", type=int, default=DEFAULT_PUSH_PORT, help="(default: %(default)s)")
    option("--push-certificate", type=Path, metavar="FILE", help="TLS certificate for --push-host")
    option("--push-certificate-key", type=Path, metavar="FILE", help="and its private key")


def run(args: argparse.Namespace) -> int:
    """Serve the page until interrupted."""
    if args.demo_document:
        print(json.dumps(demo_document(), ensure_ascii=False))
        return 0
    signal.signal(signal.SIGTERM, _leave)
    folder = private_folder(args.data or users_folder())
    services = _services(args, folder)
    key = push_key(folder)
    with contextlib.ExitStack() as running:
        listener = running.enter_context(listen(args.port))
        if args.push_host is not None:
            running.enter_context(_pushing(args, PushEndpoint(services, key=key)))
        port = listener.getsockname()[1]
        secret = secrets.token_urlsafe(32)
        page = f"http://127.0.0.1:{port}/#secret={secret}"
        print(
            f"Discreet hub {__version__}\n  page     {page}\n  history  {folder}\n"
            f"  push     http://127.0.0.1:{port}/push, with the key in {folder / KEY_FILE}",
            flush=True,
        )
        link = folder / LINK_FILE
        try:
            if not args.no_browser:
                # A browser is started with its address as an argument, which every user of this
                # machine can list. So it is given a private file that opens the page.
                write_private(link, redirect_to(page))
                webbrowser.open(link.resolve().as_uri())
            app = create_app(services, folder=folder, port=port, secret=secret, push_key=key)
            uvicorn.Server(uvicorn.Config(app, **_QUIET)).run(sockets=[listener])
        finally:
            link.unlink(missing_ok=True)
    return 0


_QUIET: dict[str, Any] = {
    "log_level": "warning",
    "access_log": False,
    "server_header": False,
    "proxy_headers": False,
    "lifespan": "off",
    "ws": "none",
}


@contextlib.contextmanager
def _pushing(args: argparse.Namespace, endpoint: PushEndpoint) -> Iterator[None]:
    """Take titles from other devices until the block ends, over TLS and nothing else."""
    if args.push_certificate is None or args.push_certificate_key is None:
        raise InvalidArgument(
            "--push-host",
            "needs --push-certificate and --push-certificate-key: a history passes through it",
        )
    with listen(args.push_port, args.push_host) as listener:
        configured = uvicorn.Config(
            endpoint,
            ssl_certfile=args.push_certificate,
            ssl_keyfile=args.push_certificate_key,
            **_QUIET,
        )
        try:
            configured.load()
        except (OSError, ssl.SSLError) as error:
            raise InvalidArgument("--push-certificate", f"cannot be used: {error}") from error
        server = uvicorn.Server(configured)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        host, port = listener.getsockname()[:2]
        print(f"  push     https://{host}:{port}/push, for other devices", flush=True)
        try:
            yield
        finally:
            server.should_exit = True
            thread.join(_STOP_SECONDS)


def _services(args: argparse.Namespace, folder: Path) -> HubServices:
    """Return every service that was named, with its catalogue where its owner gave one."""
    if args.catalogue is not None and args.demo:
        raise InvalidArgument("--catalogue", "cannot be given with --demo, which has its own")
    owned = args.catalogue is not None or args.demo
    named = [service_files.read(path) for path in args.service]
    single = _server(args, folder, needed=not named and not owned)
    hubs = [Hub(Database(folder, name), adapter) for name, adapter in named]
    if single is not None or owned:
        name = single.recommender if single is not None else ALONE
        hub = Hub(Database(folder, name), single, fetches=not owned)
        if args.catalogue is not None:
            hub.use_catalogue(from_file(args.catalogue), source=str(args.catalogue))
        elif args.demo:
            hub.use_catalogue(parse(_demo()), source="the demo")
        hubs.insert(0, hub)
    return HubServices.of(hubs)


def _server(args: argparse.Namespace, folder: Path, *, needed: bool) -> ServiceAdapter | None:
    """Return the server that was named, with the key that was given or that was enrolled."""
    if args.server is None:
        for name in ("recommender", "key_file", "code"):
            if getattr(args, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise InvalidArgument("--server", f"is missing, and {option} was given")
        if needed:
            raise InvalidArgument("--server", "is missing; --demo needs no server")
        return None
    url = args.server.rstrip("/")
    if args.code is not None:
        device = enrolment.enrol(url=url, code=args.code, recommender=args.recommender)
        enrolment.keep(folder, device)
        return device.server()
    if args.recommender is None:
        raise InvalidArgument("--recommender", "is missing: a server has several")
    if args.key_file is None:
        enrolled = enrolment.load(folder, args.recommender)
        if enrolled is None or enrolled.url != url:
            raise InvalidArgument("--key-file", "is missing; or give a --code from the server")
        return enrolled.server()
    key = service_files.read_key(args.key_file)
    return RecommendationServer(url=url, recommender=args.recommender, key=key)


def demo_document() -> dict[str, Any]:
    """Return a recommender that serves the demo's catalogue to hubs."""
    return {
        "algorithm": "collaborative",
        "items": _demo()["items"],
        # The hub makes every profile private before it is sent.
        "privacy": {"answers": "on-device"},
    }


def _demo() -> Any:
    return json.loads((files("discreet.hub") / "demo.json").read_text("utf-8"))


def listen(port: int, host: str = "127.0.0.1") -> socket.socket:
    """Listen on loopback, and there only, unless another address is named."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        # At once: until it listens, a second hub could take the same port unnoticed.
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        raise InvalidArgument("--port", f"{port} cannot be used: {error}") from error
    return listener


def _leave(number: int, frame: object) -> None:
    """Stop as on Ctrl-C, but call it a success: whoever sends SIGTERM wants just that."""
    raise SystemExit(0)


def redirect_to(page: str) -> str:
    """Return a page that opens another."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Discreet hub</title>'
        f'<meta http-equiv="refresh" content="0; url={escape(page)}">'
        f'<p><a href="{escape(page)}">Open the hub</a></p></html>\n'
    )
