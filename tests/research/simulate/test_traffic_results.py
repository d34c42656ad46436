"""The results of traffic add up, and its first and last seconds are kept apart."""

import json

import pytest

from discreet.research.simulate import traffic_results as module
from discreet.research.simulate.traffic_results import TrafficResults


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_the_first_and_the_last_seconds(clock: Clock) -> None:
    results = TrafficResults()
    results.begin()
    for second in range(12):
        clock.now = 100.0 + second + 0.5
        results.add_answer(personalised=second < 11, reward=second / 11, regret=1 - second / 11)
        results.add_feedback()
    clock.now = 112.0
    results.finish(interrupted=False)
    clock.now = 500.0  # the clock has stopped
    report = results.report()
    assert report["seconds"] == 12.0
    assert report["answers_per_second"] == 1.0
    assert report["feedback"] == 12
    assert report["overall"] == {
        "answers": 12,
        "mean_reward": 0.5,
        "true_regret": 0.5,
        "personalised_regret": round(6 / 11, 4),
        "degraded_share": round(1 / 12, 4),
    }
    assert report["window_seconds"] == 6  # half of a run shorter than 20 s
    assert report["first"]["mean_reward"] == round(2.5 / 11, 4)
    assert report["last"]["mean_reward"] == round(8.5 / 11, 4)
    assert report["last"]["degraded_share"] == round(1 / 6, 4)
    assert json.loads(json.dumps(report)) == report


def test_ten_seconds_of_a_long_run_are_compared(clock: Clock) -> None:
    results = TrafficResults()
    results.begin()
    for second in range(60):
        clock.now = 100.5 + second
        results.add_answer(personalised=True, reward=float(second >= 50), regret=0.0)
    results.finish(interrupted=False)
    assert results.window() == 10
    assert results.first().means()["mean_reward"] == 0.0
    assert results.last().means() == {
        "answers": 10,
        "mean_reward": 1.0,
        "true_regret": 0.0,
        "personalised_regret": 0.0,
        "degraded_share": 0.0,
    }


def test_recent_results_forget_old_ones(clock: Clock) -> None:
    results = TrafficResults()
    results.begin()
    results.add_answer(personalised=True, reward=1.0, regret=0.0)
    clock.now = 103.0
    results.add_answer(personalised=True, reward=0.0, regret=0.5)
    assert results.recent(5).answers == 2
    clock.now = 106.5
    assert results.recent(5).means()["true_regret"] == 0.5


def test_nothing_at_all_is_reported_as_zeros(clock: Clock) -> None:
    results = TrafficResults()
    results.begin()
    results.finish(interrupted=True)
    report = results.report()
    assert report["overall"]["answers"] == 0
    assert report["answers_per_second"] == 0.0
    assert report["interrupted"] is True


def test_only_so_many_reasons_are_kept() -> None:
    results = TrafficResults()
    for number in range(50):
        results.add_error(f"reason {number}")
    results.add_error("reason 3")
    assert len(results.errors) == 21
    assert results.errors["reason 3"] == 2
    assert results.errors["other reasons"] == 30


def test_the_first_reason_for_giving_up_stays() -> None:
    results = TrafficResults()
    results.give_up("one")
    results.give_up("two")
    assert results.gave_up == "one"


def test_an_answer_just_after_a_minute_makes_the_last_ten_seconds_no_shorter(clock: Clock) -> None:
    results = TrafficResults()
    results.begin()
    for tenth in range(601):
        clock.now = 100.0 + tenth / 10 + 0.002
        results.add_answer(personalised=True, reward=0.5, regret=0.0)
    results.finish(interrupted=False)
    assert results.window() == 10
    assert results.last().answers == 101
