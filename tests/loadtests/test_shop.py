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

    Visitors come until it shows; how many that takes is up to luck and to the machine. Clicks alone
    stay near 0.29, zeros reach 0.5. The last quarter of a round is 375 visits. One visit deviates
    by 0.21, or 0.32 where everybody gets the same, so that 0.125 between two that teach the same is
    more than five deviations: below 1e-6 over all rounds that patience allows.
    """
    with serving(tmp_path) as server:
        visits = {"visits": 1_500, "rate": 100, "wait": "1s", "changes": EXACT}

        def shows() -> bool:
            found = asyncio.run(shop.compare(server.url, server.key, **visits))
            taught = {name: found[name] - found["clicks"] for name in ("zeros", "awaited")}
            return min(taught.values()) > 0.125 and taught["awaited"] > taught["zeros"] / 2

        wait_for("silence to teach", shows)
