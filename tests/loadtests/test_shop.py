"""A shop that sends only clicks learns as one that sends zeros, if its document says `wait`.

A small run on the demo's world, through a served HTTP path. Its feedback is exact, so that few
visits show what silence teaches; `loadtests/shop.py` makes the full run, with the demo's own noise.
"""

import asyncio
from pathlib import Path

import shop

from tests.end_to_end.servers import serving
from tests.waiting import wait_for

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
    """Without `wait` clicks teach next to nothing; with it, most of what zeros teach.

    Visitors come until it shows: how many that takes is up to luck and to the machine. Clicks alone
    stay at a fifth however many there are, and the mean over a round scatters by a hundredth or
    two: what teaches nothing never gets half-way from there to what zeros teach, 0.1 above at
    least.
    """
    with serving(tmp_path) as server:
        visits = {"visits": 500, "rate": 50, "wait": "1s", "changes": EXACT}

        def shows() -> bool:
            found = asyncio.run(shop.compare(server.url, server.key, **visits))
            half = (found["zeros"] + found["clicks"]) / 2
            return found["zeros"] > found["clicks"] + 0.1 and found["awaited"] > half

        wait_for("silence to teach", shows)
