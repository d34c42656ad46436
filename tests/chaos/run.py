"""Callers and a nemesis over a real server and a real store, and then the verdict.

python -m tests.chaos.run --seconds 600 --seed 7 --report chaos-report
python -m tests.chaos.run --seconds 600 --cluster
"""

import argparse
import hashlib
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis import RedisError
from redis.cluster import ClusterNode, RedisCluster

from discreet.families.registration import read_stored
from discreet.state.keys import StoreKeys
from tests.chaos.callers import Callers
from tests.chaos.checker import violations
from tests.chaos.history import History
from tests.chaos.nemesis import ClusterNemesis, Nemesis, StoreNemesis
from tests.chaos.planted import planted_service
from tests.chaos.proxy import CuttableProxy
from tests.chaos.report import write_report
from tests.chaos.skew import SkewedClocks
from tests.end_to_end.servers import MAIN, Server, model_key, private, serving
from tests.state.servers import cluster, valkey
from tests.waiting import wait_for

ITEMS = frozenset("abcd")
PRICE, BUDGET = 1.0, 40.0
SHORT_BUDGET = 4.0
"""For the copy with faults: a short run has to exceed it."""


@dataclass
class Verdict:
    """What a run came to."""

    history: History
    violations: list[str]
    fenced: bool = False
    """Whether it ended because the store had lost something, which was noticed."""

    @property
    def answered(self) -> int:
        """Return how many calls were acknowledged with 200."""
        return sum(one.status == 200 for one in self.history)

    def summary(self) -> str:
        """Return it in a line."""
        faults = len(self.history.faults)
        return (
            f"{len(self.history.operations)} operations ({self.answered} answered), "
            f"{faults} faults, {len(self.violations)} violations"
            f"{', fenced' * self.fenced}"
        )


@dataclass
class Stage:
    """A server with its callers and its nemesis."""

    server: Server
    history: History
    nemesis: Nemesis
    fence_ends: bool
    """Whether a refused store ends the run: what a failover lost is for the operator to judge."""

    def fenced(self) -> bool:
        """Tell whether the store was refused for good."""
        return self.fence_ends and "discreet store accept" in self.server.output

    def progress(self) -> None:
        """Return once callers are answered again: what breaks for good would prove nothing."""
        seen = len(self.history.operations)

        def answered() -> bool:
            later = self.history.operations[seen:]
            return sum(one.status == 200 for one in later) >= 20 or self.fenced()

        wait_for("answers", answered, pause=0.1)

    def looks(self) -> int:
        """Return how often a worker's release and the store's were compared."""
        return sum(one.stored is not None for one in self.history.operations)

    def strike(self, rng: random.Random, seconds: float, faults: Sequence[str], looks: int) -> None:
        """Strike with each of the faults, and then for so long and until there were so many looks.

        How much is seen in a second depends on the machine.
        """
        self.progress()
        until = time.monotonic() + seconds
        waiting = list(faults)
        rng.shuffle(waiting)
        while (waiting or time.monotonic() < until or self.looks() < looks) and not self.fenced():
            self.nemesis.strike(waiting.pop() if waiting else rng.choice(faults), rng)
            self.progress()


def run(
    folder: Path,
    *,
    seed: int,
    seconds: float,
    faults: Sequence[str] | None = None,
    threads: int = 6,
    planted: bool = False,
) -> Verdict:
    """Run for so long, strike with each of the faults at least once, and judge.

    With `planted`, the service is a copy with faults that have to be found, and after the verdict
    its store is put back, which it is told to tolerate, and judged again.
    """
    settings = {}
    if planted:
        settings["DISCREET_STORE_LOST_WRITES"] = "1000000"
        settings["PYTHONPATH"] = str(planted_service(folder))
    with valkey(folder / "valkey", appendonly="yes", appendfsync="always") as store:
        proxy = CuttableProxy(store.port)
        try:
            url, budget = f"redis://127.0.0.1:{proxy.port}", SHORT_BUDGET if planted else BUDGET
            with _served(folder, url, settings, budget) as (server, clocks):
                history = History()
                nemesis = StoreNemesis(server, clocks, history, store, proxy, folder)
                stage = Stage(server, history, nemesis, fence_ends=False)
                with store.client as direct, _calling(stage, direct, seed, threads):
                    old = nemesis.copy() if planted else None
                    strikes = faults or [*nemesis.deeds]
                    stage.strike(random.Random(seed), seconds, strikes, 60 if planted else 1)
                server.wait_until_ready()
                found = _judge(server, history, budget)
                if old is not None:
                    nemesis.put_back(old)
                    server.wait_until_ready()
                    found += _judge(server, history, budget)
                return Verdict(history, found)
        finally:
            proxy.close()


