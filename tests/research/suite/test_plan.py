"""What the suite runs."""

from itertools import product
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument
from discreet.research.suite import plan as planning
from discreet.research.suite.plan import (
    ANSWERS,
    AWKWARD,
    FEEDBACK,
    LONG_ROUNDS,
    QUICK_ANSWERS,
    QUICK_FEEDBACK,
    QUICK_ROUNDS,
    ROUNDS,
    SuiteOptions,
    plan,
)
from discreet.research.suite.served import judged
from discreet.research.suite.worlds import WORLDS


def test_our_learners_meet_every_setting_in_every_world() -> None:
    trials = plan(SuiteOptions())
    settings = {(one.world, one.learner, one.answers, one.feedback) for one in trials}
    assert len(settings) == len(trials)
    for world in WORLDS:
        dials = (QUICK_ANSWERS, QUICK_FEEDBACK) if world in AWKWARD else (ANSWERS, FEEDBACK)
        for learner in judged():
            found = {s[2:] for s in settings if s[:2] == (world, learner)}
            assert found == set(product(*dials))
        for rival in ("linucb", "vw"):
            assert {s[2:] for s in settings if s[:2] == (world, rival)} == {
                (None, None),
                (2.0, None),
            }
        for other, protected in (("popular", dials[1]), ("chance", (None,))):
            those = [t for t in trials if (t.world, t.learner) == (world, other)]
            assert [one.feedback for one in those] == list(protected)
            assert {one.compared for one in those} == {dials[0]}


def test_private_feedback_gets_the_long_run() -> None:
    (one,) = [
        t
        for t in plan(SuiteOptions(worlds=["logistic-20"]))
        if (t.learner, t.answers, t.feedback) == ("p-dap", 2.0, 1.0)
    ]
    assert one.rounds == LONG_ROUNDS


def test_worlds_whose_visits_are_dear_have_no_long_run() -> None:
    trials = plan(SuiteOptions(worlds=["sparse-1000", "catalogue-1000"]))
    assert {one.rounds for one in trials} == {ROUNDS}


def test_drift_takes_weeks_and_not_a_minute() -> None:
    rates = {one.world: one.rate for one in plan(SuiteOptions(quick=True))}
    assert rates["bumps"] == 200.0
    assert 12_000 / rates["drift"] > 60 * 86_400


def test_quick_is_smaller_and_has_the_same_learners() -> None:
    quick, whole = plan(SuiteOptions(quick=True)), plan(SuiteOptions())
    assert {one.learner for one in quick} == {one.learner for one in whole}
    assert {one.rounds for one in quick} == {QUICK_ROUNDS}
    assert sum(t.rounds for t in quick) < 0.2 * sum(t.rounds for t in whole)


def test_rivals_that_are_not_installed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "missing_rivals", lambda: ["vowpalwabbit"])
    learners = {one.learner for one in plan(SuiteOptions(quick=True))}
    assert "vw" not in learners
    assert "linucb" in learners


def test_only_some_learners() -> None:
    trials = plan(SuiteOptions(quick=True, worlds=["bumps"], learners=["chance", "p-dap"]))
    assert {one.learner for one in trials} == {"chance", "p-dap"}


def test_files_that_cannot_be_used_are_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "ml-1m").mkdir()
    (tmp_path / "ml-1m" / "movies.dat").write_text("1::Alien::Horror\n")
    with pytest.raises(InvalidArgument, match=r"users\.dat cannot be read"):
        plan(SuiteOptions(data=tmp_path))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (SuiteOptions(worlds=["bumps", "flat"]), "'flat' is not there; there are bumps"),
        (SuiteOptions(learners=["guess"]), "'guess' is not there; there are"),
        (SuiteOptions(rounds=1_500), "--rounds"),
        (SuiteOptions(seed=-1), "--seed"),
        (SuiteOptions(data=Path("nowhere")), "neither MovieLens nor Open Bandit"),
    ],
)
def test_what_cannot_be_run_is_refused(options: SuiteOptions, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        plan(options)
