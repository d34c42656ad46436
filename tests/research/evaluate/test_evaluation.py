"""A whole evaluation, setting by setting."""

from pathlib import Path

import pytest

from discreet.research.evaluate.evaluation import (
    EvaluationTrial,
    Setting,
    at_dials,
    baselines,
    curve_settings,
    log_and_model,
    report,
    written,
)
from discreet.research.evaluate.logs import LogOptions
from discreet.research.evaluate.randomness import examine
from tests.research.evaluate.recorded import document, rows, write

PRIVATE = document(privacy={"answers": {"epsilon": 0.5}, "feedback": {"epsilon": 2}})


def test_dials_are_turned_one_at_a_time() -> None:
    assert written(PRIVATE) == Setting(0.5, 2.0, as_written=True)
    assert curve_settings(PRIVATE, [1.0], [4.0]) == [
        Setting(None, None),
        Setting(1.0, 2.0),
        Setting(None, 2.0),
        Setting(0.5, 4.0),
        Setting(0.5, None),
    ]
    only_feedback = at_dials(PRIVATE, None, 4.0)
    assert only_feedback.privacy.answers == "exact"
    assert only_feedback.privacy.feedback.epsilon == 4.0
    only_answers = at_dials(PRIVATE, 1.0, "exact")
    assert only_answers.privacy.answers.epsilon == 1.0
    assert only_answers.privacy.answers.budget.epsilon > 1_000  # lifted
    assert only_answers.privacy.feedback == "exact"
    neither = at_dials(PRIVATE, None, "exact")
    assert neither.privacy.answers == neither.privacy.feedback == "exact"


def test_a_trial_is_a_value_and_its_result_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", rows(600))
    options = LogOptions()
    seen: list[int] = []
    trial = EvaluationTrial(
        name="films",
        document=PRIVATE,
        setting=written(PRIVATE),
        path=path,
        options=options,
        rounds=600,
        seed=0,
        rate=100.0,
        with_replay=True,
    )
    main = trial.play(seen.append)
    assert sum(seen) == trial.passes * trial.rounds == 1_200
    assert trial.run().dr == main.dr
    log, model = log_and_model(path, PRIVATE, LogOptions(most=600))
    assert log_and_model(path, PRIVATE, LogOptions(most=600))[0] is log
    found = report(
        name="films",
        log=log,
        randomness=examine(log),
        main=main,
        compared=baselines(log, model),
        curve=[(Setting(None, None), main)],
        document=PRIVATE,
        rate=100.0,
    )
    assert [one["policy"] for one in found["policies"]] == [
        "films",
        "most popular",
        "uniform",
        "the log itself",
    ]
    assert found["log"]["rows"] == 600
    assert found["policies"][0]["replay_rows"] == main.counted > 0
    by_hand = found["policies"][0]["dr"]["mean"] - found["policies"][3]["dr"]["mean"]
    assert found["differences"][2]["mean"] == pytest.approx(by_hand)