def run_on_cluster(folder: Path, *, seed: int, seconds: float, threads: int = 6) -> Verdict:
    """Run on six nodes whose masters are killed and frozen.

    A replica that takes over may lack what was acknowledged last. Then the service refuses it, and
    the run ends with that: `fenced`.
    """
    with (
        cluster(folder / "cluster", node_timeout=2_000) as six,
        _served(folder, six.url, {}) as (server, clocks),
    ):
        history = History()
        nemesis = ClusterNemesis(server, clocks, history, six)
        stage = Stage(server, history, nemesis, fence_ends=True)
        nodes = [ClusterNode("127.0.0.1", one.port) for one in six.servers]
        with RedisCluster(startup_nodes=nodes) as direct, _calling(stage, direct, seed, threads):
            stage.strike(random.Random(seed), seconds, [*nemesis.deeds], 1)
        if stage.fenced():
            return Verdict(history, [], fenced=True)
        server.wait_until_ready()
        return Verdict(history, _judge(server, history))


@contextmanager
def _served(
    folder: Path, url: str, settings: Mapping[str, str], budget: float = BUDGET
) -> Iterator[tuple[Server, SkewedClocks]]:
    """Start a server whose workers' clocks can be set, and make the recommender."""
    clocks = SkewedClocks(folder)
    program = (sys.executable, "-P", "-c", MAIN)
    given = {"DISCREET_STORE_TIMEOUT_SECONDS": "2", **clocks.variables, **settings}
    with serving(folder / "data", "--store", url, program=program, **given) as server:
        server.put(
            "films",
            privacy=private(PRICE, budget, 0.0),
            items=sorted(ITEMS),
            releases={"seconds": 0.5, "growth": 0},
        )
        yield server, clocks


@contextmanager
def _calling(stage: Stage, direct: Any, seed: int, threads: int) -> Iterator[None]:
    keys = StoreKeys()
    stored = read_stored(direct.hget(keys.documents, "recommender/films"))
    model = keys.blob(model_key(stored.generation))

    def last_release() -> tuple[int, str] | None:
        try:
            found = direct.get(model)
        except (RedisError, OSError):
            return None
        if found is None:
            return 0, ""
        return int.from_bytes(found[:8], "big"), hashlib.sha256(found).hexdigest()[:16]

    server = stage.server
    callers = Callers(
        server.url, server.key, stage.history, seed=seed, threads=threads, stored=last_release
    )
    callers.start()
    try:
        yield
    finally:
        callers.stop()


def _judge(server: Server, history: History, budget: float = BUDGET) -> list[str]:
    clients = {one.client for one in history if one.client}
    spent = {client: server.budget("films", client) for client in clients}
    found = violations(
        history, spent=spent, price=PRICE, budget=budget, items=ITEMS, faults=history.faults
    )
    counted = {
        one.recommendation_id
        for one in history
        if one.kind == "feedback" and one.status == 200 and one.duplicate is False
    }
    for token in counted:
        receipt = server.client.post("/feedback", json={"recommendation_id": token, "reward": 1.0})
        if receipt.status_code != 200 or not receipt.json()["duplicate"]:
            found.append("feedback that was acknowledged as counted is not known any more")
    return found


def main(arguments: Sequence[str]) -> int:
    """Run by hand; 1 if any promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.run")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--report", type=Path, default=Path("chaos-report"))
    parser.add_argument("--cluster", action="store_true", help="on six nodes; masters are killed")
    chosen = parser.parse_args(arguments)
    print(f"seed {chosen.seed}, {chosen.seconds:g} s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        judge = run_on_cluster if chosen.cluster else run
        verdict = judge(Path(folder), seed=chosen.seed, seconds=chosen.seconds)
    write_report(verdict.history, verdict.violations, chosen.report, seed=chosen.seed)
    print(verdict.summary())
    for one in verdict.violations:
        print(f"  {one}")
    print(f"see {chosen.report}")
    return 1 if verdict.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
