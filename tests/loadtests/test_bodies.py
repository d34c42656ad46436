"""What the load is made of: contexts from everywhere, and feedback that was never given before."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

import compare
import pytest
from callers import Caller, batch_body, chunks, feedback_on, ids_of
from drive import feedback_bodies, recommend_bodies
from stage import Target


@pytest.mark.parametrize("dimensions", [1, 2, 100])
def test_contexts_lie_in_the_cube(dimensions: int) -> None:
    for body in recommend_bodies(500, start=123_456, dimensions=dimensions):
        context = json.loads(body)["context"]
        assert len(context) == dimensions
        assert all(0 <= number <= 1 for number in context)


def test_contexts_reach_every_part_of_the_square_evenly() -> None:
    contexts = [json.loads(body)["context"] for body in recommend_bodies(4_096)]
    cells = [(int(x * 32) % 32, int(y * 32) % 32) for x, y in contexts]
    # 1,024 cells and four times as many points: on a line, or at random, many would stay empty.
    assert len(set(cells)) == 1_024


def test_bodies_go_on_where_others_stopped() -> None:
    assert recommend_bodies(10)[5:] == recommend_bodies(5, start=5)
    assert len({json.loads(body)["client"] for body in recommend_bodies(30, clients=7)}) == 7


def test_feedback_for_the_floor_is_unique_in_what_the_floor_looks_at() -> None:
    bodies = feedback_bodies(Target("floor", "http://127.0.0.1:1", ()), 5_000)
    assert len({json.loads(body)["recommendation_id"][:16] for body in bodies}) == 5_000
    assert {json.loads(body)["reward"] for body in bodies} == {0, 1}


def test_feedback_is_about_each_answer_once() -> None:
    answer = b'{"results":[{"recommendation_id":"a","status":200},{"recommendation_id":"b"}]}'
    told = [json.loads(body) for body in feedback_on(ids_of(answer))]
    assert told == [
        {"recommendation_id": "a", "reward": 0},
        {"recommendation_id": "b", "reward": 1},
    ]


def test_a_batch_holds_all_its_entries() -> None:
    entries = [f'{{"n":{number}}}' for number in range(2_500)]
    sizes = [len(json.loads(batch_body("recommend", one))["requests"]) for one in chunks(entries)]
    assert sizes == [1_000, 1_000, 500]


@pytest.fixture
def answering() -> Iterator[Target]:
    """A server that answers as if it were Discreet, with one entry of a batch refused."""
    numbers = count()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            single = f'{{"recommendation_id":"{next(numbers)}"}}'.encode()
            refused = b'{"results":[{"status":200},{"status":422}]}'
            content = refused if self.path.endswith("/batch") else single
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 64  # or some of 32 connections at once would be turned away

    with Server(("127.0.0.1", 0), Handler) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(server.serve_forever)
        yield Target("alternative", f"http://127.0.0.1:{server.server_port}", (1,))
        server.shutdown()


def test_feedback_is_never_sent_twice(answering: Target) -> None:
    supply = compare.Supply.of_path(answering, "feedback")
    first = list(supply.at_least(300))
    assert supply.sent(100) == 0
    second = list(supply.at_least(300))
    # What was on its way when the load stopped counts as sent.
    assert second[: len(first) - 164] == first[164:]
    assert len(set(first + second)) == 464
    assert supply.sent(301) == 1


def test_a_refused_entry_of_a_batch_ends_the_run(answering: Target) -> None:
    with Caller(answering) as caller, pytest.raises(SystemExit, match="1 of 2"):
        caller.post_batch("recommend", b"{}", 2)
