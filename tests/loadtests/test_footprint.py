"""Everything that the table of bytes has a row for is measured, on a real store."""

from collections.abc import Iterator

import footprint
import pytest
import report

from discreet.state.embedded import EmbeddedStore


@pytest.fixture
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with EmbeddedStore(tmp_path_factory.mktemp("footprint")) as running:
        yield running


def test_everything_that_is_stored_is_weighed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "MANY", 4_000)
    monkeypatch.setattr(footprint, "EVENTS", 2_000)
    monkeypatch.setattr(footprint, "MODELS", ((1, 5), (31, 5)))
    found = footprint.footprint(url)
    text = report.table({"machine": {}, "memory": found})
    for key, title in report.BYTES.items():
        assert key in found
        assert title in text
    # A ledger is two accounts of three columns of eight bytes, and a key.
    assert 48 < found["ledger_bytes"] < 400
    for arms, size in found["sums_bytes"].items():
        assert size > 16 * int(arms), "two fields of eight bytes for each arm"
    small, large = found["model_bytes"].values()
    assert small < large
