"""The shipped decisions on a log: what they learn, what is estimated, what they spend."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.families.registration import read_document
from discreet.research.evaluate.estimators import PolicyTerms, doubly_robust, ips
from discreet.research.evaluate.logs import EvaluationLog, LogOptions, read_log
from discreet.research.evaluate.reward_model import RewardModel
from discreet.research.evaluate.served import LogClock, ServedRun
from tests.research.evaluate.recorded import ITEMS, MEANS, document, log_of, rows, write

BEST = float(MEANS.max(axis=1).mean())


def learned(log: EvaluationLog, given: Any, seed: int = 0) -> tuple[PolicyTerms, ServedRun]:
    async def run() -> tuple[PolicyTerms, ServedRun]:
        one = await ServedRun.open(log, given, seed=seed, rate=200.0)
        try:
            return await one.learn_from_every_row(RewardModel.fitted(log)), one
        finally:
            await one.close()

    return asyncio.run(run())


@pytest.mark.parametrize("algorithm", ["contextual", "p-dap"])
def test_what_it_learns_from_every_row_is_worth_more_than_any_item(
    tmp_path: Path, algorithm: str
) -> None:
    """Exact learners find the best item of both kinds (0.7) within 4,000 rows; the best for all
    is worth 0.5. The last quarter's estimate is within 0.08 of what its odds are truly worth."""
    log = log_of(tmp_path, 4_000)
    terms, run = learned(log, document(algorithm))
    late = terms.part(slice(3_000, None))
    assert doubly_robust(late).mean == pytest.approx(BEST, abs=0.1)
    assert ips(late).mean == pytest.approx(BEST, abs=0.2)
    assert doubly_robust(late).low > MEANS.mean(axis=0).max()
    assert (run.degraded, run.unlearned, run.sent) == (0, 0, 4_000)


def test_a_replay_counts_its_own_choices_only(tmp_path: Path) -> None:
    log = log_of(tmp_path, 4_000)

    async def run() -> tuple[float, int, int]:
        one = await ServedRun.open(log, document(), seed=0, rate=200.0)
        try:
            found, counted = await one.replay(seed=0)
            return found.mean, counted, one.sent
        finally:
            await one.close()

    mean, counted, sent = asyncio.run(run())
    assert counted == sent
    assert 850 < counted < 1_150  # one row in four
    assert mean > MEANS.mean(axis=0).max()


def test_the_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    log = log_of(tmp_path, 500)
    private = document(privacy={"answers": {"epsilon": 1}, "feedback": {"epsilon": 1}})
    one, again, other = (learned(log, private, seed)[0].weights for seed in (0, 0, 1))
    assert (one == again).all()
    assert not (one == other).all()


def test_budgets_are_spent_by_the_logs_clients(tmp_path: Path) -> None:
    """Two clients with four answers each: all others are from the model alone, at its own odds."""
    made = rows(200)
    for place, row in enumerate(made):
        row["client"] = f"client {place % 2}"
    budget = {"epsilon": 2.0, "delta": 0}
    private = document(privacy={"answers": {"epsilon": 0.5, "budget": budget}, "feedback": "exact"})
    log = read_log(write(tmp_path / "log.csv", made), private, LogOptions())
    terms, run = learned(log, private)
    assert run.degraded == 200 - 2 * 4
    assert terms.weights.mean() == pytest.approx(1.0, abs=0.5)
    refusing = document(
        privacy={
            "answers": {"epsilon": 0.5, "budget": budget, "on_exhausted": "refuse"},
            "feedback": "exact",
        }
    )
    terms, run = learned(log, refusing)
    assert run.degraded == 200 - 2 * 4
    assert np.count_nonzero(terms.weights) <= 8


def test_feedback_that_no_budget_pays_for_is_not_learned(tmp_path: Path) -> None:
    made = rows(100)
    for row in made:
        row["client"] = "one"
    private = document(
        privacy={
            "answers": "exact",
            "feedback": {"epsilon": 1, "budget": {"epsilon": 2.0, "delta": 1e-6}},
        }
    )
    log = read_log(write(tmp_path / "log.csv", made), private, LogOptions())
    _, run = learned(log, private)
    assert run.sent == 100
    assert 80 < run.unlearned < 100


def test_time_is_the_logs(tmp_path: Path) -> None:
    made = rows(3)
    for row, time in zip(made, (50.0, 51.0, 1e9), strict=True):
        row["time"] = time
    log = log_of(tmp_path, 1)
    clock = LogClock(log, 10.0)
    assert clock() == 0.0
    path = write(tmp_path / "log.csv", made)
    clock = LogClock(read_log(path, document(), LogOptions()), 10.0)
    assert clock.times.tolist() == [0.0, 1.0, 3_601.0, 3_601.0]  # a long pause is cut short
    untimed = read_log(write(path, made, "time"), document(), LogOptions())
    assert LogClock(untimed, 10.0).times.tolist() == [0.0, 0.1, 0.2, pytest.approx(0.3)]


def test_families_that_judge_items_by_features(tmp_path: Path) -> None:
    """Every item has features of its own; fclub knows people by their feedback, mirror-descent by
    features that a log says."""
    made = rows(1_500)
    for row in made:
        row["client"] = f"kind {row['context_0']}"
        row["features"] = f'{{"indices": [{row["context_0"]}], "values": [1]}}'
    path = write(tmp_path / "log.csv", made, "context_0")
    vectors = np.eye(4).tolist()
    fclub = read_document(
        {
            "algorithm": "fclub",
            "role": "local",
            "dimensions": 4,
            "items": [
                {"id": item, "features": vector}
                for item, vector in zip(ITEMS, vectors, strict=True)
            ],
            "privacy": {
                "answers": {"epsilon": 8, "budget": {"epsilon": 100_000}},
                "feedback": "exact",
            },
        }
    )
    mirror = read_document(
        {
            "algorithm": "mirror-descent",
            "features": {"clients": 2, "items": 4},
            "items": [
                {"id": item, "features": {"indices": [place], "values": [1]}}
                for place, item in enumerate(ITEMS)
            ],
            "privacy": {"answers": "exact", "feedback": "exact"},
        }
    )
    for given in (fclub, mirror):
        log = read_log(path, given, LogOptions())
        terms, _ = learned(log, given)
        late = terms.part(slice(1_000, None))
        assert doubly_robust(late).mean > MEANS.mean() + 0.1, given.algorithm
        assert terms.weights.mean() == pytest.approx(1.0, abs=0.15), given.algorithm
