"""Mutated requests to the raw front, compared with what h11 and the application make of them.

Our front parses with llhttp and short cuts of its own; h11 is a strict, plain parser that shares no
code with it. Both get the same bytes, and both end in the same application. The rule: *our front
may refuse what h11 accepts, and never accepts what h11 refuses or reads otherwise*, because that is
how requests are smuggled. `LOOSER` lists what it accepts all the same, each with its reason.

    python -m tests.fuzzing --seconds 600 --seed 7       by hand, also `make fuzz`
"""

import argparse
import asyncio
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

import h11

from tests.front import KEY, QUESTION, Front, fronting, post, statuses

REFUSALS = frozenset({400, 408, 413, 431})
"""What a front may answer instead of the application's status."""

EARLY = frozenset({401, 403, 404, 405, 413, 422, 429})
"""What is answered before a body is read, whether or not the rest of it ever comes."""

LOOSER = (
    (
        rb"(\A|\r\n\r\n|[}\]])[\r\n]+[a-z]+ ",
        "empty lines before a request are skipped, as RFC 9112 recommends",
    ),
    (
        rb"[a-z]+ {2,}\S+ +http/1|\S {2,}http/1",
        "more spaces than one in the request line, as RFC 9112 allows: it is read alike",
    ),
    (rb"upgrade", "h11 stops reading after a wish for another protocol; we ignore the wish"),
    (rb"connect ", "h11 takes CONNECT for a tunnel"),
)
"""Patterns in requests that we answer and h11 does not, and why that is no danger."""

CHUNKED = (
    b"POST /recommend HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %b\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n%x;a=b\r\n%b\r\n0\r\nX-Trailer: y\r\n\r\n"
) % (KEY.encode(), len(QUESTION), QUESTION)
GET = b"GET %b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + KEY.encode() + b"\r\n\r\n"

CORPUS = (
    post(),
    post(b'{"recommendation_id":"x","reward":1}', path="/feedback"),
    post(b'{"requests":[%b,%b]}' % (QUESTION, QUESTION), path="/recommend/batch"),
    post(b'{"requests":[{"client":"\\ud800"}]}', path="/recommend/batch"),
    post(QUESTION, "Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMA"),
    post(QUESTION, "Expect: 100-continue"),
    post(QUESTION, "Connection: close"),
    post(QUESTION, version="1.0"),
    post(QUESTION, path="/recommend?x=%2e%2e/"),
    CHUNKED,
    CHUNKED + post(),
    post() + post(b"{", path="/feedback") + GET % b"/recommenders",
    GET % b"/clients/ada%2Fbudget?recommender=films",
    GET % b"/clients/ada/budget?recommender=films",
    GET % b"/nowhere/%C3%A4",
    b"PUT" + post(b"{}", path="/recommenders/films")[4:],
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    b"HEAD /health/live HTTP/1.1\r\nHost: x\r\n\r\n",
)

WORDS = (
    b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"\x7f", b"\xff", b"%00", b"%2f", b"\\ud800",
    b"Content-Length: 0\r\n", b"content-length: 5\r\n", b"Content-Length: +58\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n",
    b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n",
    b"Host: y\r\n", b"Authorization: Bearer nobody\r\n", b" folded\r\n", b"X: y\r\n" * 120,
    b"X: " + b"y" * 20_000 + b"\r\n", b"Connection: keep-alive\r\n", b"Upgrade: websocket\r\n",
    b"0\r\n\r\n", b"ffffffffffffffff\r\n", b"-1", b"1e9", b"HTTP/1.0", b"HTTP/2.0", b"PRI * HTTP/2",
)  # fmt: skip


def mutated(rng: random.Random) -> bytes:
    """Return a request, or several, with a few things wrong."""
    content = rng.choice(CORPUS)
    for _ in range(rng.randrange(5)):
        lines = content.split(b"\r\n")
        place, other = rng.randrange(len(content) + 1), rng.randrange(len(content) + 1)
        kind = rng.randrange(8)
        if kind == 0:
            content = content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]
        elif kind == 1:
            content = content[:place] + rng.choice(WORDS) + content[place:]
        elif kind == 2:
            content = content[:place] + content[min(place + rng.randrange(9), len(content)) :]
        elif kind == 3:
            at = rng.randrange(len(lines))
            content = b"\r\n".join([*lines[:at], *rng.choice(WORDS).split(b"\r\n"), *lines[at:]])
        elif kind == 4:
            at = rng.randrange(len(lines))
            content = b"\r\n".join([*lines[: at + 1], *lines[at:]])
        elif kind == 5:
            content = content + rng.choice(CORPUS)
        elif kind == 6:
            start, end = sorted((place, other))
            content = content[:start] + content[start:end].swapcase() + content[end:]
        else:
            content = content[: max(1, place)]
    return content


def pieces(content: bytes, rng: random.Random) -> list[bytes]:
    """Cut bytes anywhere: a parser has to live with what one read brings."""
    cuts = sorted(rng.randrange(len(content) + 1) for _ in range(rng.randrange(4)))
    return [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True) if a < b]


