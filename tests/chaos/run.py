"""Callers and a nemesis over a real server and a real store, and then the verdict.

python -m tests.chaos.run --seconds 600 --seed 7 --report chaos-report
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.callers import Callers
from tests.chaos.checker import violations
from tests.chaos.history import History
from tests.chaos.nemesis import FAULTS, Nemesis
from tests.chaos.proxy import CuttableProxy
from tests.chaos.report import write_report
from tests.end_to_end.servers import Server, private, serving
from tests.state.servers import valkey
from tests.waiting import wait_for

ITEMS = frozenset("abcd")
PRICE, BUDGET = 1.0, 40.0


@dataclass
class Verdict:
    """What a run came to."""

    history: History
    violations: list[str]

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
        )


def run(
    folder: Path,
    *,
    seed: int,
    seconds: float,
    faults: Sequence[str] = FAULTS,
    threads: int = 6,
    planted: bool = False,
) -> Verdict:
    """Run for so long, strike with each of the faults at least once, and judge.

    `planted` is a fault that has to be found: the server is told to tolerate any loss, and the
    store is left with an old copy.
    """
    rng, history = random.Random(seed), History()
    settings = {"DISCREET_STORE_TIMEOUT_SECONDS": "2"}
    if planted:
        settings["DISCREET_STORE_LOST_WRITES"] = "1000000"
    with valkey(folder / "valkey", appendonly="yes", appendfsync="always") as store:
        proxy = CuttableProxy(store.port)
        url = f"redis://127.0.0.1:{proxy.port}"
        try:
            with serving(folder / "data", "--store", url, **settings) as server:
                server.put("films", privacy=private(PRICE, BUDGET, 0.0), items=sorted(ITEMS))
                nemesis = Nemesis(server, store, proxy, history, folder)
                callers = Callers(server.url, server.key, history, seed=seed, threads=threads)
                callers.start()
                try:
                    _strike(nemesis, rng, history, seconds, faults, planted)
                finally:
                    callers.stop()
                server.wait_until_ready()
                return Verdict(history, _judge(server, history))
        finally:
            proxy.close()


def _strike(
    nemesis: Nemesis,
    rng: random.Random,
    history: History,
    seconds: float,
    faults: Sequence[str],
    planted: bool,
) -> None:
    _progress(history)
    old = nemesis.copy() if planted else None
    until = time.monotonic() + seconds
    waiting = list(faults)
    rng.shuffle(waiting)
    while waiting or time.monotonic() < until:
        nemesis.strike(waiting.pop() if waiting else rng.choice(faults), rng)
        _progress(history)
    if old is not None:
        nemesis.put_back(old)
        _progress(history)


def _progress(history: History) -> None:
    """Return once callers have been answered again: what breaks for good would prove nothing."""
    seen = len(history.operations)

    def answered() -> bool:
        return sum(one.status == 200 for one in history.operations[seen:]) >= 20

    wait_for("answers", answered, pause=0.1)


def _judge(server: Server, history: History) -> list[str]:
    clients = {one.client for one in history}
    spent = {client: server.budget("films", client) for client in clients}
    found = violations(history, spent=spent, price=PRICE, budget=BUDGET, items=ITEMS)
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
    chosen = parser.parse_args(arguments)
    print(f"seed {chosen.seed}, {chosen.seconds:g} s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        verdict = run(Path(folder), seed=chosen.seed, seconds=chosen.seconds)
    write_report(verdict.history, verdict.violations, chosen.report, seed=chosen.seed)
    print(verdict.summary())
    for one in verdict.violations:
        print(f"  {one}")
    print(f"see {chosen.report}")
    return 1 if verdict.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
