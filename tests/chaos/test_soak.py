"""Recommenders that come and go leave nothing behind, in any worker."""

from pathlib import Path

import pytest

from discreet.state.embedded import EmbeddedStore
from tests.chaos.soak import growth, soak
from tests.contracts.samples import SAMPLES

LOOKS = 10
"""`make chaos` takes sixteen times as many."""


@pytest.mark.anyio
async def test_nothing_is_left_of_recommenders_that_come_and_go(tmp_path: Path) -> None:
    looks: list[tuple[int, int, int]] = []
    with EmbeddedStore(tmp_path) as url:
        await soak(url, LOOKS * len(SAMPLES), looks)
    assert len(looks) == LOOKS
    assert all((recommenders, entries) == (0, 0) for recommenders, entries, _ in looks)
    # A recommender takes tens of kilobytes and its series some; what was kept of one would show as
    # so much a cycle. Python keeps small pieces that it has freed, some hundred bytes a cycle.
    assert growth(looks) < 1_500 * len(SAMPLES)