async def expected(front: Front, content: bytes) -> list[int]:
    """Return the statuses with h11 as the parser; what it cannot parse ends with 400."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=2**16)
    found: list[int] = []
    connection.receive_data(content)
    connection.receive_data(b"")
    try:
        while isinstance(request := connection.next_event(), h11.Request):
            body = b""
            while not isinstance(event := connection.next_event(), h11.EndOfMessage):
                if not isinstance(event, h11.Data):
                    return [*found, 400]
                body += event.data
            found.append(await called(front, request, body))
            connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            connection.send(h11.EndOfMessage())
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                return found
            connection.start_next_cycle()
        return found if isinstance(request, h11.ConnectionClosed) else [*found, 400]
    except h11.RemoteProtocolError:
        return [*found, 400]


async def called(front: Front, request: h11.Request, body: bytes) -> int:
    """Return the status with which the application answers this."""
    raw, _, query = request.target.partition(b"?")
    scope = {
        "type": "http",
        "method": request.method.decode("ascii"),
        "path": unquote(raw.decode("ascii")),
        "raw_path": raw,
        "query_string": query,
        "headers": [(name.lower(), value) for name, value in request.headers],
        "client": ("127.0.0.1", 1),
        "http_version": "1.1",
        "root_path": "",
        "scheme": "http",
        "server": ("127.0.0.1", 1),
        "state": dict(front.live),
    }
    sent: list[int] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            sent.append(int(str(message["status"])))

    await front.app(scope, receive, send)  # type: ignore[arg-type]
    return sent[0]


@dataclass
class Findings:
    """What came of many requests."""

    requests: int = 0
    agreed: int = 0
    stricter: Counter[str] = field(default_factory=Counter)
    looser: Counter[str] = field(default_factory=Counter)
    unanswered: list[str] = field(default_factory=list)
    """Requests that h11 would have passed on and we closed without a word."""
    faults: list[str] = field(default_factory=list)


def judge(content: bytes, ours: list[int], theirs: list[int], findings: Findings) -> None:
    """Compare two lists of statuses for the same bytes."""
    findings.requests += 1
    if any(status >= 500 for status in ours):
        findings.faults.append(f"{ours} for {content!r}")
    if ours == theirs:
        findings.agreed += 1
        return
    same = 0
    while same < min(len(ours), len(theirs)) and ours[same] == theirs[same]:
        same += 1
    rest = ours[same:]
    if len(rest) == 1 and rest[0] in EARLY and theirs[same:] == [400]:
        findings.stricter["refused before its body was read"] += 1
        return
    if not rest or (len(rest) == 1 and rest[0] in REFUSALS):
        findings.stricter[f"{rest or 'closed'} for {theirs[same:][:1] or 'closed'}"] += 1
        if not rest and theirs[same:] != [400]:
            findings.unanswered.append(f"{ours}, h11 has {theirs}, for {content!r}")
        return
    for word, reason in LOOSER:
        if re.search(word, content.lower()):
            findings.looser[reason] += 1
            return
    findings.faults.append(f"{ours}, h11 has {theirs}, for {content!r}")


async def fuzz(seeds: Iterator[int]) -> Findings:
    """Send one request for every seed, and compare."""
    findings = Findings()
    async with fronting() as front:
        front.live["wrong_keys"].delay = lambda network: 0.0  # it is right, and would take long
        for seed in seeds:
            rng = random.Random(seed)
            content = mutated(rng)
            try:
                answer = await front.talk(*pieces(content, rng), finished=True, seconds=60)
            except ConnectionError:
                # Whoever announces the end and goes on sending may miss the answer.
                if re.search(rb"connection: close|http/1.0", content.lower()):
                    findings.stricter["reset after an announced end"] += 1
                else:
                    findings.faults.append(f"reset for {content!r}")
                continue
            except TimeoutError as error:
                findings.faults.append(f"{type(error).__name__} for {content!r}")
                continue
            ours = [status for status in statuses(answer) if status != 100]
            judge(content, ours, await expected(front, content), findings)
        await front.connected(0)
        busy = front.live["admission"]
        if busy.in_flight or busy.batches or busy.beside:
            findings.faults.append("somebody was let in and never left")
    return findings


def main() -> int:
    """Fuzz for a while, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first request")
    args = parser.parse_args()
    until = time.monotonic() + args.seconds

    def seeds() -> Iterator[int]:
        seed = args.seed
        while time.monotonic() < until:
            yield seed
            seed += 1

    findings = asyncio.run(fuzz(seeds()))
    print(f"{findings.requests} requests, {findings.agreed} answered as with h11")
    for name, group in (("stricter", findings.stricter), ("looser", findings.looser)):
        for what, count in group.most_common():
            print(f"{name}: {what} ({count})")
    for one in findings.unanswered[:5]:
        print(f"no answer: {one}")
    for fault in findings.faults[:20]:
        print(f"FAULT: {fault}")
    return 1 if findings.faults else 0


if __name__ == "__main__":
    sys.exit(main())
