"""Both clients against a really running server, and against one that fails on the way."""

import asyncio
import inspect
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from discreet_client import (
    AsyncClient,
    Client,
    FeedbackCall,
    FeedbackReceipt,
    NotFound,
    RecommendCall,
    RecommendedItems,
    RequestConflict,
    Retries,
    Unreachable,
)
from tests.demo_server import Demo, demo_server
from tests.waiting import join

CONTEXT = [0.19, 0.13]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with demo_server(tmp_path_factory.mktemp("client")) as running:
        yield running


def patient(demo: Demo) -> Client:
    return Client(demo.url, demo.key, timeout=60, retries=Retries(total=120))


def test_recommend_and_feedback(demo: Demo) -> None:
    with patient(demo) as discreet:
        answer = discreet.recommend("films", "ada", CONTEXT, limit=2)
        assert len(answer.items) == 2
        item = answer.items[0].id
        assert discreet.feedback(answer, reward=1, item=item) == FeedbackReceipt(True, False, True)
        assert discreet.feedback(answer, reward=1, item=item).duplicate
        with pytest.raises(RequestConflict):
            discreet.feedback(answer, reward=0, item=item)
        with pytest.raises(NotFound, match="recommender"):
            discreet.recommend("nothing", "ada", CONTEXT)
        assert discreet.call("GET", "/recommenders")["recommenders"]


def test_the_same_event_is_charged_once(demo: Demo) -> None:
    with patient(demo) as discreet:
        first = discreet.recommend("films", "grace", CONTEXT, event_id="once")
        again = discreet.recommend("films", "grace", CONTEXT, event_id="once")
        assert again == first
        assert first.event_id == "once"
        other = discreet.recommend("films", "grace", CONTEXT)
        assert other.event_id not in (None, "once")


def test_many_at_once(demo: Demo) -> None:
    asks = [RecommendCall("films", f"client {n}", CONTEXT) for n in range(3)] + [
        RecommendCall("nothing", "x")
    ]
    with patient(demo) as discreet:
        *answers, wrong = discreet.recommend_many(asks)
        assert isinstance(wrong, NotFound)
        good = [answer for answer in answers if isinstance(answer, RecommendedItems)]
        assert len(good) == 3
        receipts = discreet.feedback_many([FeedbackCall(1.0, answer) for answer in good])
        assert receipts == [FeedbackReceipt(True, False, True)] * 3


def test_the_same_with_await(demo: Demo) -> None:
    async def talk() -> None:
        retries = Retries(total=120)
        async with AsyncClient(demo.url, demo.key, timeout=60, retries=retries) as discreet:
            answer = await discreet.recommend("films", "linus", CONTEXT)
            assert (await discreet.feedback(answer, reward=0.5)).learned
            (one,) = await discreet.recommend_many([RecommendCall("films", "linus", CONTEXT)])
            assert isinstance(one, RecommendedItems)
            (receipt,) = await discreet.feedback_many([FeedbackCall(1.0, one)])
            assert isinstance(receipt, FeedbackReceipt)
            with pytest.raises(NotFound):
                await discreet.recommend("nothing", "linus", CONTEXT)

    asyncio.run(talk())


def test_both_clients_have_the_same_calls() -> None:
    def calls(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(method).parameters)
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_")
        }

    assert calls(Client) == calls(AsyncClient)


class Failing:
    """A server that fails some times before it answers; it keeps what it was sent."""

    def __init__(self, *failures: tuple[int, dict[str, str]] | None) -> None:
        self.left = list(failures)
        self.asked: list[bytes] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                outer.asked.append(self.rfile.read(length))
                failure = outer.left.pop(0) if outer.left else (200, {})
                if failure is None:  # nothing at all comes back
                    self.close_connection = True
                    return
                status, headers = failure
                body = b'{"accepted": true, "duplicate": false, "learned": true}'
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> "Failing":
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        join(self.thread)
        self.server.server_close()


def test_what_failed_on_the_way_is_sent_again_as_it_was() -> None:
    waited: list[float] = []
    with Failing((503, {"Retry-After": "3"}), (429, {}), None) as failing:
        discreet = Client(
            failing.url, "k", timeout=60, retries=Retries(total=300), sleep=waited.append
        )
        with discreet:
            assert discreet.feedback(event_id="e", reward=1).accepted
    assert len(failing.asked) == 4
    assert len(set(failing.asked)) == 1
    assert waited[0] == 3.0
    assert all(0 < pause < 5 for pause in waited[1:])


def test_the_awaiting_client_does_so_too() -> None:
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    async def talk(url: str) -> None:
        retries = Retries(tries=2, total=300)
        async with AsyncClient(url, "k", timeout=60, retries=retries, sleep=wait) as discreet:
            assert (await discreet.feedback(event_id="e", reward=1)).accepted
            with pytest.raises(Unreachable):
                await discreet.feedback(event_id="e", reward=1)

    with Failing((503, {}), (200, {}), None, None) as failing:
        asyncio.run(talk(failing.url))
    assert len(waited) == 2


def test_nobody_there_names_the_event(tmp_path: Any) -> None:
    with Failing() as gone:
        url = gone.url
    no_pause = Retries(tries=3, first=0.0, longest=0.0)
    with Client(url, "k", retries=no_pause) as discreet, pytest.raises(Unreachable) as raised:
        discreet.recommend("films", "ada", CONTEXT)
    assert raised.value.event_id


def test_a_client_of_ones_own_is_used() -> None:
    answered = httpx.MockTransport(lambda request: httpx.Response(404, json={"title": "T"}))
    discreet = Client("http://x", "k", http=httpx.Client(transport=answered))
    with discreet, pytest.raises(NotFound, match="T"):
        discreet.recommend("films", "ada")
