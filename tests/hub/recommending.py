"""A small HTTP server that speaks the recommendation server's contract and records every request.

It stands in for the real one where a test needs faults on demand: late, refusing, or nonsense. The
whole path against the real server is in `tests/browser/test_hub.py`.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.waiting import join

KEY = "dk_key-of-the-hub"
NAME = "films"


@dataclass
class Recommending:
    """What it serves, what it should do wrong, and everything it was sent."""

    catalogue: dict[str, Any]
    url: str = ""
    asked: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    profiles: dict[str, list[str]] = field(default_factory=dict)
    fault: tuple[int, bytes] | None = None
    code: str = "7Q4F-9M2X-0TRW"
    popular: list[str] = field(default_factory=list)
    """The most popular first; whatever is not named follows in the catalogue's order."""

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if method == "GET" and path == f"/recommenders/{NAME}/catalogue":
            return 200, self.catalogue
        if method == "GET" and path == f"/recommenders/{NAME}/popular?limit=100":
            rows = [None, *self.catalogue.get("categories", [])]
            ask = [{"client": "", "limit": 100, "category": category} for category in rows]
            found = [[item["id"] for item in self._recommend(each)["items"]] for each in ask]
            named = zip(rows, found, strict=True)
            return 200, {"rows": [{"category": c, "items": ids} for c, ids in named]}
        if method == "POST" and path == "/enrolments/redeem":
            if body["code"] != self.code:
                return 404, {"detail": "no such code"}
            self.code = ""
            return 201, {"key": KEY, "client": "client-17", "recommenders": [NAME], "id": "x"}
        if method == "POST" and path == f"/recommenders/{NAME}/profiles":
            known = {item["id"] for item in self.catalogue["items"]}
            unknown = [item for item in body["items"] if item not in known]
            if unknown:
                return 422, {"detail": f"items: {unknown[0]!r} is unknown"}
            self.profiles[body["client"]] = body["items"]
            return 200, {"client": body["client"], "items": len(body["items"])}
        if method == "POST" and path == "/recommend/batch":
            return 200, {"results": [self._recommend(each) for each in body["requests"]]}
        return 404, {"detail": "no such place"}

    def _place(self, item: str) -> int:
        return self.popular.index(item) if item in self.popular else len(self.popular)

    def _recommend(self, request: dict[str, Any]) -> dict[str, Any]:
        had = self.profiles.get(request["client"], [])
        category = request.get("category")
        items = [
            {"id": item["id"]}
            for item in sorted(self.catalogue["items"], key=lambda each: self._place(each["id"]))
            if item["id"] not in had and (category is None or category in item["categories"])
        ]
        return {"status": 200, "items": items[: request["limit"]], "personalised": bool(had)}


@contextmanager
def recommending(catalogue: dict[str, Any]) -> Iterator[Recommending]:
    """Serve the catalogue on loopback until the block ends."""
    served = Recommending(catalogue)

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            length = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            served.asked.append((self.command, self.path, dict(self.headers), body))
            if served.fault is not None:
                status, data = served.fault
            elif (
                self.headers.get("authorization") != f"Bearer {KEY}"
                and self.path != "/enrolments/redeem"
            ):
                status, data = 401, b"{}"
            else:
                status, answer = served.answer(self.command, self.path, body)
                data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _do

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            join(thread)
