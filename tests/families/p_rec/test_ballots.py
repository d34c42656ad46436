"""Votes: packed by voters' numbers, all or none, taken back when asked to."""

import asyncio

import numpy as np
import pytest

from discreet.families.p_rec.ballots import BallotCache, Vote, cast, stretches
from discreet.errors import InvalidArgument
from discreet.state.memory import MemoryStore
from tests.families.p_rec.conftest import NAME, Bench, open_bench

pytestmark = pytest.mark.anyio


async def page(bench: Bench, number: int = 0) -> bytes:
    recommender = await bench.recommender()
    return await bench.runtime.store.read_page(page=recommender.ballots(number))


async def voters(bench: Bench) -> int:
    recommender = await bench.recommender()
    return await bench.runtime.store.roster_size(roster=recommender.voters_roster)


async def test_a_vote_is_a_byte(bench: Bench) -> None:
    await bench.round("monday")
    assert await bench.votes("monday", {"ann": "b", "bob": "a", "cec": "b"}) == 3
    assert await page(bench) == bytes([1, 2, 1, 2])


async def test_the_last_vote_counts(bench: Bench) -> None:
    await bench.round("monday")
    await bench.votes("monday", {"ann": "a", "bob": "a"})
    await bench.votes("monday", {"ann": "b"})
    assert await page(bench) == bytes([1, 2, 1])
    votes = [Vote("monday", "bob", "b"), Vote("monday", "bob", "a")]
    desk = await bench.desk()
    await cast(bench.runtime, await bench.recommender(), desk.rounds, votes)
    assert await page(bench) == bytes([1, 2, 1])


async def test_rounds_have_pages_of_their_own(bench: Bench) -> None:
    await bench.round("monday")
    await bench.round("tuesday")
    desk = await bench.desk()
    votes = [Vote("monday", "ann", "a"), Vote("tuesday", "bob", "b"), Vote("tuesday", "ann", "a")]
    await cast(bench.runtime, await bench.recommender(), desk.rounds, votes)
    assert await page(bench, 0) == bytes([1, 1])
    assert await page(bench, 1) == bytes([1, 1, 2])


@pytest.mark.parametrize(
    ("vote", "argument"),
    [
        (Vote("sunday", "cec", "a"), "votes.1.round"),
        (Vote("closed", "cec", "a"), "votes.1.round"),
        (Vote("monday", "cec", "z"), "votes.1.object"),
    ],
)
async def test_if_one_vote_cannot_be_used_none_is_stored(
    bench: Bench, vote: Vote, argument: str
) -> None:
    await bench.round("closed")
    await bench.ask(round="closed")
    await bench.round("monday")
    before = await voters(bench)
    desk = await bench.desk()
    with pytest.raises(InvalidArgument) as refusal:
        await cast(
            bench.runtime,
            await bench.recommender(),
            desk.rounds,
            [Vote("monday", "ann", "a"), vote],
        )
    assert refusal.value.argument == argument
    assert await page(bench, 1) == b"\x01"
    assert await voters(bench) == before


async def test_no_more_voters_than_were_promised(memory: MemoryStore) -> None:
    bench = await open_bench(memory, voters=200)
    await bench.round("monday")
    await bench.votes("monday", {f"v{at}": "a" for at in range(199)})
    with pytest.raises(InvalidArgument) as refusal:
        await bench.votes("monday", {"x": "a", "y": "a"})
    assert refusal.value.argument == "voter"
    assert await voters(bench) == 199
    await bench.votes("monday", {"x": "a"})
    with pytest.raises(InvalidArgument):
        await bench.votes("monday", {"y": "a"})
    # Those who are in may go on voting.
    assert await bench.votes("monday", {"v0": "b", "x": "b"}) == 2
    assert len(await page(bench)) == 201
    await bench.runtime.close()


async def test_a_vote_that_loses_the_race_with_closing_is_not_stored(
    bench: Bench, memory: MemoryStore
) -> None:
    # This worker believes that the round is open; another one has closed it.
    other = await open_bench(memory)
    await bench.round("monday")
    await bench.votes("monday", {"ann": "a"})
    await other.ask(round="monday")
    before = await page(bench)
    with pytest.raises(InvalidArgument) as refusal:
        await bench.votes("monday", {"bob": "a"})
    assert refusal.value.argument == "round"
    assert await page(bench) == before
    await other.runtime.close()


async def test_votes_can_be_taken_back(bench: Bench) -> None:
    family = bench.runtime.families["p-rec"]
    for name in ("monday", "tuesday"):
        await bench.round(name)
        await bench.votes(name, {f"v{at}": "a" for at in range(400)} | {"ann": "b"})
    await bench.tell(await bench.ask("client"), 1.0)
    desk = await bench.desk()
    assert await family.forget(bench.runtime, await bench.recommender(), "ann") == 2
    assert (await page(bench, 0))[401] == (await page(bench, 1))[401] == 0
    await bench.ask("client")
    # What the worker had in memory is read anew.
    ballots = await desk.ballots.of(bench.runtime, await bench.recommender(), 0)
    assert ballots[400] == 0
    assert np.count_nonzero(ballots) == 400
    # Erased is erased: a second life would have its credit anew.
    await bench.round("wednesday")
    with pytest.raises(InvalidArgument) as refusal:
        await bench.votes("wednesday", {"ann": "a"})
    assert refusal.value.argument == "voter"
    assert await bench.votes("wednesday", {"v1": "a"}) == 1
    assert await family.forget(bench.runtime, await bench.recommender(), "nobody") == 0


def test_neighbours_are_written_together() -> None:
    assert stretches({7: 1, 3: 2, 4: 1, 5: 2, 9: 1}) == [
        (3, b"\x02\x01\x02"),
        (7, b"\x01"),
        (9, b"\x01"),
    ]


async def test_the_cache_forgets_the_longest_unused(bench: Bench) -> None:
    cache = BallotCache(most_bytes=25)
    recommender = await bench.recommender()
    for number in range(4):
        await bench.round(f"r{number}")
        await bench.votes(f"r{number}", {f"v{at}": "a" for at in range(10)})
    for number in (0, 1, 0, 2):
        await cache.of(bench.runtime, recommender, number)
    store = bench.runtime.store
    await store.erase(keys=[recommender.ballots(number) for number in range(4)])
    assert len(await cache.of(bench.runtime, recommender, 0)) == 10
    assert len(await cache.of(bench.runtime, recommender, 1)) == 0
    assert NAME


async def test_taking_votes_back_in_the_middle_of_a_replay_begins_it_again(bench: Bench) -> None:
    for number in range(12):
        await bench.round(f"r{number}")
        await bench.votes(f"r{number}", {f"v{at}": "a" for at in range(300)} | {"ann": "b"})
        await bench.tell(await bench.ask("client"), 1.0)
    desk, recommender = await bench.desk(), await bench.recommender()
    who = bench.runtime.principals.client(NAME, "client")
    known = desk.clients.get(who)
    assert known is not None
    so_far = known.history.run()
    assert so_far is not None
    known.forget_credits()
    replay = asyncio.ensure_future(
        known.credits_for(bench.runtime, recommender, desk.ballots, so_far)
    )
    await asyncio.sleep(0)
    assert known.heard == 8  # it has stopped to let others have their turn
    desk.notice_erasures(1)
    credits = await replay
    assert credits is known.credits
    assert known.heard == 11  # the last word is in the store and was not read yet
    assert credits.answered == 11
