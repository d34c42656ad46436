"""A real server writes decisions down, and `discreet evaluate` reads what it wrote."""

import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.cli import main
from tests.end_to_end.servers import Server, document, serving
from tests.waiting import wait_for

VISITS = 600
EXACT = {"answers": {"epsilon": 1, "budget": {"epsilon": 100_000}}, "feedback": "exact"}
CONFIG: dict[str, Any] = document(
    algorithm="contextual", privacy=EXACT, exploration={"rate": 0.5}, releases={"seconds": 0.2}
)


def visit(server: Server) -> float:
    """Send visits of two kinds of people, each of whom likes one item; return their mean reward."""
    rng = np.random.default_rng(0)
    rewards = []
    for start in range(0, VISITS, 50):
        kinds = rng.integers(2, size=50)
        questions = [
            {"recommender": "films", "client": f"c{start + n}", "context": [float(kind), 0.5]}
            for n, kind in enumerate(kinds)
        ]
        answers = server.client.post("/recommend/batch", json={"requests": questions}).json()
        feedback = []
        for kind, answer in zip(kinds, answers["results"], strict=True):
            liked = answer["items"][0]["id"] == "ab"[kind]
            rewards.append(float(rng.random() < (0.8 if liked else 0.2)))
            feedback.append(
                {"recommendation_id": answer["recommendation_id"], "reward": rewards[-1]}
            )
        told = server.client.post("/feedback/batch", json={"feedback": feedback})
        assert told.is_success, told.text
    return float(np.mean(rewards))


def logged(lines: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.splitlines() if line.startswith('{"kind"')]


def written(server: Server, to: str) -> str:
    """Return what has been written by now."""
    if to == "file":
        files = (server.data / "decisions").glob("films.*.jsonl")
        return "".join(path.read_text() for path in files)
    if to == "stdout":
        return server.output
    with redirect_stdout(StringIO()) as shown:
        assert main(["decisions", "--recommender", "films", "--data", str(server.data)]) == 0
    return shown.getvalue()


@pytest.mark.parametrize("to", ["file", "stream", "stdout"])
def test_what_a_server_wrote_can_be_evaluated(
    tmp_path: Path, to: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path) as server:
        server.put("films", **{**CONFIG, "log": {"to": to, "keep": "12h"}})
        earned = visit(server)
        card = server.client.get("/recommenders/films/guarantee").json()
        assert "decisions are logged in the clear" in card["not_covered"][0]
        wait_for("a warning", lambda: "not covered by its guarantee" in server.output)
        wait_for("the lines of all workers", lambda: len(logged(written(server, to))) == 2 * VISITS)
        erased = server.client.delete("/clients/c0").json()
        found = logged(written(server, to))
    assert {line["kind"] for line in found} == {"decision", "feedback"}
    gone = 1 if to == "stream" else 0
    for kind in ("decision", "feedback"):
        assert sum(line["kind"] == kind for line in found) == VISITS - gone
    assert erased["certificate"]["erased"]["logged_lines"] == 2 * gone
    assert ("decision_log_films" in erased["certificate"]["remains"]) == (to != "stream")
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in found))
    config = tmp_path / "discreet.yaml"
    config.write_text(json.dumps({"recommenders": {"films": CONFIG}}))
    capfd.readouterr()
    words = ["--epsilons", "", "--seeds", "1", "--json"]
    assert main(["evaluate", "--log", str(log), "--config", str(config), *words]) == 0
    report = json.loads(capfd.readouterr().out)
    by_name = {one["policy"]: one["dr"] for one in report["policies"]}
    assert by_name["the log itself"]["mean"] == pytest.approx(earned, abs=0.01)
    chance = (0.8 + 3 * 0.2) / 4
    uniform = by_name["uniform"]
    # Nobody seeds what a server draws. Its interval is two deviations to either side, and six are
    # exceeded with probability 2e-9.
    assert abs(uniform["mean"] - chance) < 1.5 * (uniform["high"] - uniform["low"])
    assert report["refusals"] == []
