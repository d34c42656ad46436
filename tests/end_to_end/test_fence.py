"""A store that went back in time or empty: the running service stops answering, and says why."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.servers import DISCREET, Server, command, environment, private, serving
from tests.state.servers import Server as Valkey
from tests.state.servers import valkey
from tests.waiting import PATIENCE, wait_for

BUDGET = 30


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Valkey]:
    with valkey(tmp_path / "valkey", appendonly="yes", appendfsync="always") as running:
        yield running


@pytest.fixture
def server(store: Valkey, tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "data", "--store", store.url) as running:
        running.put("films", privacy=private(1.0, BUDGET, 0.0))
        yield running


def ask(
    server: Server, client: str = "ada", headers: dict[str, str] | None = None
) -> httpx.Response:
    body = {"recommender": "films", "client": client, "context": [0.2, 0.8]}
    return server.client.post("/recommend", json=body, headers=headers)


def personalised(server: Server, count: int) -> int:
    """Ask so often; return how many answers were personalised. A refusal is none."""
    answers = [ask(server) for _ in range(count)]
    return sum(each.status_code == 200 and each.json()["personalised"] for each in answers)


def said(server: Server, words: str) -> None:
    """Wait until the log holds these words."""
    wait_for(words, lambda: words in server.output)


def ready(server: Server, status: int) -> None:
    """Wait until readiness is this status."""
    wait_for(
        f"readiness {status}", lambda: server.client.get("/health/ready").status_code == status
    )


def kill_worker(server: Server) -> None:
    """Kill one worker with -9, and return once another has taken its place."""
    before = set(server.workers)
    os.kill(min(before), signal.SIGKILL)
    wait_for("another worker", lambda: len(set(server.workers) - before) == 1)


def fenced(server: Server) -> None:
    """See that every worker refuses, with the cause in the log and without one in the answer."""
    before = len(server.lines)

    def all_were_asked() -> bool:
        for _ in range(20):
            # Over a connection of its own: whichever worker takes it.
            answer = ask(server, "bob", {"Connection": "close"})
            assert answer.status_code == 503, answer.text
            assert int(answer.headers["retry-after"]) >= 1
        asked = [line for line in server.lines[before:] if line.get("route") == "/recommend"]
        return {line["pid"] for line in asked} >= set(server.workers)

    wait_for("every worker to be asked", all_were_asked)
    problem = ask(server).json()
    assert problem["type"] == "urn:discreet:problem:store-fenced"
    assert "until the operator has decided" in problem["detail"]
    assert server.client.get("/health/ready").status_code == 503
    assert server.client.get("/health/live").status_code == 200
    said(server, "discreet store accept")


def begin(*options: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Start a server that has to refuse."""
    return subprocess.run(
        [DISCREET, "serve", "--port", "0", *options],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_an_old_copy_answers_nobody_until_the_operator_accepts_it(
    server: Server, store: Valkey, tmp_path: Path
) -> None:
    assert personalised(server, 10) == 10
    files, copy = store.folder / "appendonlydir", tmp_path / "copy"
    shutil.copytree(files, copy)
    assert personalised(server, 2 * BUDGET) == BUDGET - 10
    store.kill()
    shutil.rmtree(files)
    shutil.copytree(copy, files)
    store.start()
    said(server, "went back in time")
    assert personalised(server, 40) == 0
    fenced(server)
    kill_worker(server)
    fenced(server)
    # So does a server that begins now, and what looks at the store from outside.
    where = ("--store", store.url, "--data", str(server.data))
    ended = begin(*where)
    assert ended.returncode == 2
    assert "went back in time" in ended.stderr.splitlines()[-1]
    assert command("store", "status", *where).returncode == 1
    refused = command("store", "accept", *where)
    assert refused.returncode == 2
    assert "exceeded" in refused.stderr
    fenced_off = set(server.workers)
    accepted = command("store", "accept", "--yes", *where)
    assert accepted.returncode == 0, accepted.stderr
    wait_for(
        "workers that began anew",
        lambda: len(now := set(server.workers)) == len(fenced_off) and not now & fenced_off,
    )
    server.wait_until_ready()
    # Now the old ledger counts: that is what was accepted.
    assert personalised(server, 2 * BUDGET) == BUDGET - 10


def test_a_flush_and_a_new_worker_give_nobody_a_new_budget(server: Server, store: Valkey) -> None:
    assert personalised(server, 2 * BUDGET) == BUDGET
    store.do("FLUSHALL")
    assert personalised(server, 10) == 0
    document = {"algorithm": "p-dap", "items": ["a"], "context": {"dimensions": 2}}
    answer = server.client.put("/recommenders/films", json=document)
    assert answer.status_code == 503, answer.text
    kill_worker(server)
    assert personalised(server, 40) == 0
    fenced(server)
    assert store.do("DBSIZE") == 0, "nothing was made in its place: no pepper, no schema"
    assert "emptied" in server.output


def test_a_server_does_not_begin_on_an_emptied_store(store: Valkey, tmp_path: Path) -> None:
    known = tmp_path / "known"
    with serving(known, "--store", store.url) as server:
        server.put("films")
        assert ask(server).status_code == 200
    store.do("FLUSHALL")
    new = tmp_path / "new"
    new.mkdir()
    for data, init, words in (
        (known, [], "it was emptied or replaced"),
        (known, ["--init"], "it was emptied or replaced"),
        (known, ["--demo"], "it was emptied or replaced"),
        (new, [], "begin it with --init or `discreet store init`"),
    ):
        where = ("--store", store.url, "--data", str(data))
        ended = begin(*where, *init, DISCREET_API_KEY="a-key-of-some-length")
        assert ended.returncode == 2, ended.stderr
        assert words in ended.stderr.splitlines()[-1]
        assert "Traceback" not in ended.stderr
    assert store.do("DBSIZE") == 0


def test_an_embedded_store_that_was_removed_is_missed(tmp_path: Path) -> None:
    with serving(tmp_path, DISCREET_INIT="") as server:  # a new data directory needs no --init
        server.put("films")
        assert ask(server).status_code == 200
    shutil.rmtree(tmp_path / "valkey" / "appendonlydir")
    ended = begin("--data", str(tmp_path))
    assert ended.returncode == 2
    assert "it was emptied or replaced" in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("setting", "bad", "good", "cause"),
    [
        ("maxmemory", "1", "0", "reached its maxmemory"),
        ("maxmemory-policy", "allkeys-lru", "noeviction", "may evict ledgers"),
    ],
)
def test_a_store_that_can_no_longer_be_trusted_is_noticed(
    server: Server, store: Valkey, setting: str, bad: str, good: str, cause: str
) -> None:
    assert server.client.get("/health/ready").status_code == 200
    store.do("CONFIG", "SET", setting, bad)
    ready(server, 503)
    said(server, cause)
    store.do("CONFIG", "SET", setting, good)
    ready(server, 200)
    assert ask(server).status_code == 200


def test_an_append_only_file_cut_short_by_a_debit_is_noticed(server: Server, store: Valkey) -> None:
    assert personalised(server, 5) == 5
    (file,) = (store.folder / "appendonlydir").glob("*.incr.aof")
    length = file.stat().st_size
    assert personalised(server, 1) == 1
    store.kill()
    with file.open("r+b") as cut:
        cut.truncate(length)
    store.start()
    said(server, "went back in time")
    fenced(server)
