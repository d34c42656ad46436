"""The estimators: by hand, by simulation, and beside Open Bandit Pipeline."""

import csv
import gzip
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.research.evaluate.estimators import (
    Estimate,
    PolicyResult,
    PolicyTerms,
    averaged,
    difference,
    doubly_robust,
    effective_sample_size,
    ips,
    replay,
    snips,
)
from tests.requirements import need
from tests.research.evaluate import pipeline


def terms_of(
    law: np.ndarray, actions: np.ndarray, rewards: np.ndarray, p: np.ndarray, q: np.ndarray
) -> PolicyTerms:
    here = np.arange(len(actions))
    return PolicyTerms(
        weights=law[here, actions] / p,
        rewards=rewards,
        expected=(law * q).sum(axis=1),
        guessed=q[here, actions],
    )


def test_by_hand() -> None:
    terms = PolicyTerms(
        weights=np.array([2.0, 0.0, 1.0]),
        rewards=np.array([1.0, 1.0, 0.0]),
        expected=np.array([0.5, 0.2, 0.4]),
        guessed=np.array([0.25, 0.5, 0.5]),
    )
    assert ips(terms).mean == pytest.approx(2 / 3)
    assert snips(terms).mean == pytest.approx(2 / 3)
    assert doubly_robust(terms).mean == pytest.approx((0.5 + 1.5 + 0.2 + 0.4 - 0.5) / 3)
    assert effective_sample_size(terms.weights) == pytest.approx(9 / 5)
    counts = np.array([True, False, True])
    assert replay(terms.rewards, counts).mean == 0.5
    assert math.isnan(replay(terms.rewards, ~counts & counts).mean)
    assert math.isnan(snips(PolicyTerms(*np.zeros((4, 3)))).mean)
    assert Estimate(0.5, math.nan).as_json() == {"mean": 0.5, "low": None, "high": None}


@pytest.mark.parametrize("grouped", [False, True])
def test_intervals_hold_the_truth_as_often_as_they_say(grouped: bool) -> None:
    """400 logs. With coverage 95% each estimator covers 364 to 395 but for a chance of 1e-3; rows
    that come four times each, taken as independent, would cover about 268."""
    rng = np.random.default_rng(7)
    law = np.array([0.6, 0.3, 0.1])
    logging = np.array([0.2, 0.3, 0.5])
    means = np.array([0.7, 0.4, 0.2])
    truth = float(law @ means)
    covered = dict.fromkeys(("ips", "snips", "dr"), 0)
    naive = 0
    for _ in range(400):
        actions = rng.choice(3, size=300, p=logging)
        rewards = (rng.random(300) < means[actions]).astype(float)
        groups = None
        if grouped:
            groups = np.repeat(np.arange(300), 4).astype(np.int32)
            actions, rewards = np.repeat(actions, 4), np.repeat(rewards, 4)
        q = np.tile([0.6, 0.5, 0.1], (len(actions), 1))
        terms = terms_of(np.tile(law, (len(actions), 1)), actions, rewards, logging[actions], q)
        for name, estimate in (("ips", ips), ("snips", snips), ("dr", doubly_robust)):
            found = estimate(terms, groups)
            covered[name] += found.low <= truth <= found.high
        found = doubly_robust(terms)
        naive += found.low <= truth <= found.high
    assert all(364 <= count <= 395 for count in covered.values()), covered
    assert (naive < 320) == grouped


def test_policies_are_compared_on_the_same_rows() -> None:
    rng = np.random.default_rng(1)
    rewards = rng.random(500)
    one = PolicyResult.of("one", PolicyTerms(np.ones(500), rewards, *np.zeros((2, 500))), None)
    other = PolicyResult.of(
        "other", PolicyTerms(np.ones(500), rewards - 0.1, *np.zeros((2, 500))), None
    )
    found = difference(one, other, None)
    assert found.mean == pytest.approx(0.1)
    assert found.half_width < 1e-6 < one.dr.half_width


