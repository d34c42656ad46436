"""The store's figures are measured on real servers, and what is predicted is what is used."""

import asyncio
import json
import logging
from itertools import count
from pathlib import Path

import pytest
import store
import store_servers
import store_sizing
import store_work


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="discreet")


def test_what_is_predicted_is_what_a_day_of_requests_uses() -> None:
    """Bytes, which are the same on every machine; CPU is not."""
    with asyncio.Runner() as loop:
        found = store_sizing.sizing(loop, people=3_000)
    for name in ("store_bytes", "log_bytes", "network_bytes"):
        assert 0.7 < found[name]["ratio"] < 1.3, (name, found[name])
    assert found["store_cpu_seconds"]["measured"] > 0
    assert len(store_sizing.table(found)) == 1 + len(found)


def test_masters_share_one_recommender_evenly(tmp_path: Path) -> None:
    """By what they received: each client's feedback goes to one of them."""
    with (
        asyncio.Runner() as loop,
        store_servers.running_cluster(tmp_path / "three", 3, appendfsync="no") as servers,
        store_work.opened(loop, store_servers.cluster_url(servers)) as opened,
    ):
        work = store_work.feedback(5_000)
        used = loop.run(store_work.cost(servers, opened, work, count(), many=2_000, together=64))
    received = [one.received for one in used]
    assert max(received) < 1.15 * sum(received) / 3
    assert min(received) > 0.85 * sum(received) / 3


def test_everything_is_measured_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MANY", (100, 100))
    monkeypatch.setattr(store, "RELEASED", ((5, 2), (5, 2)))
    monkeypatch.setattr(store, "SIZED", 100)
    monkeypatch.setattr(store, "FSYNC", ("always", "everysec"))
    monkeypatch.setattr(store, "MASTERS", (1, 2))
    monkeypatch.setattr(store, "LEDGERS", (100, 2_000, 10**12))
    monkeypatch.setattr(store, "ITEMS", (10, 100))
    monkeypatch.setattr(store, "RECOMMENDERS", (1, 5))
    monkeypatch.setattr(store, "WORKERS", (1, 4))
    found = store.measured(quick=True, say=lambda text: None)
    assert json.loads(json.dumps(found)) == found
    assert set(found["ledgers"]["measured"]) == {"100", "2000"}
    assert set(found["ledgers"]["computed_gib"]) == {str(10**12)}, "too many are computed"
    assert 100 < found["ledgers"]["bytes"] < 300
    for fsync in ("always", "everysec"):
        wide = found["operations"]["feedback, 64 dimensions"][fsync]["8"]
        assert wide["log_bytes"] < 25_000, "amounts in a row travel packed"
    large, many = found["releases"].values()
    assert large["model_bytes"] > 100
    assert many["seconds_each"] > 0
    text = "\n".join(store.table(found))
    for part in ("2 masters", "in a GiB", "by recommenders", "2 recommenders", "computed"):
        assert part in text


def test_busy_workers_fill_a_master() -> None:
    found = {
        "operations": {"answer": {"always": {"64": {"cpu_us": 20.0}}}},
        "poll_cpu_us": 1.0,
    }
    shares = store.contention(found, 100.0)["workers"]
    one, many = shares["1"], shares["64"]
    assert one["share_of_one_master"] == pytest.approx(0.2, abs=0.001)
    assert one["waits_for_commands"] == pytest.approx(0.125, abs=0.01)
    assert many["share_of_one_master"] > 12
    assert many["waits_for_commands"] is None
    assert many["masters_at_half_load"] == 26
