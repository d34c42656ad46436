"""Metrics add up, keep private things out, and cost little."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from discreet.families.observer import (
    AnswerOutcome,
    FamilyCounter,
    FamilyGauge,
    Observer,
    ReleasedFigures,
)
from discreet.metrics import FLUSH_SECONDS, Metrics
from discreet.privacy.charges import NANO, UNLIMITED, Charge
from tests.waiting import PATIENCE

ALLOWED = {
    "reason",
    "recommender",
    "algorithm",
    "outcome",
    "share",
    "peer",
    "messages",
    "direction",
    "route",
    "method",
    "status",
    "operation",
}
P_DAP = {
    FamilyGauge.CELLS: 7,
    FamilyGauge.DEPTH: 3,
    FamilyGauge.SPLITS: 2,
    FamilyGauge.EXPLORED: 4,
    FamilyGauge.RELEASE: 5,
    FamilyGauge.RELEASED_AT: 1_000,
    FamilyGauge.RELEASE_DUE: 1_060,
}


def samples(text: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text.decode())
        for one in family.samples
    }


def by_name(text: bytes, name: str) -> float:
    return sum(value for (found, _), value in samples(text).items() if found == name)


def labelled(text: bytes) -> list[dict[str, str]]:
    return [dict(pairs) for _, pairs in samples(text)]


def busy(metrics: Metrics) -> None:
    observer: Observer = metrics
    for outcome in AnswerOutcome:
        observer.recommendation(
            recommender="films",
            algorithm="p-dap",
            outcome=outcome,
            charge=Charge(nano_epsilon=NANO // 2, nano_rho=NANO // 8),
            items=2,
        )
    observer.forged()
    observer.exhausted(recommender="films", algorithm="p-dap")
    for what, value in P_DAP.items():
        observer.gauge(recommender="films", what=what, value=value)
    observer.count(recommender="films", what=FamilyCounter.RELEASES)
    observer.count(
        recommender="films", what=FamilyCounter.FORWARDS, peer="shop-b", label="answered"
    )
    observer.exchanged(
        recommender="films", peer="shop-b", direction="sent", outcome="answered", size=11
    )
    metrics.began()
    metrics.answered(method="POST", route="/recommend", status=200, seconds=0.0007)
    metrics.stored("spend", 0.0002)
    metrics.store_failed("spend")
    metrics.store_up(True)


def test_what_a_ledger_books_as_unlimited_is_left_out_of_the_sum() -> None:
    metrics = Metrics(version="1.2.3")
    films = {"recommender": "films", "algorithm": "p-dap"}
    for charge in (Charge(UNLIMITED, UNLIMITED), Charge(nano_epsilon=NANO, nano_rho=NANO // 8)):
        metrics.recommendation(
            **films, outcome=AnswerOutcome.PERSONALISED, charge=charge, items=2, answers=2
        )
    metrics.flush()
    text = metrics.render()
    assert by_name(text, "discreet_epsilon_spent_total") == 2.0
    assert by_name(text, "discreet_rho_spent_total") == 0.25


def test_clients_are_counted_by_the_share_of_their_budget_that_is_spent() -> None:
    metrics = Metrics(version="1")
    metrics.set_recommenders({"films": "p-dap"})
    for tenths in (0, 1, 2, 0, 10):
        metrics.reached(recommender="films", algorithm="p-dap", tenths=tenths)
    metrics.flush()
    found = {
        dict(labels)["share"]: value
        for (name, labels), value in samples(metrics.render()).items()
        if name == "discreet_clients_spent_total"
    }
    assert found == {
        **{"0": 2.0, "0.1": 1.0, "0.2": 1.0, "0.3": 0.0, "0.4": 0.0, "0.5": 0.0, "0.6": 0.0},
        **{"0.7": 0.0, "0.8": 0.0, "0.9": 0.0, "1": 1.0},
    }


def test_a_released_model_is_reported_as_far_as_it_tells() -> None:
    told = ReleasedFigures(feedback=12.5, reward_mean=0.25, rho=0.0)
    assert told.gauges() == {
        FamilyGauge.RELEASED_FEEDBACK: 12.5,
        FamilyGauge.RELEASED_REWARD_MEAN: 0.25,
        FamilyGauge.FEEDBACK_RHO: 0.0,
    }


def test_everything_that_was_observed_is_shown() -> None:
    metrics = Metrics(version="1.2.3")
    busy(metrics)
    metrics.flush()
    text = metrics.render()
    assert by_name(text, "discreet_recommendations_total") == len(AnswerOutcome)
    assert by_name(text, "discreet_items_total") == 2 * len(AnswerOutcome)
    assert by_name(text, "discreet_epsilon_spent_total") == pytest.approx(len(AnswerOutcome) / 2)
    assert by_name(text, "discreet_rho_spent_total") == pytest.approx(len(AnswerOutcome) / 8)
    assert by_name(text, "discreet_forged_feedback_total") == 1
    assert by_name(text, "discreet_budgets_exhausted_total") == 1
    for what, value in P_DAP.items():
        assert by_name(text, f"discreet_{what.value}") == value
    assert by_name(text, "discreet_releases_total") == 1
    forwards = ("outcome", "answered"), ("peer", "shop-b"), ("recommender", "films")
    assert samples(text)["discreet_forwards_total", forwards] == 1
    assert by_name(text, "discreet_peer_bytes_total") == 11
    assert by_name(text, "discreet_store_up") == 1
    assert by_name(text, "discreet_store_failures_total") == 1
    assert 'discreet_build_info{version="1.2.3"} 1.0' in text.decode()


def test_everything_that_families_report_has_a_series() -> None:
    metrics = Metrics(version="1")
    states = {FamilyGauge.NEIGHBOURS, FamilyGauge.ROUNDS}
    for gauge in FamilyGauge:
        label = "state" if gauge in states else ""
        metrics.gauge(recommender="films", what=gauge, value=1, label=label)
        assert by_name(metrics.render(), f"discreet_{gauge.value}") == 1
    bare = {FamilyCounter.RELEASES, FamilyCounter.MIXING_ROUNDS}
    bare |= {FamilyCounter.NOT_AWAITED, FamilyCounter.NOT_LOGGED}
    forwards = {FamilyCounter.FORWARDS, FamilyCounter.FORWARDS_RECEIVED}
    for counter in FamilyCounter:
        metrics.count(
            recommender="films",
            what=counter,
            label="" if counter in bare else "label",
            peer="b" * 1_000 if counter in forwards else "",
        )
        assert by_name(metrics.render(), f"discreet_{counter.value}_total") == 1
    assert b"b" * 65 not in metrics.render(), "labels are of bounded length"


def test_labels_are_of_bounded_kinds_only() -> None:
    metrics = Metrics(version="1")
    busy(metrics)
    metrics.flush()
    labels = {name for _, pairs in samples(metrics.render()) for name, _ in pairs}
    assert labels - {"le", "version"} <= ALLOWED


def test_a_recommenders_series_begin_at_zero() -> None:
    metrics = Metrics(version="1")
    metrics.set_recommenders({"new": "p-dap"})
    found = samples(metrics.render())
    zeros = [value for (name, pairs), value in found.items() if ("recommender", "new") in pairs]
    assert len(zeros) > 10
    assert set(zeros) == {0.0}


def test_a_removed_recommender_holds_nothing() -> None:
    metrics = Metrics(version="1")
    metrics.set_recommenders({"films": "p-dap", "songs": "p-dap"})
    busy(metrics)
    metrics.gauge(recommender="songs", what=FamilyGauge.CELLS, value=1)
    metrics.set_recommenders({"songs": "p-dap"})
    metrics.flush()
    found = {labels.get("recommender") for labels in labelled(metrics.render())}
    assert found == {"songs", None}
    assert by_name(metrics.render(), "discreet_cells") == 1
    # It is counted anew if it comes again.
    metrics.set_recommenders({"films": "p-dap", "songs": "p-dap"})
    assert by_name(metrics.render(), "discreet_items_total") == 0
    busy(metrics)
    metrics.flush()
    assert by_name(metrics.render(), "discreet_items_total") == 2 * len(AnswerOutcome)


def test_one_that_came_and_went_between_two_looks_holds_nothing() -> None:
    metrics = Metrics(version="1")
    metrics.set_recommenders({})
    metrics.gauge(recommender="brief", what=FamilyGauge.RELEASE, value=3)
    # It may be about to come: a model is loaded before its recommender answers.
    metrics.set_recommenders({})
    assert by_name(metrics.render(), "discreet_release") == 3
    metrics.set_recommenders({})
    assert by_name(metrics.render(), "discreet_release") == 0


def test_one_that_is_being_loaded_keeps_what_was_measured() -> None:
    metrics = Metrics(version="1")
    metrics.gauge(recommender="new", what=FamilyGauge.RELEASE, value=3)
    metrics.set_recommenders({})
    metrics.set_recommenders({"new": "p-dap"})
    metrics.set_recommenders({"new": "p-dap"})
    assert by_name(metrics.render(), "discreet_release") == 3


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0.0, "0.0005"), (0.0005, "0.0005"), (0.003, "0.005"), (99.0, "+Inf")]
)
def test_durations_fall_into_the_right_bucket(seconds: float, bucket: str) -> None:
    metrics = Metrics(version="1")
    metrics.stored("read", seconds)
    metrics.flush()
    found = samples(metrics.render())
    counts = {
        dict(pairs)["le"]: value
        for (name, pairs), value in found.items()
        if name == "discreet_store_duration_seconds_bucket"
    }
    first = next(bound for bound, count in counts.items() if count == 1)
    assert first == bucket
    assert counts["+Inf"] == 1
    assert by_name(metrics.render(), "discreet_store_duration_seconds_sum") == seconds


def test_flushing_twice_counts_once() -> None:
    metrics = Metrics(version="1")
    busy(metrics)
    metrics.flush()
    once = metrics.render()
    metrics.flush()
    assert metrics.render() == once


def test_an_event_loop_flushes_by_itself() -> None:
    async def run() -> bytes:
        metrics = Metrics(version="1")
        metrics.attach(asyncio.get_running_loop().call_later)
        metrics.exhausted(recommender="films", algorithm="p-dap")
        await asyncio.sleep(5 * FLUSH_SECONDS)
        return metrics.render()

    assert by_name(asyncio.run(run()), "discreet_budgets_exhausted_total") == 1


WORKER = """
import os, sys
from discreet.metrics import Metrics
from tests.test_metrics import busy
for _ in range(3):
    if os.fork() == 0:
        metrics = Metrics(version="1")
        busy(metrics)
        metrics.began()
        metrics.flush()
        os._exit(0)
    os.wait()
