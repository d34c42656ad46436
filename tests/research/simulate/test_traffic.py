"""Synthetic users of a real server: what they report is what the server counted."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import InvalidArgument
from discreet.research.simulate import traffic as module
from discreet.research.simulate.traffic import Traffic, send_traffic
from discreet.research.simulate.traffic_results import TrafficResults
from tests.demo_server import Demo, demo, demo_server  # noqa: F401 - a fixture
from tests.ports import free_port
from tests.waiting import PATIENCE, join


def document(*items: str, budget: float = 100.0) -> dict[str, Any]:
    return {
        "algorithm": "p-dap",
        "items": list(items),
        "context": {"dimensions": 3},
        "privacy": {
            "answers": {"epsilon": 1.0, "budget": {"epsilon": budget, "delta": 0.0}},
            "feedback": {"budget": {"epsilon": 1e6}},
        },
    }


def traffic_to(demo: Demo, recommender: str, **changes: Any) -> Traffic:  # noqa: F811
    base = Traffic(url=demo.url, key=demo.key, recommender=recommender, rate=100, seconds=600)
    return replace(base, **{"clients": 20, "seed": 5, **changes})


def send_until(plan: Traffic, answers: int) -> TrafficResults:
    """Send traffic until there were so many answers, however long a busy machine takes."""

    async def until_enough() -> TrafficResults:
        stop = asyncio.Event()

        def watch(results: TrafficResults) -> None:
            if results.total.answers >= answers:
                stop.set()

        return await send_traffic(plan, stop=stop, watch=watch)

    return asyncio.run(asyncio.wait_for(until_enough(), PATIENCE))


def test_what_is_reported_is_what_the_server_counted(demo: Demo) -> None:  # noqa: F811
    demo.call("PUT", "/recommenders/counted", document("a", "b", "c", budget=3.0))
    results = send_until(traffic_to(demo, "counted"), 150)
    counted = demo.samples("counted")
    assert not results.errors
    assert results.gave_up is None
    assert results.total.answers >= 150
    assert results.feedback == results.total.answers
    assert counted["discreet_recommendations_total", "degraded"] == results.total.degraded > 0
    personal = counted["discreet_recommendations_total", "personalised"]
    assert personal + results.total.degraded == results.total.answers
    assert results.total.reward > 0
    assert counted["discreet_epsilon_spent_total", ""] == pytest.approx(personal * 1.0)
    # Three answers each for twenty clients, and not one more.
    assert personal <= 60


def test_clicks_only_are_told_in_the_documents_range(demo: Demo) -> None:  # noqa: F811
    ranged = {**document("a", "b", "c"), "reward": {"range": [-1, 5]}}
    demo.call("PUT", "/recommenders/clicked", ranged)
    results = send_until(traffic_to(demo, "clicked", clicks_only=True), 100)
    assert not results.errors, "a reward outside the range would be refused"
    assert 0 < results.feedback == results.total.reward < results.total.answers


def test_the_same_people_come_back_to_their_old_budgets(demo: Demo) -> None:  # noqa: F811
    demo.call("PUT", "/recommenders/returning", document("a", "b", budget=1.0))
    plan = traffic_to(demo, "returning", clients=5)
    # The least frequent of the five stays away from 160 visits with probability below 1e-9.
    first = send_until(plan, 160)
    again = send_until(plan, 20)
    others = send_until(replace(plan, name="somebody-else"), 160)
    assert first.total.answers - first.total.degraded == 5
    assert again.total.degraded == again.total.answers
    assert others.total.answers - others.total.degraded == 5


def test_regret_is_the_truth_of_the_world_not_of_the_learner(demo: Demo) -> None:  # noqa: F811
    demo.call("PUT", "/recommenders/single", document("only"))
    assert send_until(traffic_to(demo, "single"), 50).total.regret == 0.0


def test_items_that_appear_meanwhile_are_known(demo: Demo) -> None:  # noqa: F811
    demo.call("PUT", "/recommenders/growing", document("old"))
    change = threading.Thread(
        target=lambda: demo.call("PUT", "/recommenders/growing", document("new")), daemon=True
    )
    answers_before: list[int] = []

    async def until_both_were_seen() -> TrafficResults:
        stop = asyncio.Event()

        def watch(results: TrafficResults) -> None:
            answers = results.total.answers
            if answers >= 20 and change.ident is None:
                change.start()
            elif change.ident is not None and not change.is_alive():
                if not answers_before:
                    answers_before.append(answers)
                elif answers >= answers_before[0] + 40:
                    stop.set()

        return await send_traffic(traffic_to(demo, "growing"), stop=stop, watch=watch)

    results = asyncio.run(asyncio.wait_for(until_both_were_seen(), PATIENCE))
    join(change)
    # Answers with the removed item may be under way when it goes, one on each connection; their
    # feedback is then refused. Whoever did not know the new item would err on every answer.
    assert results.errors.total() <= 16
    assert results.total.regret == 0.0


def test_stop_lets_requests_under_way_finish(demo: Demo) -> None:  # noqa: F811
    demo.call("PUT", "/recommenders/stopped", document("a", "b"))
    results = send_until(traffic_to(demo, "stopped"), 20)
    assert results.interrupted
    # At most one visit was under way on each of the sixteen connections.
    assert 20 <= results.total.answers <= 36
    assert results.feedback == results.total.answers


def test_it_ends_by_itself_and_never_sends_more_than_was_asked(demo: Demo) -> None:  # noqa: F811
    demo.call("PUT", "/recommenders/bounded", document("a", "b"))
    results = asyncio.run(send_traffic(traffic_to(demo, "bounded", rate=10, seconds=5)))
    assert not results.interrupted
    assert 0 < results.total.answers <= 50


def test_a_server_that_goes_away_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FAILING_SECONDS", 5.0)
    with demo_server(tmp_path, "--workers", "1") as short_lived:
        plan = traffic_to(short_lived, "films")

        def watch(results: TrafficResults) -> None:
            if results.total.answers >= 30 and short_lived.process.poll() is None:
                short_lived.process.terminate()

        results = asyncio.run(asyncio.wait_for(send_traffic(plan, watch=watch), PATIENCE))
    assert results.gave_up is not None
    assert "nothing has succeeded" in results.gave_up
    assert results.total.answers >= 30


# When it cannot even begin.


def refused(plan: Traffic) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as caught:
        asyncio.run(send_traffic(plan))
    return caught.value


def test_no_server() -> None:
    plan = Traffic(url=f"http://127.0.0.1:{free_port()}", key="k", recommender="films")
    error = refused(plan)
    assert error.argument == "url"
    assert "make run" in error.reason


def test_a_wrong_key(demo: Demo) -> None:  # noqa: F811
    error = refused(traffic_to(demo, "films", key="wrong"))
    assert error.argument == "key"
    assert "does not accept this key" in error.reason
    assert "wrong" not in error.reason


def test_an_unknown_recommender_lists_what_there_is(demo: Demo) -> None:  # noqa: F811
    error = refused(traffic_to(demo, "novels"))
    assert error.argument == "recommender"
    assert "films" in error.reason


def test_an_empty_catalogue(demo: Demo) -> None:  # noqa: F811
    demo.call("PUT", "/recommenders/empty", document())
    assert refused(traffic_to(demo, "empty")).argument == "recommender"


class _SomethingElse(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[1, 2]")

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def something_else() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _SomethingElse)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    join(thread)
    server.server_close()


def test_another_kind_of_server(something_else: str) -> None:
    error = refused(Traffic(url=something_else, key="k", recommender="films"))
    assert error.argument == "url"
    assert "not a Discreet server" in error.reason


# Bad parameters.


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("url", "127.0.0.1:8000"),
        ("url", "ftp://127.0.0.1/"),
        ("url", "http://192.0.2.7:8000"),
        ("url", "http://example.org"),
        ("url", "http://127.0.0.1.example.org"),
        ("key", ""),
        ("key", "two\nlines"),
        ("rate", 0.0),
        ("rate", float("nan")),
        ("seconds", -1.0),
        ("clients", 0),
        ("connections", 0),
        ("seed", -1),
    ],
)
def test_bad_parameters_are_named(argument: str, value: object) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Traffic(**{"url": "http://127.0.0.1", "key": "k", "recommender": "r", argument: value})
    assert caught.value.argument == argument


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "[::1]"])
def test_this_machine_has_several_names(host: str) -> None:
    Traffic(url=f"http://{host}:8000", key="k", recommender="r")


def test_another_machine_must_be_asked_for() -> None:
    Traffic(url="https://192.0.2.7", key="k", recommender="r", allow_remote=True)


def test_people_with_named_fields_are_described_by_name(demo: Demo) -> None:  # noqa: F811
    fields = {
        "age": {"type": "number", "range": [0, 120]},
        "country": {"type": "category", "values": ["CH", "DE"]},
    }
    demo.call("PUT", "/recommenders/named", {**document("a", "b"), "context": {"fields": fields}})
    results = send_until(traffic_to(demo, "named"), 30)
    assert not results.errors
    assert results.feedback == results.total.answers >= 30


def test_a_family_without_contexts_cannot_be_sent_synthetic_users(demo: Demo) -> None:  # noqa: F811
    demo.call("PUT", "/recommenders/profiles", {"algorithm": "collaborative", "items": ["a"]})
    with pytest.raises(InvalidArgument, match="no context"):
        send_until(traffic_to(demo, "profiles"), 1)
