"""The short way for direct routes: what takes it, and what does not.

What it answers, against a running server, is compared with the long way in
tests/end_to_end/test_socket.py.
"""

import json
import re

import pytest

from discreet.api.bodies import SHORT_BODY
from tests.api.conftest import KEY
from tests.front import fronting, statuses
from tests.front import post as request_to

pytestmark = pytest.mark.anyio


async def respond(request: bytes, *, pieces: int = 1) -> tuple[bytes, list[str]]:
    """Return what is answered over a real connection, and which way the request took."""
    size = -(-len(request) // pieces)
    parts = [request[start : start + size] for start in range(0, len(request), size)]
    async with fronting() as front:
        answer = await front.talk(*parts, finished=True)
    return answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n"), front.ways


def post(body: bytes, *headers: str, path: str = "/feedback", version: str = "1.1") -> bytes:
    return request_to(body, *headers, path=path, version=version)


BODY = b'{"recommendation_id":"x","reward":1}'


@pytest.mark.parametrize("pieces", [1, 7])
async def test_a_direct_request_takes_the_short_way(pieces: int) -> None:
    answer, ways = await respond(post(BODY), pieces=pieces)
    assert ways == ["short"]
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"invalid-recommendation-id" in answer


@pytest.mark.parametrize(
    "request_",
    [
        post(BODY, path="/handles/open"),
        post(BODY, path="/feedback?x=1"),
        post(BODY, version="1.0"),
        post(BODY, "connection: close"),
        post(BODY, "expect: 100-continue"),
        post(b" " * (SHORT_BODY + 1)),
    ],
)
async def test_everything_else_takes_the_long_way(request_: bytes) -> None:
    answer, ways = await respond(request_)
    assert ways == ["long"]
    assert answer.startswith(b"HTTP/1.1 4")


def ask(client: str, context: str = "[0.5,0.5]") -> bytes:
    return request_to(
        b'{"recommender":"films","client":"%s","context":%s}' % (client.encode(), context.encode())
    )


async def test_what_there_is_no_room_for_is_refused_before_it_is_debited() -> None:
    async with fronting() as front:
        admission = front.live["admission"]
        admission.bound = 1
        assert admission.enter()  # somebody else's request
        answer = await front.talk(ask("ada"), ask("ada"), finished=True)
        assert statuses(answer) == [429, 429], "the connection goes on after a refusal"
        assert b"retry-after: 1\r\n" in answer
        assert b"urn:discreet:problem:overloaded" in answer
        assert await front.spent() == 0.0
        health = await front.talk(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n", finished=True)
        assert statuses(health) == [200]
        admission.leave(None)
        assert statuses(await front.talk(ask("ada"), finished=True)) == [200]
        assert admission.in_flight == 0
        front.live["metrics"].flush()
        assert (
            b'discreet_requests_refused_total{reason="overloaded"} 2.0'
            in front.live["metrics"].render()
        )


async def test_the_long_way_is_refused_alike() -> None:
    async with fronting() as front:
        front.live["admission"].bound = 0
        chunked = ask("ada").replace(b"content-length: ", b"transfer-encoding: chunked\r\nx: ")
        head, _, body = chunked.partition(b"\r\n\r\n")
        request = head + b"\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
        answer = await front.talk(request, finished=True)
        assert (statuses(answer), front.ways) == ([429], ["long"])
        assert b"retry-after: 1\r\n" in answer
        assert await front.spent() == 0.0
        assert front.live["admission"].in_flight == 0


async def test_too_many_batches_are_refused() -> None:
    body = b'{"requests":[%s]}' % request_to().partition(b"\r\n\r\n")[2]
    async with fronting() as front:
        admission = front.live["admission"]
        while admission.enter_batch():
            pass
        held = admission.batches
        batch = request_to(body, path="/recommend/batch")
        assert statuses(await front.talk(batch, finished=True)) == [429]
        assert await front.spent() == 0.0
        admission.leave_batch()
        assert statuses(await front.talk(batch, finished=True)) == [200]
        assert admission.batches == held - 1


async def test_a_keys_rate_is_the_same_for_every_context() -> None:
    """Refused after as many requests whoever and whatever they are about, and nothing is spent."""
    counts = []
    for context in ("[0.0,0.0]", "[1.0,0.25]"):
        async with fronting(key_requests_per_second=0.5) as front:
            requests = [ask(f"c{number}", context) for number in range(8)]
            answer = await front.talk(*requests, finished=True)
            counts.append(statuses(answer))
            assert b"urn:discreet:problem:rate-exceeded" in answer
            assert await front.spent("c7") == 0.0
    assert counts == [[200] * 5 + [429] * 3] * 2


async def test_entries_of_a_batch_count_as_requests() -> None:
    entry = request_to().partition(b"\r\n\r\n")[2]
    async with fronting(key_requests_per_second=1.0) as front:
        batch = request_to(b'{"requests":[%s]}' % b",".join([entry] * 10), path="/recommend/batch")
        answer = await front.talk(batch, batch, ask("bob"), finished=True)
        assert statuses(answer) == [200, 429, 429]
        assert await front.spent("bob") == 0.0


async def test_the_same_head_is_parsed_once_and_answered_alike() -> None:
    async with fronting() as front:
        asked = [ask("ada"), ask("bob", "[0.25,0.5]"), ask("eve"), ask("ada")]
        for request in asked:
            assert statuses(await front.talk(request, finished=True)) == [200]
        assert front.ways == ["short", "short"], "two lengths of a body"
        assert [await front.spent(each) for each in ("ada", "bob", "eve")] == [2.0, 1.0, 1.0]
        wrong = ask("ada", "[0.5,1.5]")  # as long as one that is known
        assert statuses(await front.talk(wrong, finished=True)) == [422]
        assert front.ways == ["short", "short"]
        assert front.live["admission"].in_flight == 0


async def test_requests_in_pieces_or_behind_another_are_answered_too() -> None:
    async with fronting() as front:
        one = ask("ada")
        assert statuses(await front.talk(one, finished=True)) == [200]
        for pieces in ((one + one,), (one[:20], one[20:]), (one[:-5], one[-5:] + one)):
            answer = await front.talk(*pieces, finished=True)
            assert statuses(answer) == [200] * (sum(map(len, pieces)) // len(one))
        assert await front.spent() == 6.0


async def test_a_known_head_opens_nothing_once_its_key_is_revoked() -> None:
    async with fronting() as front:
        keys = front.live["services"].keys
        secret = await keys.create(label="shop", scopes=frozenset({"serve"}))
        request = ask("ada").replace(KEY.encode(), secret.encode())
        for _ in range(2):
            assert statuses(await front.talk(request, finished=True)) == [200]
        assert front.ways == ["short"]
        await keys.revoke((await keys.list())[0].id)
        assert statuses(await front.talk(request, finished=True)) == [401]
        assert await front.spent() == 2.0


async def test_an_answer_that_has_to_wait_for_more_than_its_batch_is_given() -> None:
    body = b'{"recommender":"films","client":"ada","context":[0.5,0.5],"event_id":"one"}'
    async with fronting() as front:
        answers = [await front.talk(request_to(body), finished=True) for _ in range(3)]
        assert [statuses(each) for each in answers] == [[200]] * 3
        assert len({each.partition(b"\r\n\r\n")[2] for each in answers}) == 1
        assert await front.spent() == 1.0


WRONG_QUESTIONS = [
    b'{"recommender":"films","client":"ada","context":[0.5,1.5]}',
    b'{"recommender":"films","client":"ada","context":[0.5]}',
    b'{"recommender":"nobody","client":"ada","context":[0.5,0.5]}',
    b'{"recommender":"films","client":"ada","context":[0.5,0.5],"limit":0}',
    b'{"recommender":"films"',
]
WRONG_FEEDBACK = [
    BODY,
    b'{"recommendation_id":"x","event_id":"y","reward":1}',
    b'{"event_id":"nobody\'s","reward":1}',
    b'{"reward":1}',
]


async def test_what_joins_others_is_answered_as_in_a_task_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same statuses, headers and bodies, but for what is drawn; and the same is counted."""
    answers = []
    for joins in (True, False):
        async with fronting() as front:
            if not joins:
                monkeypatch.setattr(front.app, "join", lambda *_: False)
            first = await front.talk(ask("ada"), finished=True)
            token = json.loads(first.partition(b"\r\n\r\n")[2])["recommendation_id"]
            liked = json.dumps({"recommendation_id": token, "reward": 1}).encode()
            hated = json.dumps({"recommendation_id": token, "reward": 0}).encode()
            asked = ask("ada").partition(b"\r\n\r\n")[2]
            told = [
                await front.talk(request_to(body.ljust(600), path=path), finished=True)
                for path, bodies in (
                    ("/recommend", [asked, asked, *WRONG_QUESTIONS]),
                    ("/feedback", [liked, liked, hated, *WRONG_FEEDBACK]),
                )
                for body in bodies
            ]
            assert front.ways == ["short"] * 3, "the question, and two heads of 600 bytes"
            assert front.live["admission"].in_flight == 0
            front.live["metrics"].flush()
            shown = front.live["metrics"].render()
            assert b"discreet_requests_in_flight 0.0" in shown
            counted = re.findall(rb"discreet_request_seconds_count{.*", shown)
        drawn = rb'"(recommendation_id|id|expires_at)":"[^"]*"|length: \d+|[0-9a-f]{16}'
        answers.append([re.sub(drawn, b"", each) for each in told] + sorted(counted))
    assert answers[0] == answers[1]
    assert [statuses(each) for each in answers[0][:7]] == [[200], [200]] + [[422]] * 2 + [
        [404],
        [422],
        [400],
    ]
