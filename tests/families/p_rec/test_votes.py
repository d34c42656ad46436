"""Votes: packed by voters' numbers, all or none, erased when asked to."""

from collections.abc import Awaitable
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.p_rec.votes import Vote, stretches
from discreet.state.memory import MemoryStore
from tests.families.p_rec.conftest import Bench, InterruptedStore, stored_document

pytestmark = pytest.mark.anyio


async def page(bench: Bench, number: int = 0) -> bytes:
    return await bench.store.read_page(page=bench.rounds.page(number))


async def test_a_vote_is_a_byte(bench: Bench) -> None:
    await bench.round("monday")
    assert await bench.votes("monday", {"ann": "b", "bob": "a", "cec": "b"}) == 3
    assert await page(bench) == bytes([1, 2, 1, 2])
    assert not bench.observer.counts, "whether somebody votes is private"


async def test_the_last_vote_counts(bench: Bench) -> None:
    await bench.round("monday")
    await bench.votes("monday", {"ann": "a", "bob": "a"})
    await bench.votes("monday", {"ann": "b"})
    assert await page(bench) == bytes([1, 2, 1])
    await bench.votes_of.cast([Vote("monday", "bob", "b"), Vote("monday", "bob", "a")])
    assert await page(bench) == bytes([1, 2, 1])


async def test_rounds_have_pages_of_their_own(bench: Bench) -> None:
    await bench.round("monday")
    await bench.round("tuesday")
    votes = [Vote("monday", "ann", "a"), Vote("tuesday", "bob", "b"), Vote("tuesday", "ann", "a")]
    await bench.votes_of.cast(votes)
    assert await page(bench, 0) == bytes([1, 1])
    assert await page(bench, 1) == bytes([1, 1, 2])


async def test_many_votes_are_counted_like_few(bench: Bench) -> None:
    await bench.round("monday")
    await bench.votes("monday", {f"v{at}": "ab"[at % 2] for at in range(1000)})
    many = [Vote("monday", f"v{at}", "ba"[at % 2]) for at in range(1000)]
    assert await bench.votes_of.cast([*many, many[0]]) == 1001
    assert await page(bench) == b"\x01" + bytes([2, 1]) * 500


@pytest.mark.parametrize(
    ("vote", "argument"),
    [
        (Vote("sunday", "cec", "a"), "votes[1].round"),
        (Vote("closed", "cec", "a"), "votes[1].round"),
        (Vote("monday", "cec", "z"), "votes[1].object"),
    ],
)
async def test_if_one_vote_cannot_be_used_none_is_stored(
    bench: Bench, vote: Vote, argument: str
) -> None:
    await bench.round("closed")
    await bench.ask(round="closed")
    await bench.round("monday")
    with pytest.raises(InvalidArgument) as refusal:
        await bench.votes_of.cast([Vote("monday", "ann", "a"), vote])
    assert refusal.value.argument == argument
    assert await page(bench, 1) == b"\x01"
    assert await bench.votes_of.count_voters() == 0


async def test_no_more_voters_than_were_promised() -> None:
    bench = Bench(stored=stored_document(voters=200))
    await bench.round("monday")
    await bench.votes("monday", {f"v{at}": "a" for at in range(199)})
    with pytest.raises(InvalidArgument) as refusal:
        await bench.votes("monday", {"x": "a", "y": "a"})
    assert refusal.value.argument == "voter"
    assert await bench.votes_of.count_voters() == 199
    await bench.votes("monday", {"x": "a"})
    with pytest.raises(InvalidArgument):
        await bench.votes("monday", {"y": "a"})
    # Those who are in may go on voting.
    assert await bench.votes("monday", {"v0": "b", "x": "b"}) == 2
    assert len(await page(bench)) == 201


async def test_a_vote_for_a_round_that_another_worker_closed_is_not_stored(bench: Bench) -> None:
    await bench.round("monday")
    await bench.votes("monday", {"ann": "a"})
    await bench.another().ask(round="monday")
    before = await page(bench)
    with pytest.raises(InvalidArgument) as refusal:
        await bench.votes("monday", {"bob": "a"})
    assert refusal.value.argument == "round"
    assert await page(bench) == before


async def test_also_if_it_is_closed_after_the_vote_was_checked() -> None:
    store = InterruptedStore()
    bench = Bench(store)
    await bench.round("monday")
    await bench.votes("monday", {"ann": "a"})
    other = bench.another().rounds
    store.before_write = (1, other.close(await other.require("monday")))
    with pytest.raises(InvalidArgument) as refusal:
        await bench.votes("monday", {"ann": "b"})
    assert refusal.value.argument == "round"
    assert await page(bench) == bytes([2, 1])


