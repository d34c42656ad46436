"""Every family beside the floor: what is sent, what is counted, and a short real run."""

import json
import math
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import families
import pytest
from drive import Sample
from families import BatchTurn, Questions
from kinds import kinds
from stage import Target

from discreet.families.registration import read_document


def test_every_kind_is_a_recommender_and_its_questions_name_it() -> None:
    found = kinds()
    assert {kind.document["algorithm"] for kind in found} >= {
        "p-dap", "contextual", "fclub", "mirror-descent", "p-rec",
    }  # fmt: skip
    assert len({kind.recommender for kind in found}) == len(found)
    for kind in found:
        read_document(dict(kind.document))
        for body in kind.bodies(3):
            assert json.loads(body)["recommender"] == kind.recommender


def test_a_round_is_asked_for_once_by_everybody() -> None:
    (voters,) = (kind for kind in kinds() if kind.name == "p-rec")
    questions = Questions(voters)
    asked = [json.loads(body) for body in [*questions.take(500), *questions.take(9_000)]]
    assert len({(one["client"], one["round"]) for one in asked}) == 9_500
    first = [json.loads(body) for body in questions.to_be_judged(300)]
    more = [json.loads(body) for body in questions.to_be_judged(300)]
    assert len({one["client"] for one in first + more}) == 600


def test_questions_that_may_come_again_are_few_and_others_are_not() -> None:
    target = Target("discreet", "http://127.0.0.1:1", ())
    for kind in kinds():
        supply = Questions(kind).supply(target, "recommend")
        before = list(supply.at_least(7_000))
        supply.sent(100)
        assert (supply.at_least(7_000)[0] == before[0]) is not kind.once


def test_failed_entries_are_counted_and_times_are_of_the_same_turn() -> None:
    turns = [BatchTurn(9_000.0, 50.0, 4_000, 0), BatchTurn(2_000.0, 70.0, 3_000, 250)]
    floor = [Sample(3_000.0, 300.0, 9_000), Sample(1_000.0, 300.0, 3_000)]
    found = families.batch_figures(turns, floor)
    assert (found["entries"], found["failed"]) == (7_000, 250)
    assert found["ratio_to_floor"] == {"median": 2.5, "min": 2.0, "max": 3.0}


@pytest.fixture
def half_failing() -> Iterator[Target]:
    """A server that answers every other entry of a batch with 503."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            content = b'{"results":[' + b",".join([b'{"status":200}', b'{"status":503}'] * 500)
            content += b"]}"
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield Target("discreet", f"http://127.0.0.1:{server.server_port}", ())
    server.shutdown()
    server.server_close()


def test_a_batch_that_fails_in_part_is_part_of_the_result(half_failing: Target) -> None:
    asked = {kind.name: Questions(kind) for kind in kinds()[:1]}
    ((turn,),) = families.batch_turns(
        half_failing, asked, seconds=0.5, rounds=1, say=lambda what: None
    ).values()
    assert turn.entries >= 1_000
    assert turn.failed == turn.entries / 2
    assert math.isfinite(turn.decisions_per_second)
