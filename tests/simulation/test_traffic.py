"""Made-up people against a real server: what they report is what the server counted."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from service.errors import InvalidArgument
from service.simulation import traffic as module
from service.simulation.tally import Tally
from service.simulation.traffic import Traffic, drive
from tests.demo_server import Demo, demo, demo_server, free_port  # noqa: F401 - a fixture


def document(*items: str, budget: float = 100.0) -> dict[str, Any]:
    return {
        "algorithm": "p-dap",
        "items": list(items),
        "context": {"dimensions": 3},
        "privacy": {"epsilon": 1.0, "budget": {"epsilon": budget}},
    }


def traffic_to(demo: Demo, recommender: str, **changes: Any) -> Traffic:  # noqa: F811
    base = Traffic(url=demo.url, key=demo.key, recommender=recommender, rate=100, seconds=1.5)
    return replace(base, **{"clients": 20, "seed": 5, **changes})


def test_what_is_reported_is_what_the_server_counted(demo: Demo) -> None:  # noqa: F811
    demo.call("PUT", "/recommenders/counted", document("a", "b", "c", budget=3.0))
    tally = asyncio.run(drive(traffic_to(demo, "counted")))
    counted = demo.samples("counted")
    assert not tally.faults
    assert tally.gone is None
    assert tally.total.answers == 150
    assert tally.feedback == 150
    assert counted["discreet_recommendations_total", "degraded"] == tally.total.degraded > 0
    personal = counted["discreet_recommendations_total", "personalised"]
    assert personal + tally.total.degraded == 150
    assert counted["discreet_feedback_total", "counted"] == 150
    assert counted["discreet_reward_total", ""] == tally.total.reward > 0
    assert counted["discreet_epsilon_spent_total", ""] == pytest.approx(personal * 1.0)
    # Three answers each for twenty clients, and not one more.
    assert personal <= 60


def test_the_same_people_come_back_to_their_old_budgets(demo: Demo) -> None:  # noqa: F811
    demo.call("PUT", "/recommenders/returning", document("a", "b", budget=1.0))
    plan = traffic_to(demo, "returning", clients=5, seconds=1.0)
    first = asyncio.run(drive(plan))
    again = asyncio.run(drive(plan))
    others = asyncio.run(drive(replace(plan, name="somebody-else")))
    assert first.total.answers - first.total.degraded == 5
    assert again.total.degraded == again.total.answers
    assert others.total.answers - others.total.degraded == 5


def test_regret_is_the_truth_of_the_world_not_of_the_learner(demo: Demo) -> None:  # noqa: F811
    demo.call("PUT", "/recommenders/single", document("only"))
    tally = asyncio.run(drive(traffic_to(demo, "single", seconds=0.5)))
    assert tally.total.answers == 50
    assert tally.total.regret == 0.0


def test_items_that_appear_meanwhile_are_known(demo: Demo) -> None:  # noqa: F811
    demo.call("PUT", "/recommenders/growing", document("old"))
    changed = threading.Timer(
        0.5, lambda: demo.call("PUT", "/recommenders/growing", document("new"))
    )
    changed.start()
    tally = asyncio.run(drive(traffic_to(demo, "growing", seconds=3.0)))
    changed.join()
    # An answer for the removed item may be under way when it goes: its feedback is then refused.
    assert sum(tally.faults.values()) <= 3
    assert tally.total.answers >= 290
    assert tally.total.regret == 0.0


def test_stop_lets_requests_under_way_finish(demo: Demo) -> None:  # noqa: F811
    demo.call("PUT", "/recommenders/stopped", document("a", "b"))

    async def stop_soon() -> Tally:
        stop = asyncio.Event()

        def watch(tally: Tally) -> None:
            if tally.total.answers >= 20:
                stop.set()

        return await drive(traffic_to(demo, "stopped", seconds=600), stop=stop, watch=watch)

    tally = asyncio.run(asyncio.wait_for(stop_soon(), 60))
    assert tally.interrupted
    assert 20 <= tally.total.answers < 200
    assert tally.feedback == tally.total.answers


def test_a_server_that_goes_away_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.5)
    with demo_server(tmp_path, "--workers", "1") as short_lived:
        plan = traffic_to(short_lived, "films", seconds=600)

        def watch(tally: Tally) -> None:
            if tally.total.answers == 30:
                short_lived.process.terminate()

        tally = asyncio.run(asyncio.wait_for(drive(plan, watch=watch), 90))
    assert tally.gone is not None
    assert "nothing has succeeded" in tally.gone
    assert tally.total.answers >= 30


# When it cannot even begin.


def refused(plan: Traffic) -> InvalidArgument:
    with pytest.raises(InvalidArgument) as caught:
        asyncio.run(drive(plan))
    return caught.value


def test_nobody_there() -> None:
    plan = Traffic(url=f"http://127.0.0.1:{free_port()}", key="k", recommender="films")
    error = refused(plan)
    assert error.argument == "url"
    assert "make run" in error.reason


def test_a_wrong_key(demo: Demo) -> None:  # noqa: F811
    error = refused(traffic_to(demo, "films", key="wrong"))
    assert error.argument == "key"
    assert "does not know this key" in error.reason
    assert "wrong" not in error.reason


def test_an_unknown_recommender_is_told_what_there_is(demo: Demo) -> None:  # noqa: F811
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
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_another_kind_of_server(something_else: str) -> None:
    error = refused(Traffic(url=something_else, key="k", recommender="films"))
    assert error.argument == "url"
    assert "not as Discreet would" in error.reason


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
