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
from typing import TYPE_CHECKING

from discreet import __version__
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.hub.hub import Hub
    from discreet.hub.upstream import Upstream

DEFAULT_PORT = 8765

EXAMPLES = """\
examples:
  discreet hub --demo                     a made-up catalogue; everything but sending works
  discreet hub --server https://recommend.example --recommender films --key-file ~/films.key
  discreet hub --demo-document            a recommender that serves the demo's catalogue

The history stays in the user's own directory. What is sent is shown first, and only when its owner
says so. The key needs the serve scope.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("--server", metavar="URL", help="the recommendation server")
    parser.add_argument("--recommender", metavar="NAME", help="one that takes profiles")
    parser.add_argument(
        "--key-file", type=Path, metavar="FILE", help="a file that holds an API key of the server's"
    )
    parser.add_argument(
        "--catalogue",
        type=Path,
        metavar="FILE",
        help="take the catalogue from a file (JSON or CSV), not from the server",
    )
    parser.add_argument("--demo", action="store_true", help="use a small made-up catalogue")
    parser.add_argument(
        "--demo-document", action="store_true", help="print a recommender for the demo, and stop"
    )
    parser.add_argument(
        "--port",
        type=int,
        default=DEFAULT_PORT,
        help=f"on 127.0.0.1; 0 takes a free one (default: {DEFAULT_PORT})",
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="where the history is kept (default: the user's)"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address only")


def run(args: argparse.Namespace) -> int:
    """Serve the page until interrupted."""
    if args.demo_document:
        items = _demo()["items"]
        print(json.dumps({"algorithm": "collaborative", "items": items}, ensure_ascii=False))
        return 0
    # Imported here: --help and --demo-document need none of it.
    import uvicorn

    from discreet.hub.app import create_app
    from discreet.hub.database import Database
    from discreet.hub.hub import Hub
    from discreet.hub.places import DATABASE, DOOR, private_folder, users_folder, write_private

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
        door = folder / DOOR
        try:
            if not args.no_browser:
                # A browser is started with its address as an argument, which every user of this
                # machine can list. So it is given a private file that leads to the page.
                write_private(door, leading_to(page))
                webbrowser.open(door.resolve().as_uri())
            app = create_app(hub, folder=folder, port=port, secret=secret)
            configured = uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                lifespan="off",
                ws="none",
            )
            uvicorn.Server(configured).run(sockets=[listener])
        finally:
            door.unlink(missing_ok=True)
    return 0


def _server(args: argparse.Namespace) -> "Upstream | None":
    from discreet.hub.upstream import Upstream

    given = {
        "--server": args.server,
        "--recommender": args.recommender,
        "--key-file": args.key_file,
    }
    missing = [name for name, value in given.items() if value is None]
    if len(missing) == len(given):
        if not args.demo and args.catalogue is None:
            raise InvalidArgument("--server", "is missing; or try things with --demo")
        return None
    if missing:
        raise InvalidArgument(missing[0], "is missing: a server needs all three of its options")
    try:
        key = args.key_file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument("--key-file", f"cannot read {args.key_file}") from error
    return Upstream(url=args.server.rstrip("/"), recommender=args.recommender, key=key)


def _take_catalogue(hub: "Hub", args: argparse.Namespace) -> None:
    from discreet.hub.catalogue import from_file, parse

    if args.catalogue is not None and args.demo:
        raise InvalidArgument("--catalogue", "cannot stand beside --demo, which has its own")
    if args.catalogue is not None:
        hub.use_catalogue(from_file(args.catalogue), source=str(args.catalogue))
    elif args.demo:
        hub.use_catalogue(parse(_demo()), source="the demo")


def _demo() -> dict[str, list[object]]:
    text = (files("discreet.hub") / "demo.json").read_text("utf-8")
    document: dict[str, list[object]] = json.loads(text)
    return document


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


def leading_to(page: str) -> str:
    """Return a page that leads to another."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Discreet hub</title>'
        f'<meta http-equiv="refresh" content="0; url={escape(page)}">'
        f'<p><a href="{escape(page)}">Open the hub</a></p></html>\n'
    )