async def test_voters_who_slipped_in_beyond_the_promise_are_silent() -> None:
    # Two workers that let somebody in at the same moment may exceed the number together.
    bench = Bench(stored=stored_document(voters=200))
    await bench.round("monday")
    await bench.store.write_page(page=bench.rounds.page(0), writes=[(1, b"\x01" * 203)])
    (ballots,) = await bench.votes_of.ballots([0])
    assert len(ballots) == 200


class TestErasing:
    async def test_votes_can_be_erased(self, bench: Bench) -> None:
        for name in ("monday", "tuesday"):
            await bench.round(name)
            await bench.votes(name, {f"v{at}": "a" for at in range(400)} | {"ann": "b"})
        await bench.give_feedback(await bench.ask("client"), 1.0, "client")
        assert await bench.recommender.forget("ann") == 2
        assert (await page(bench, 0))[401] == (await page(bench, 1))[401] == 0
        assert await bench.recommender.forget("nobody") == 0
        # A voter who could begin again would have their credit again.
        await bench.round("wednesday")
        with pytest.raises(InvalidArgument) as refusal:
            await bench.votes("wednesday", {"ann": "a"})
        assert refusal.value.argument == "voter"
        assert await bench.votes("wednesday", {"v1": "a"}) == 1

    async def test_every_worker_notices(self, bench: Bench) -> None:
        workers = [bench, bench.another(), bench.another()]
        await bench.round("monday")
        await bench.votes("monday", {f"v{at}": "a" for at in range(400)} | {"ann": "b"})
        for number, worker in enumerate(workers):
            await worker.ask(f"client {number}")
            assert np.count_nonzero((await worker.votes_of.ballots([0]))[0]) == 401
        await bench.recommender.forget("ann")
        for number, worker in enumerate(workers):
            await worker.ask(f"client {number}")
            (ballots,) = await worker.votes_of.ballots([0])
            assert ballots[400] == 0
            assert np.count_nonzero(ballots) == 400

    async def test_what_was_read_before_an_erasure_is_not_remembered_after_it(self) -> None:
        class Slow(MemoryStore):
            meanwhile: Any = None

            def read_page(
                self, *, page: bytes, start: int = 0, end: int | None = None
            ) -> Awaitable[bytes]:
                read = super().read_page(page=page, start=start, end=end)
                meanwhile, self.meanwhile = self.meanwhile, None
                return read if meanwhile is None else self._late(read, meanwhile)

            async def _late(self, read: Awaitable[bytes], meanwhile: Any) -> bytes:
                await meanwhile()
                return await read

        store = Slow()
        bench = Bench(store)
        await bench.round("monday")
        await bench.votes("monday", {"ann": "b"})
        await bench.rounds.close(await bench.rounds.require("monday"))

        async def erase() -> None:
            await bench.votes_of.erase_voter("ann")
            (version,) = await store.versions(keys=[bench.votes_of.erasures_key])
            bench.votes_of.notice_erasures(version)

        store.meanwhile = erase
        assert [ballots.tolist() for ballots in await bench.votes_of.ballots([0])] == [[2]]
        assert [ballots.tolist() for ballots in await bench.votes_of.ballots([0])] == [[0]]

    async def test_an_erasure_wins_against_a_vote_that_is_on_its_way(self) -> None:
        store = InterruptedStore()
        bench = Bench(store)
        await bench.round("monday")
        await bench.votes("monday", {"ann": "b"})
        store.before_write = (2, bench.another().recommender.forget("ann"))
        await bench.votes("monday", {"ann": "a", "bob": "a"})
        assert await page(bench) == bytes([1, 0, 1])


def test_neighbours_are_written_together() -> None:
    assert stretches({7: 1, 3: 2, 4: 1, 5: 2, 9: 1}) == [
        (3, b"\x02\x01\x02"),
        (7, b"\x01"),
        (9, b"\x01"),
    ]


async def test_the_cache_forgets_the_longest_unused(bench: Bench) -> None:
    votes = bench.votes_of
    votes._ballots.most = 450
    for number in range(4):
        await bench.round(f"r{number}")
        await bench.votes(f"r{number}", {f"v{at}": "a" for at in range(10)})
    for number in (0, 1, 0, 2):
        await votes.ballots([number])
    await bench.store.erase(keys=[bench.rounds.page(number) for number in range(4)])
    first, second = await votes.ballots([0, 1])
    assert (len(first), len(second)) == (10, 0)
    # What does not fit at all is used, and not remembered.
    votes._ballots.clear()
    votes._ballots.most = 100
    assert [len(each) for each in await votes.ballots([0, 1])] == [0, 0]
    assert len(votes._ballots) == 0
