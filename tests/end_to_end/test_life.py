"""Starting, stopping, crashing and coming back."""

import asyncio
import itertools
import os
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from discreet.families.contract import REWARD_STEPS
from discreet.families.registration import read_stored
from discreet.state.redis_store import open_store
from tests.end_to_end.servers import (
    CALL_SECONDS,
    DISCREET,
    KEY,
    Server,
    children,
    command,
    command_of,
    document,
    environment,
    private,
    serving,
)
from tests.ports import free_port
from tests.state.servers import Server as StoreServer
from tests.state.servers import cluster, valkey
from tests.waiting import PATIENCE, wait_for

QUESTION = {"recommender": "films", "client": "x", "context": [0.3, 0.6]}


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [DISCREET, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment(**variables),
    )


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_restart_keeps_ledgers_answers_and_what_was_learned(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.put("films")
        asked = {**QUESTION, "event_id": "before"}
        first = server.client.post("/recommend", json=asked)
        feedback = {"event_id": "before", "reward": 1}
        assert server.client.post("/feedback", json=feedback).json()["duplicate"] is False
        store = server.valkey
        assert server.stop() == 0
        assert not alive(store)
    with serving(tmp_path) as server:
        assert server.client.post("/recommend", json=asked).content == first.content
        assert server.client.post("/feedback", json=feedback).json()["duplicate"] is True
        assert server.budget("films", "x") == 1.0
        shown = server.client.get("/recommenders/films").json()
        assert [item["id"] for item in shown["items"]] == document()["items"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_requests_in_flight_are_finished_before_stopping(
    tmp_path: Path, number: signal.Signals
) -> None:
    patient = {"DISCREET_STORE_TIMEOUT_SECONDS": "60", "DISCREET_STOP_SECONDS": "300"}
    with serving(tmp_path, **patient) as server:
        server.put("films")
        store = server.valkey
        os.kill(store, signal.SIGSTOP)  # so that the requests are in flight for as long as we like
        with ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(server.client.post, "/recommend", json=QUESTION) for _ in range(4)]
            wait_for("four requests in flight", lambda: _in_flight(server) == 4)
            if number is signal.SIGINT:
                os.killpg(server.process.pid, number)  # as a terminal does
            else:
                server.process.send_signal(number)
            wait_for("nobody to listen", lambda: not _listens(server))
            os.kill(store, signal.SIGCONT)
            assert [call.result().status_code for call in calls] == [200] * 4
        assert server.process.wait(PATIENCE) == 0


def _listens(server: Server) -> bool:
    try:
        httpx.get(f"{server.url}/health/live", timeout=CALL_SECONDS)
    except httpx.TransportError:
        return False
    return True


def _in_flight(server: Server) -> float:
    text = server.client.get("/metrics").text
    line = next(one for one in text.splitlines() if one.startswith("discreet_requests_in_flight"))
    return float(line.split()[1]) - 1  # the scrape itself


def test_kill_nine_of_the_master_leaves_nobody_behind(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        family = [*server.workers, server.valkey]
        assert len(family) == 3
        server.process.kill()
        wait_for("all to be gone", lambda: not any(alive(pid) for pid in family))


def test_a_killed_worker_is_replaced(server: Server) -> None:
    before = server.workers
    os.kill(before[0], signal.SIGKILL)
    wait_for(
        "another worker",
        lambda: len(server.workers) == 2 and before[0] not in server.workers,
    )
    server.wait_until_ready()


def test_a_hang_up_replaces_the_workers_without_losing_a_request(server: Server) -> None:
    server.put("films")
    before = set(server.workers)
    server.process.send_signal(signal.SIGHUP)
    statuses = set()
    asked = itertools.count()

    def replaced() -> bool:
        question = {**QUESTION, "event_id": f"during the hang-up {next(asked)}"}
        try:
            answer = server.client.post("/recommend", json=question)
        except (httpx.ReadError, httpx.RemoteProtocolError):
            # An idle connection may be closed at the very moment when it is used again, as with
            # any server. Whoever asks under an event id may ask again.
            answer = server.client.post("/recommend", json=question)
        statuses.add(answer.status_code)
        now = set(server.workers)
        return len(now) == 2 and not now & before

    wait_for("other workers", replaced)
    assert statuses == {200}


def test_a_killed_keeper_is_replaced_and_nothing_is_lost(server: Server) -> None:
    server.put("films")
    question = {**QUESTION, "client": "of the keeper"}
    assert server.client.post("/recommend", json=question).status_code == 200
    keeper, store = server.keeper, server.valkey
    os.kill(keeper, signal.SIGKILL)
    wait_for("the store to be gone", lambda: not alive(store))
    server.wait_until_ready()
    assert server.keeper != keeper
    assert server.budget("films", "of the keeper") == 1.0
    assert server.stop() == 0


class Load:
    """Clients that keep asking and clicking, and remember what was acknowledged."""

    def __init__(self, server: Server, clients: int) -> None:
        self._server = server
        self._clients = [f"client-{number}" for number in range(clients)]
        self.stop = asyncio.Event()
        self.answered: dict[str, int] = dict.fromkeys(self._clients, 0)
        self.attempted: dict[str, int] = dict.fromkeys(self._clients, 0)
        self.statuses: dict[int, int] = {}
        self.counted = 0
        self.unsure: list[dict[str, Any]] = []

    async def run(self) -> None:
        await asyncio.gather(*(self._one(client) for client in self._clients))

    async def progress(self, by: int) -> None:
        """Return once every client has had so many more answers."""
        goal = {name: count + by for name, count in self.answered.items()}
        async with asyncio.timeout(PATIENCE):
            while any(self.answered[name] < wanted for name, wanted in goal.items()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def _one(self, name: str) -> None:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with httpx.AsyncClient(
            base_url=self._server.url, headers=headers, timeout=CALL_SECONDS
        ) as client:
            while not self.stop.is_set():
                body = {"recommender": "films", "client": name, "context": [0.2, 0.4]}
                self.attempted[name] += 1
                answer = await client.post("/recommend", json=body)
                self._count(answer)
                if answer.status_code != 200:
                    assert "items" not in answer.json(), "nothing is released without being paid"
                    await asyncio.sleep(0.02)
                    continue
                assert answer.json()["personalised"]
                self.answered[name] += 1
                feedback = {"recommendation_id": answer.json()["recommendation_id"], "reward": 1}
                receipt = await client.post("/feedback", json=feedback)
                self._count(receipt)
                if receipt.status_code == 200:
                    self.counted += not receipt.json()["duplicate"]
                else:
                    self.unsure.append(feedback)

    def _count(self, answer: httpx.Response) -> None:
        self.statuses[answer.status_code] = self.statuses.get(answer.status_code, 0) + 1
        if answer.status_code == 503:
            assert int(answer.headers["retry-after"]) >= 1


def test_kill_nine_of_the_store_under_load_loses_nothing_and_counts_nothing_twice(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, DISCREET_STORE_TIMEOUT_SECONDS="5") as server:
        # Without a release, everything that was learned is still in the sums.
        server.put(
            "films", privacy=private(budget=1e6, feedback="exact"), releases={"seconds": 86_400}
        )
        load = Load(server, clients=8)

        async def hurt() -> None:
            running = asyncio.create_task(load.run())
            for _ in range(3):
                await load.progress(by=5)
                store = server.valkey
                os.kill(store, signal.SIGKILL)
                await asyncio.to_thread(replaced, server, store)
            await load.progress(by=5)
            load.stop.set()
            await running

        asyncio.run(hurt())
        assert set(load.statuses) <= {200, 503}
        for client, answered in load.answered.items():
            spent = server.budget("films", client)
            # Every answer was paid for. What was paid without an answer is a lost reply, and there
            # are never more of those than attempts that failed.
            assert answered <= spent <= load.attempted[client]
        for feedback in load.unsure:
            receipt = server.client.post("/feedback", json=feedback)
            assert receipt.status_code == 200, receipt.text
        again = [server.client.post("/feedback", json=one).json() for one in load.unsure]
        assert all(receipt["duplicate"] for receipt in again)
        # Every answer has feedback by now, so that the sums hold one reward of 1 for each.
        assert asyncio.run(_rewards(server)) == sum(load.answered.values())


def replaced(server: Server, store: int) -> None:
    """Return once another store has taken the place of one that was killed."""
    wait_for("another store", lambda: children(server.keeper) not in ([], [store]))
    server.wait_until_ready()


async def _rewards(server: Server) -> float:
    """Return the sum of all rewards that the store holds, as a release would read it."""
    store = open_store(f"unix://{server.data / 'valkey' / 'valkey.sock'}", timeout=60)
    await store.open()
    try:
        documents = (await store.registry()).documents
        generation = read_stored(documents["recommender/films"]).generation
        await store.freeze(generation=generation, number=1)
        blocks = await store.frozen(generation=generation, number=1)
        return sum(int(block.sum()) for block in blocks.values()) / REWARD_STEPS
    finally:
        await store.close()


def test_a_store_that_does_not_answer_means_503_and_no_release(tmp_path: Path) -> None:
    with serving(tmp_path, DISCREET_STORE_TIMEOUT_SECONDS="1") as server:
        server.put("films")
        asked = {**QUESTION, "client": "waiting"}
        attempts = 0

        def answered() -> bool:
            nonlocal attempts
            attempts += 1
            return server.client.post("/recommend", json=asked).status_code == 200

        wait_for("an answer", answered)
        store = server.valkey
        os.kill(store, signal.SIGSTOP)
        try:
            for path, body in (
                ("/recommend", asked),
                ("/recommend", {**asked, "event_id": "stopped"}),
                ("/feedback", {"event_id": "none", "reward": 1}),
            ):
                answer = server.client.post(path, json=body)
                assert answer.status_code == 503
                assert int(answer.headers["retry-after"]) >= 1
                assert "items" not in answer.json()
            assert server.client.get("/health/ready").status_code == 503
            assert server.client.get("/health/live").status_code == 200
            wait_for(
                "the store to be missed",
                lambda: "discreet_store_up 0" in server.client.get("/metrics").text,
            )
        finally:
            os.kill(store, signal.SIGCONT)
        server.wait_until_ready()
        wait_for("an answer", answered)
        # Two answers, and perhaps debits whose fate was unknown to whoever asked.
        assert 2.0 <= server.budget("films", "waiting") <= attempts + 2


def test_a_store_that_comes_later_can_be_waited_for(tmp_path: Path) -> None:
    late = StoreServer(tmp_path / "store", free_port())
    tried = socket.create_server(("127.0.0.1", late.port))
    tried.settimeout(PATIENCE)

    def start_late() -> None:
        """Start the store once somebody has looked for it in vain."""
        with tried:
            tried.accept()[0].close()
        late.start()

    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(start_late)
        try:
            with serving(tmp_path, "--store", late.url, "--wait-store", "60") as server:
                server.put("films")
                assert server.client.post("/recommend", json=QUESTION).status_code == 200
        finally:
            starting.result()
            late.kill()


@pytest.mark.parametrize("kind", [valkey, cluster])
def test_a_store_by_url_is_used_and_left_running(tmp_path: Path, kind: Any) -> None:
    with kind(tmp_path / "store") as store, serving(tmp_path, "--store", store.url) as server:
        server.put("films")
        for number in range(20):
            asked = {**QUESTION, "client": f"client-{number}", "event_id": f"event-{number}"}
            assert server.client.post("/recommend", json=asked).status_code == 200
            feedback = {"event_id": f"event-{number}", "reward": 1}
            assert server.client.post("/feedback", json=feedback).json()["duplicate"] is False
            assert server.budget("films", f"client-{number}") == 1.0
        assert not (tmp_path / "valkey").exists()
        assert server.stop() == 0
        assert command("keys", "list", "--store", store.url).returncode == 0


def test_recommenders_of_the_file_are_put_before_the_first_request(tmp_path: Path) -> None:
    config = tmp_path / "discreet.yaml"
    config.write_text(
        "server: {log_level: warning}\n"
        "recommenders:\n  films:\n    algorithm: p-dap\n    items: [a, b]\n"
        "    context: {dimensions: 2}\n"
    )
    with serving(tmp_path / "data", "--config", str(config)) as server:
        assert server.client.post("/recommend", json=QUESTION).json()["personalised"]
        # That a namespace is used for the first time is said aloud, at any level.
        others = [line for line in server.lines if "was empty" not in str(line)]
        assert others == [], "the level in the file is kept"
    config.write_text(config.read_text().replace("[a, b]", "[a, b, c]"))
    with serving(tmp_path / "data", "--config", str(config)) as server:
        assert len(server.client.get("/recommenders/films/items").json()["items"]) == 3
        assert server.budget("films", "x") == 0.25, "what the default answer costs"
    config.write_text(config.read_text().replace("dimensions: 2", "dimensions: 3"))
    refused = run(
        "serve", "--config", str(config), "--data", str(tmp_path / "data"),
        "--port", str(free_port()), DISCREET_API_KEY=KEY,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "recommenders.films.context.dimensions" in refused.stderr


def test_keys_are_made_used_and_revoked_while_the_server_runs(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        made = command(
            "keys", "create", "--label", "shop", "--scope", "admin", "--data", str(tmp_path)
        )
        assert made.returncode == 0, made.stderr
        headers = {"Authorization": f"Bearer {made.stdout.strip()}"}
        for _ in range(6):
            answer = httpx.get(f"{server.url}/recommenders", headers=headers, timeout=CALL_SECONDS)
            assert answer.status_code == 200
        listed = command("keys", "list", "--data", str(tmp_path)).stdout
        assert "shop" in listed
        assert made.stdout.strip() not in listed
        key_id = listed.split()[0]
        assert command("keys", "revoke", key_id, "--data", str(tmp_path)).returncode == 0
        for _ in range(6):
            answer = httpx.get(f"{server.url}/recommenders", headers=headers, timeout=CALL_SECONDS)
            assert answer.status_code == 401
    # The server has stopped; the command starts the store for itself.
    assert command("keys", "list", "--data", str(tmp_path)).stdout == ""


def test_nobody_is_left_behind_by_a_command(tmp_path: Path) -> None:
    run("keys", "list", "--data", str(tmp_path))
    running = [
        pid
        for pid in Path("/proc").iterdir()
        if pid.name.isdigit()
        and alive(int(pid.name))
        and str(tmp_path) in command_of(int(pid.name))
    ]
    assert running == []
