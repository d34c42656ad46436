"""`discreet hub`: the client on the user's own device, with its page, on loopback only."""

import argparse
import json
import secrets
import signal
import socket
import webbrowser
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn

from discreet import __version__
from discreet.errors import InvalidArgument
from discreet.hub.app import create_app
from discreet.hub.catalogue import from_file, parse
from discreet.hub.database import Database
from discreet.hub.folders import DATABASE, LINK_FILE, private_folder, users_folder, write_private
from discreet.hub.hub import Hub
from discreet.hub.server import RecommendationServer

DEFAULT_PORT = 8765

EXAMPLES = """\
examples:
  discreet hub --demo                     an invented catalogue; everything but sending works
  discreet hub --server https://recommend.example --recommender films --key-file ~/films.key
  discreet hub --demo-document            print a recommender that serves the demo's catalogue

The history stays in the user's own directory. Nothing is sent before it was shown and its owner
agreed. The key needs the serve scope.
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


def run(args: argparse.Namespace) -> int:
    """Serve the page until interrupted."""
    if args.demo_document:
        print(json.dumps(demo_document(), ensure_ascii=False))
        return 0
    signal.signal(signal.SIGTERM, _leave)
    server = _server(args)
    folder = private_folder(args.data or users_folder())
    fetches = args.catalogue is None and not args.demo
    hub = Hub(Database(folder / DATABASE), server, fetches=fetches)
    _take_catalogue(hub, args)
    with listen(args.port) as listener:
        port = listener.getsockname()[1]
        secret = secrets.token_urlsafe(32)
        page = f"http://127.0.0.1:{port}/#secret={secret}"
        print(f"Discreet hub {__version__}\n  page     {page}\n  history  {folder}", flush=True)
        link = folder / LINK_FILE
        try:
            if not args.no_browser:
                # A browser is started with its address as an argument, which every user of this
                # machine can list. So it is given a private file that opens the page.
                write_private(link, redirect_to(page))
                webbrowser.open(link.resolve().as_uri())
            configured = uvicorn.Config(
                create_app(hub, folder=folder, port=port, secret=secret),
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                lifespan="off",
                ws="none",
            )
            uvicorn.Server(configured).run(sockets=[listener])
        finally:
            link.unlink(missing_ok=True)
    return 0


def _server(args: argparse.Namespace) -> RecommendationServer | None:
    given = {
        "--server": args.server,
        "--recommender": args.recommender,
        "--key-file": args.key_file,
    }
    missing = [name for name, value in given.items() if value is None]
    if len(missing) == len(given):
        if not args.demo and args.catalogue is None:
            raise InvalidArgument("--server", "is missing; --demo needs no server")
        return None
    if missing:
        raise InvalidArgument(missing[0], "is missing: a server needs all three of its options")
    try:
        key = args.key_file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument("--key-file", f"cannot read {args.key_file}") from error
    return RecommendationServer(url=args.server.rstrip("/"), recommender=args.recommender, key=key)


def _take_catalogue(hub: Hub, args: argparse.Namespace) -> None:
    if args.catalogue is not None and args.demo:
        raise InvalidArgument("--catalogue", "cannot be given with --demo, which has its own")
    if args.catalogue is not None:
        hub.use_catalogue(from_file(args.catalogue), source=str(args.catalogue))
    elif args.demo:
        hub.use_catalogue(parse(_demo()), source="the demo")


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


def listen(port: int) -> socket.socket:
    """Listen on loopback, and there only."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
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
