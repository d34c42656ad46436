"""What came of traffic adds up, and its first and last parts are told apart."""

import json

import pytest

from discreet.research import tally as module
from discreet.research.simulate.traffic_results import Tally


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_the_first_and_the_last_sixth(clock: Clock) -> None:
    tally = Tally()
    tally.begin()
    for second in range(12):
        clock.now = 100.0 + second + 0.5
        tally.answered(personalised=second < 11, reward=second / 11, regret=1 - second / 11)
        tally.heard()
    clock.now = 112.0
    tally.finish(interrupted=False)
    clock.now = 500.0  # the clock has stopped
    report = tally.report()
    assert report["seconds"] == 12.0
    assert report["answers_per_second"] == 1.0
    assert report["feedback"] == 12
    assert report["overall"] == {
        "answers": 12,
        "mean_reward": 0.5,
        "true_regret": 0.5,
        "degraded_share": round(1 / 12, 4),
    }
    assert report["first_sixth"]["mean_reward"] == round(0.5 / 11, 4)
    assert report["last_sixth"]["mean_reward"] == round(10.5 / 11, 4)
    assert report["last_sixth"]["degraded_share"] == 0.5
    assert json.loads(json.dumps(report)) == report


def test_recent_results_forget_old_ones(clock: Clock) -> None:
    tally = Tally()
    tally.begin()
    tally.answered(personalised=True, reward=1.0, regret=0.0)
    clock.now = 103.0
    tally.answered(personalised=True, reward=0.0, regret=0.5)
    assert tally.recent(5).answers == 2
    clock.now = 106.5
    assert tally.recent(5).means()["true_regret"] == 0.5


def test_nothing_at_all_is_reported_as_zeros(clock: Clock) -> None:
    tally = Tally()
    tally.begin()
    tally.finish(interrupted=True)
    report = tally.report()
    assert report["overall"]["answers"] == 0
    assert report["answers_per_second"] == 0.0
    assert report["interrupted"] is True


def test_only_so_many_reasons_are_kept() -> None:
    tally = Tally()
    for number in range(50):
        tally.fault(f"reason {number}")
    tally.fault("reason 3")
    assert len(tally.faults) == 21
    assert tally.faults["reason 3"] == 2
    assert tally.faults["other reasons"] == 30


def test_the_first_reason_for_giving_up_stays() -> None:
    tally = Tally()
    tally.give_up("one")
    tally.give_up("two")
    assert tally.gone == "one"