metrics = Metrics(version="1")
sys.stdout.buffer.write(metrics.render())
"""


COMING_AND_GOING = """
import os, sys, time
from discreet.metrics import Metrics
from tests.test_metrics import busy
metrics = Metrics(version="1")
if (other := os.fork()) == 0:
    metrics = Metrics(version="1")
    metrics.set_recommenders({"films": "p-dap"})
    busy(metrics)
    metrics.flush()
    os._exit(0)
os.wait()
sizes = []
for turn in range(300):
    metrics.set_recommenders({"films": "p-dap", f"r{turn}": "p-dap"})
    metrics.exhausted(recommender=f"r{turn}", algorithm="p-dap")
    busy(metrics)
    metrics.flush()
    metrics.set_recommenders({"films": "p-dap"})
    own = [each for each in os.scandir() if str(os.getpid()) in each.name]
    sizes.append(sum(each.stat().st_size for each in own))
assert len(set(sizes)) == 1, sizes
sys.stdout.buffer.write(metrics.render())
metrics.set_recommenders({})
sys.stdout.buffer.write(b"# gone\\n" + metrics.render())
"""


def test_files_do_not_grow_with_recommenders_that_come_and_go(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", COMING_AND_GOING],
        env={
            **os.environ,
            "PROMETHEUS_MULTIPROC_DIR": str(tmp_path),
            "PYTHONPATH": str(Path(__file__).parents[1]),
        },
        cwd=tmp_path,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert answer.returncode == 0, answer.stderr
    before, after = answer.stdout.split(b"# gone\n")
    assert by_name(before, "discreet_items_total") == 301 * 2 * len(AnswerOutcome)
    assert {one.get("recommender", "films") for one in labelled(before)} == {"films"}
    # Of a worker that has ended, nothing is shown either of a recommender that is gone.
    assert not any("recommender" in one for one in labelled(after))
    assert by_name(after, "discreet_request_duration_seconds_count") == 301


def test_several_workers_are_added_up(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", WORKER],
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    text = answer.stdout
    assert by_name(text, "discreet_recommendations_total") == 3 * len(AnswerOutcome)
    assert by_name(text, "discreet_epsilon_spent_total") == pytest.approx(
        3 * len(AnswerOutcome) / 2
    )
    assert by_name(text, "discreet_request_duration_seconds_count") == 3
    assert by_name(text, "discreet_requests_in_flight") == 3
    assert by_name(text, "discreet_cells") == 7, "a gauge of the store, not of a worker"
    assert by_name(text, "discreet_build_info") == 1
    labels = {name for _, pairs in samples(text) for name, _ in pairs}
    assert "pid" not in labels
    assert "Answers, by outcome" in text.decode()
