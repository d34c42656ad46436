"""A shop that sends only clicks learns as one that sends zeros, if its document says `wait`.

A small run on the demo's world, through a served HTTP path. Its feedback is exact, so that few
visits show what silence teaches; `loadtests/shop.py` makes the full run, with the demo's own noise.
"""

import asyncio
from pathlib import Path

import shop

from tests.end_to_end.servers import serving

EXACT = {
    "privacy": {
        "answers": {"epsilon": 2.0, "budget": {"epsilon": 1_000, "delta": 1e-6}},
        "feedback": "exact",
    },
    "releases": {"seconds": 1.0, "growth": 0.0},
}


def test_the_truth_is_of_the_demos_world() -> None:
    document = shop.demo_document()
    known = shop.truth([item["id"] for item in document["items"]])
    assert 0.1 < known["best_fixed"] < known["best"] < 1.0


def test_silence_teaches(tmp_path: Path) -> None:
    """Without `wait` clicks teach next to nothing; with it, most of what zeros teach."""
    with serving(tmp_path) as server:
        found = asyncio.run(
            shop.compare(*(server.url, server.key), visits=1_500, rate=50, wait="1s", changes=EXACT)
        )
    assert found["zeros"] > found["clicks"] + 0.1
    # A run of 1,500 visits scatters, on a busy machine by a tenth; clicks alone stay at a fifth.
    assert found["awaited"] > (found["zeros"] + found["clicks"]) / 2
