"""A collaborative recommender with two real workers: trained by one, answered by both."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.end_to_end.servers import Server, children, command_of, serving
from tests.end_to_end.test_workers import fresh, total
from tests.waiting import wait_for

pytestmark = pytest.mark.needs("procfs")

CRIME = [f"crime {number}" for number in range(6)]
SPACE = [f"space {number}" for number in range(6)]
BOOKS = {
    "algorithm": "collaborative",
    "items": [
        *({"id": id_, "categories": ["crime"]} for id_ in CRIME),
        *({"id": id_, "categories": ["space"]} for id_ in SPACE),
    ],
    "releases": {"seconds": 1.0, "growth": 0.0},
}


def send(server: Server, client: str, items: list[str]) -> None:
    body = {"client": client, "items": items}
    status, answer = fresh(server, "/recommenders/books/profiles", body)
    assert (status, answer) == (200, {"client": client, "items": len(items)})


def create(server: Server) -> None:
    answer = server.client.put("/recommenders/books", json=BOOKS)
    assert answer.status_code == 201, answer.text
    # More read crime, so that whoever is unknown is shown crime first.
    for reader in range(8):
        send(server, f"crime reader {reader}", CRIME[reader % 3 :])
    for reader in range(4):
        send(server, f"space reader {reader}", SPACE)
    send(server, "reader", SPACE[:2])


def ask(server: Server, client: str, limit: int = 4) -> Any:
    """Ask over a connection of its own, so that any worker may get it."""
    body = {"recommender": "books", "client": client, "limit": limit}
    status, answer = fresh(server, "/recommend", body)
    assert status == 200, answer
    return answer


def recommended(server: Server, client: str) -> list[str]:
    return [item["id"] for item in ask(server, client)["items"]]


def asked(server: Server) -> set[int]:
    """Return which workers have answered so far."""
    return {line["pid"] for line in server.lines if line.get("route") == "/recommend"}


def every_worker_knows(server: Server) -> bool:
    """Tell whether twelve answers in a row, by whichever worker, come from the trained model."""
    return all(set(recommended(server, "reader")) == set(SPACE[2:]) for _ in range(12))


def require_of_both(server: Server) -> None:
    """Ask until both workers have answered, each time from the trained model."""

    def both_were_asked() -> bool:
        assert every_worker_knows(server)
        return asked(server) >= set(server.workers)

    wait_for("both workers to be asked", both_were_asked)


def trained(server: Server, outcome: str) -> float:
    return total(server, "discreet_trainings_total", recommender="books", outcome=outcome)


def releases(server: Server) -> float:
    return total(server, "discreet_releases_total", recommender="books")


def trainings(server: Server) -> list[int]:
    """Return the training processes that run now."""
    found = []
    for worker in server.workers:
        for child in children(worker):
            try:
                if "collaborative.training" in command_of(child):
                    found.append(child)
            except FileNotFoundError:
                continue
    return found


def popular(answer: dict[str, Any]) -> dict[str, Any] | None:
    """Return the answer once it holds what most people have."""
    return answer if {item["id"] for item in answer["items"]} <= set(CRIME) else None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("library")) as running:
        create(running)
        yield running


def test_both_workers_answer_from_what_one_has_trained(server: Server) -> None:
    wait_for("every worker to know", lambda: every_worker_knows(server))
    # A training may have begun before the last profile came; then there is another one.
    stranger = wait_for("the popular books", lambda: popular(ask(server, "stranger")))
    assert stranger is not None
    assert stranger["personalised"] is False
    require_of_both(server)
    assert trained(server, "done") >= 1
    wait_for("13 profiles", lambda: total(server, "discreet_profiles", recommender="books") == 13)


def test_answers_go_on_while_a_training_stands_still_and_after_it_died(server: Server) -> None:
    wait_for("every worker to know", lambda: every_worker_knows(server))
    held: list[int] = []

    def caught() -> bool:
        """Hold a training process, so that it lasts as long as the test likes."""
        send(server, "restless", SPACE[: 1 + len(server.lines) % 5])
        for training in trainings(server):
            os.kill(training, signal.SIGSTOP)
            held.append(training)
        return bool(held)

    wait_for("a training to be caught", caught, pause=0.0)
    try:
        send(server, "newcomer", [*SPACE[:3], *SPACE[4:]])
        for _ in range(12):
            assert recommended(server, "newcomer")[0] == SPACE[3]
        require_of_both(server)
        assert trainings(server) == held
    finally:
        for training in held:
            os.kill(training, signal.SIGKILL)
    wait_for("a failed training", lambda: trained(server, "failed") == 1)
    done = trained(server, "done")
    wait_for("the next training", lambda: trained(server, "done") > done)
    assert every_worker_knows(server)


def test_after_a_restart_the_model_is_there_at_once(server: Server) -> None:
    wait_for("every worker to know", lambda: every_worker_knows(server))
    send(server, "the last one", SPACE)
    wait_for("16 profiles", lambda: total(server, "discreet_profiles", recommender="books") == 16)
    # A release after the one that saw it sees every change, so that none is left to be trained.
    before = releases(server)
    wait_for("two releases", lambda: every_worker_knows(server) and releases(server) >= before + 2)
    assert server.stop() == 0
    with serving(server.data) as restarted:
        require_of_both(restarted)
        assert trained(restarted, "done") == 0
        assert restarted.client.delete("/clients/reader").json()["records"] == 1
        assert ask(restarted, "reader")["personalised"] is False
