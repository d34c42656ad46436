"""The files that one request passes, in order, as traced: python -m tests.way."""

import asyncio
import contextlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

from discreet.api.gateway import HttpGateway
from discreet.api.heads import KnownHead
from discreet.app import create_app
from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.settings import Settings
from discreet.state.embedded import EmbeddedStore

PACKAGE = Path(create_app.__code__.co_filename).parent
DOCUMENT = {
    "algorithm": "p-dap",
    "items": ["a", "b", "c"],
    "context": {"dimensions": 2},
    "exploration": {"rate": 0.0},  # so that every answer is drawn the same way
}
TURNS = 15
"""Requests that are traced; the most frequent way is what no task in the background crossed."""
ASIDE = ("state/", "metrics/", "store_metrics.py", "logs.py")
"""What lies behind the store's protocol, and what counts and logs."""
KEY = "a-key-for-tracing"
HEADERS = [(b"authorization", f"Bearer {KEY}".encode())]
FIRST = "protocol.py"
"""Reads the request from the socket before anything here is called."""


@contextlib.contextmanager
def traced() -> Iterator[list[str]]:
    """Collect the modules of ours whose functions are entered, in the order of the first time."""
    passed = [FIRST]

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and PACKAGE in path.parents:
            name = str(path.relative_to(PACKAGE))
            if name not in passed:
                passed.append(name)

    sys.setprofile(note)
    try:
        yield passed
    finally:
        sys.setprofile(None)


async def _known_head(app: HttpGateway, live: Any, path: str) -> KnownHead:
    """Return a head whose key was looked up before, as most are."""
    route = app.direct_route("POST", path)
    assert route is not None
    head = KnownHead(route, HEADERS, 0)
    await app.answer(route, live, HEADERS, b"{}", head=head)
    return head


class _Told(asyncio.Future[Any]):
    """Waits for an answer as a connection does."""

    answered = asyncio.Future.set_result


async def _answer(app: HttpGateway, live: Any, head: KnownHead, body: bytes) -> bytes:
    """Answer a request as `protocol` does, without the socket."""
    assert app.admit(head.route, live)
    grant, told = app.known_grant(head, live), _Told()
    assert grant is not None
    assert app.join(head, live, grant, body, told)
    status, _, content = app.finished(head.route, live, perf_counter(), await told)
    assert status == 200, content
    return content


async def _ways() -> dict[str, list[str]]:
    with tempfile.TemporaryDirectory() as folder, EmbeddedStore(folder) as url:
        app = create_app(
            Settings(
                api_key=KEY, store=url, data_dir=Path(folder), init=True, store_timeout_seconds=30
            )
        )
        async with app.router.lifespan_context(app) as live:
            services = live["services"]
            document = AdaptivePartitionDocument.model_validate(DOCUMENT)
            await services.registry.put("films", document)
            await services.releaser.release(await services.registry.find("films"))
            await services.background.stop()
            await services.decision_log.stop()
            found: dict[str, Counter[tuple[str, ...]]] = {
                "/recommend": Counter(),
                "/feedback": Counter(),
            }
            token, heads = "", {path: await _known_head(app, live, path) for path in found}
            for turn in range(TURNS):
                for path in ("/recommend", "/feedback"):
                    body: dict[str, Any] = {"recommendation_id": token, "reward": 1.0}
                    if path == "/recommend":
                        body = {"recommender": "films", "client": f"c{turn}", "context": [0.1, 0.2]}
                    while app.known_grant(heads[path], live) is None:
                        # A machine that is busy lets the lease lapse. Nobody else renews it here,
                        # and a key that was given is recognised without the store.
                        await services.registry.current()
                        heads[path] = await _known_head(app, live, path)
                    with traced() as passed:
                        content = await _answer(app, live, heads[path], json.dumps(body).encode())
                    token = json.loads(content).get("recommendation_id", token)
                    found[path][tuple(name for name in passed if not name.startswith(ASIDE))] += 1
            return {path: list(ways.most_common(1)[0][0]) for path, ways in found.items()}


def ways() -> dict[str, list[str]]:
    """Return the files that `/recommend` and `/feedback` pass, in order."""
    return asyncio.run(_ways())


PAGE = Path(__file__).parent.parent / "CONTRIBUTING.md"
BEGIN, END = "<!-- the way of a request -->\n", "<!-- end of the way -->\n"


def rendered() -> str:
    """Return both ways as Markdown: the files that decide, in order, and what they use."""
    lines = [
        "Traced through the shipped code on a real store; `python -m tests.way` writes this",
        "anew, and a test holds it. Files below `service/discreet/`, in the order in which a",
        "request enters them.",
        "",
    ]
    for path, passed in ways().items():
        lines += [f"`POST {path}` passes {len(passed)} files and then the store:", ""]
        lines += [f"{place}. `{name}`" for place, name in enumerate(passed, start=1)]
        lines.append("")
    lines += [
        "Behind the store's protocol are the store's own files (`state/`), and beside all of",
        "them what counts and logs (`metrics/`, `store_metrics.py`, `logs.py`).",
        "",
    ]
    return "\n".join(lines)


def on_page() -> str:
    """Return what CONTRIBUTING.md says."""
    return PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]


def main() -> None:
    """Write the way of a request anew."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1] if END in rest else rest
    PAGE.write_text(before + BEGIN + rendered() + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