def test_several_runs_are_as_wide_as_they_differ() -> None:
    terms = PolicyTerms(np.ones(100), np.tile([0.0, 1.0], 50), *np.zeros((2, 100)))
    runs = [PolicyResult.of("x", terms, None) for _ in range(2)]
    same = averaged(runs)
    assert same.dr.half_width == pytest.approx(runs[0].dr.half_width)
    shifted = PolicyTerms(np.ones(100), terms.rewards + 0.5, *np.zeros((2, 100)))
    apart = averaged([runs[0], PolicyResult.of("x", shifted, None)])
    assert apart.dr.mean == pytest.approx(0.75)
    assert apart.dr.half_width > 0.4
    assert averaged(runs[:1]) is runs[0]
    assert difference(apart, same, None).half_width > 0.4


@pytest.fixture
def open_bandit_pipeline(monkeypatch: pytest.MonkeyPatch) -> Any:
    return pipeline.estimators(need("obp"), monkeypatch)


def compare(theirs: Any, law: np.ndarray, log: dict[str, np.ndarray], q: np.ndarray) -> None:
    """Hold all four estimators against theirs: the numbers are the same, intervals alike."""
    terms = terms_of(law, log["action"], log["reward"], log["pscore"], q)
    arguments = {
        "reward": log["reward"],
        "action": log["action"],
        "pscore": log["pscore"],
        "action_dist": law[:, :, None],
        "position": np.zeros(len(log["action"]), dtype=int),
        "estimated_rewards_by_reg_model": q[:, :, None],
    }
    certain = law.max(axis=1) == 1.0
    counts = law[np.arange(len(law)), log["action"]] == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, ours in (
            ("InverseProbabilityWeighting", ips(terms)),
            ("SelfNormalizedInverseProbabilityWeighting", snips(terms)),
            ("DoublyRobust", doubly_robust(terms)),
            ("ReplayMethod", replay(log["reward"], counts)),
        ):
            if name == "ReplayMethod" and not certain.all():
                continue
            estimator = getattr(theirs, name)()
            assert ours.mean == pytest.approx(estimator.estimate_policy_value(**arguments))
            if name in ("InverseProbabilityWeighting", "DoublyRobust"):
                bounds = estimator.estimate_interval(
                    **arguments, n_bootstrap_samples=400, random_state=1
                )
                width = bounds["95.0% CI (upper)"] - bounds["95.0% CI (lower)"]
                assert 2 * ours.half_width == pytest.approx(width, rel=0.25)


@pytest.mark.needs("obp")
@pytest.mark.parametrize("policy", ["random", "deterministic"])
def test_open_bandit_pipeline_says_the_same_on_synthetic_logs(
    open_bandit_pipeline: Any, policy: str
) -> None:
    rng = np.random.default_rng(3)
    rows, items = 2_000, 5
    logging = rng.dirichlet(np.ones(items), size=rows)
    action = np.array([rng.choice(items, p=one) for one in logging])
    law = rng.dirichlet(np.ones(items), size=rows)
    if policy == "deterministic":
        law = np.eye(items)[law.argmax(axis=1)]
    log = {
        "action": action,
        "reward": (rng.random(rows) < 0.1 + 0.15 * action).astype(float),
        "pscore": logging[np.arange(rows), action],
    }
    compare(open_bandit_pipeline, law, log, rng.random((rows, items)))


@pytest.mark.needs("obp")
@pytest.mark.parametrize("campaign", ["men", "women", "all"])
def test_open_bandit_pipeline_says_the_same_on_its_own_data(
    open_bandit_pipeline: Any, campaign: str, data_set: Callable[[str], Path]
) -> None:
    path = data_set("open-bandit-small") / "random" / campaign / f"{campaign}.csv.gz"
    with gzip.open(path, "rt") as file:
        rows = list(csv.DictReader(file))
    log = {
        "action": np.array([int(row["item_id"]) for row in rows]),
        "reward": np.array([float(row["click"]) for row in rows]),
        "pscore": np.array([float(row["propensity_score"]) for row in rows]),
    }
    items = int(log["action"].max()) + 1
    clicks = np.bincount(log["action"], log["reward"], items)
    q = np.tile(clicks / np.bincount(log["action"], minlength=items), (len(rows), 1))
    popular = np.tile(np.eye(items)[clicks.argmax()], (len(rows), 1))
    compare(open_bandit_pipeline, popular, log, q)
    compare(
        open_bandit_pipeline, np.tile((clicks + 1) / (clicks + 1).sum(), (len(rows), 1)), log, q
    )
