"""The demo's minute convinces, as far as one process on a simulated clock can tell."""

import asyncio

from tests.rehearsal import rehearse


def test_a_minute_of_the_demo_convinces() -> None:
    # All noise follows from the seed, so this run is the same every time; not every seed convinces.
    # A learner that is fooled by noise, or a budget that does not last, shows here.
    run = asyncio.run(rehearse(1, idle=30.0))
    assert run.convinces, (run.favourites, run.last.means(), run.overall.means())


def test_a_few_seconds_do_not() -> None:
    run = asyncio.run(rehearse(1, seconds=4))
    assert not run.convinces
