"""Rounds: made once, closed once, found by id and by number."""

import pytest

from discreet.errors import InvalidArgument, StoreDamaged
from discreet.families.p_rec import rounds as rounds_module
from tests.families.p_rec.conftest import Bench

pytestmark = pytest.mark.anyio


async def test_making_a_round_again_changes_nothing(bench: Bench) -> None:
    one, new = await bench.rounds.make(round_id="monday", objects=["a", "b"])
    assert new
    again, new = await bench.rounds.make(round_id="monday", objects=["a", "b"])
    assert not new
    assert again == one
    with pytest.raises(InvalidArgument) as refusal:
        await bench.rounds.make(round_id="monday", objects=["b", "a"])
    assert refusal.value.argument == "id"


async def test_a_round_without_an_id_gets_one(bench: Bench) -> None:
    made = [await bench.rounds.make(round_id=None, objects=["a", "b"]) for _ in range(2)]
    assert made[0][0].id != made[1][0].id


@pytest.mark.parametrize("objects", [["a"], ["a", "b", "c"], ["a", "a"], []])
async def test_unusable_objects_are_refused_and_nothing_is_stored(
    bench: Bench, objects: list[str]
) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        await bench.rounds.make(round_id="r", objects=objects)
    assert refusal.value.argument == "objects"
    assert await bench.rounds.count() == 0


async def test_rounds_are_found_by_workers_that_have_not_met_them(bench: Bench) -> None:
    one, _ = await bench.rounds.make(round_id="monday", objects=["a", "b"])
    other = bench.another().rounds
    assert await other.by_id("monday") == one
    assert await bench.another().rounds.by_number(0) == one
    assert await other.by_id("tuesday") is None
    assert await other.by_number(1) is None
    with pytest.raises(InvalidArgument) as refusal:
        await other.require("tuesday", argument="votes[3].round")
    assert refusal.value.argument == "votes[3].round"


@pytest.mark.parametrize("content", [b"[]", b"\xff", b"[" * 100_000, b'{"id": "monday"}'])
async def test_a_round_that_cannot_be_read_is_no_surprise(bench: Bench, content: bytes) -> None:
    await bench.rounds.make(round_id="monday", objects=["a", "b"])
    await bench.store.save(key=bench.rounds.definition(0), content=content)
    with pytest.raises(StoreDamaged):
        await bench.another().rounds.by_id("monday")


async def test_a_round_left_half_made_is_finished_by_making_it_again(bench: Bench) -> None:
    # Interrupted after its number was given: it is no round yet.
    name = rounds_module._name("monday")
    await bench.store.enrol(roster=bench.rounds._roster, names=[name])
    with pytest.raises(InvalidArgument):
        await bench.votes("monday", {"ann": "a"})
    await bench.round("tuesday")
    assert (await bench.ask()).decision.round == "tuesday"
    await bench.round("monday")
    assert await bench.votes("monday", {"ann": "a"}) == 1


async def test_a_round_without_its_page_can_be_answered_from(bench: Bench) -> None:
    await bench.round("monday")
    await bench.store.erase(keys=[bench.rounds.page(0)])
    assert (await bench.ask()).decision.round == "monday"
    with pytest.raises(InvalidArgument):
        await bench.another().votes("monday", {"ann": "a"})


async def test_closing_is_seen_by_everybody(bench: Bench) -> None:
    await bench.round("monday")
    one = await bench.rounds.require("monday")
    other = bench.another().rounds
    assert not await other.is_closed(one)
    await bench.rounds.close(one)
    await bench.rounds.close(one)
    assert await other.is_closed(one)


async def test_the_newest_rounds_are_listed_in_their_order(bench: Bench) -> None:
    for name in ("x", "y", "z"):
        await bench.round(name)
    await bench.ask(round="y")
    listed = await bench.rounds.latest()
    assert [(one.id, closed) for one, closed in listed] == [
        ("x", False),
        ("y", True),
        ("z", False),
    ]
    assert len(await bench.rounds.latest(most=2)) == 2


async def test_memory_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds_module, "MOST_REMEMBERED", 3)
    small = bench.another().rounds
    for number in range(10):
        one, _ = await small.make(round_id=f"r{number}", objects=["a", "b"])
        await small.close(one)
    assert max(len(small._by_number), len(small._number_of)) == 3
    # What was forgotten is read again.
    first = await small.require("r0")
    assert (first.number, await small.is_closed(first)) == (0, True)
