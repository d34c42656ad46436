"""Somebody else's recommendation service, which has never heard of Discreet."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.waiting import join

TOKEN = "token-of-the-reader"
BOOKS = [
    {"isbn": f"b{n}", "about": {"name": f"Film Number {n} ({1970 + n})"}, "genres": "Drama|Crime"}
    for n in range(6)
]


@dataclass
class Bookshop:
    """What readers have told it, and every request that came."""

    url: str = ""
    readers: dict[str, list[str]] = field(default_factory=dict)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        parts = urlsplit(path)
        if (method, parts.path) == ("GET", "/v2/books"):
            return 200, {"data": {"books": BOOKS}}
        reader = unquote(parts.path.removeprefix("/v2/readers/").split("/")[0])
        if method == "PUT" and parts.path.endswith("/shelf"):
            self.readers[reader] = body["read"]["isbns"]
            return 204, None
        if method == "GET" and parts.path.endswith("/suggestions"):
            wanted = parse_qs(parts.query)
            had = self.readers.get(reader, [])
            left = [book["isbn"] for book in BOOKS if book["isbn"] not in had]
            return 200, {"suggestions": left[: int(wanted["n"][0])]}
        return 404, {"error": "no such page"}


@contextmanager
def bookshop() -> Iterator[Bookshop]:
    """Run it on loopback until the block ends."""
    shop = Bookshop()

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            length = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            shop.asked.append((self.command, self.path, body))
            status, found = shop.answer(self.command, self.path, body)
            if self.headers.get("X-Token") != TOKEN:
                status, found = 401, {}
            data = b"" if found is None else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PUT = _do

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        shop.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield shop
        finally:
            server.shutdown()
            join(thread)


def described(shop: Bookshop) -> str:
    """Return the file that a reader writes for it."""
    return f"""
name: books
adapter: plain
key_file: books.key
headers: {{X-Token: "{{key}}"}}
catalogue:
  url: {shop.url}/v2/books
  items: data.books
  id: isbn
  title: about.name
  categories: genres
profile:
  method: PUT
  url: {shop.url}/v2/readers/{{client}}/shelf
  body: {{read: {{isbns: "{{items}}"}}}}
recommendations:
  url: {shop.url}/v2/readers/{{client}}/suggestions?n={{limit}}
  items: suggestions
  id: ""
  popular: true
"""
