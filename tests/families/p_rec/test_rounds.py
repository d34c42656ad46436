"""Rounds: made once, closed once, found by name and by number."""

import pytest

from discreet.families.p_rec.document import VotersDocument
from discreet.families.p_rec.family import VotersFamily
from discreet.errors import InvalidArgument
from discreet.state.memory import MemoryStore
from tests.families.p_rec.conftest import NAME, Bench, document, open_bench

pytestmark = pytest.mark.anyio


async def test_making_a_round_again_changes_nothing(bench: Bench) -> None:
    desk, recommender = await bench.desk(), await bench.recommender()
    one, new = await desk.rounds.make(
        bench.runtime, recommender, round_id="monday", objects=["a", "b"]
    )
    assert new
    again, new = await desk.rounds.make(
        bench.runtime, recommender, round_id="monday", objects=["a", "b"]
    )
    assert not new
    assert again == one
    with pytest.raises(InvalidArgument) as refusal:
        await desk.rounds.make(bench.runtime, recommender, round_id="monday", objects=["b", "a"])
    assert refusal.value.argument == "id"


async def test_a_round_without_a_name_gets_one(bench: Bench) -> None:
    desk, recommender = await bench.desk(), await bench.recommender()
    made = [
        await desk.rounds.make(bench.runtime, recommender, round_id=None, objects=["a", "b"])
        for _ in range(2)
    ]
    assert made[0][0].id != made[1][0].id


@pytest.mark.parametrize("objects", [["a"], ["a", "b", "c"], ["a", "a"], []])
async def test_unusable_objects_are_refused_and_nothing_is_stored(
    bench: Bench, objects: list[str]
) -> None:
    desk, recommender = await bench.desk(), await bench.recommender()
    with pytest.raises(InvalidArgument) as refusal:
        await desk.rounds.make(bench.runtime, recommender, round_id="r", objects=objects)
    assert refusal.value.argument == "objects"
    assert await bench.runtime.store.roster_size(roster=recommender.rounds_roster) == 0


async def test_a_round_left_half_made_is_finished_by_making_it_again(bench: Bench) -> None:
    recommender, store = await bench.recommender(), bench.runtime.store
    # Interrupted after its number was given: it is no round yet.
    await store.enrol(roster=recommender.rounds_roster, names=[recommender.round_name("monday")])
    with pytest.raises(InvalidArgument):
        await bench.votes("monday", {"ann": "a"})
    await bench.round("tuesday")
    assert (await bench.ask()).round == "tuesday"
    await bench.round("monday")
    assert await bench.votes("monday", {"ann": "a"}) == 1


async def test_a_round_without_its_page_can_be_answered_from(bench: Bench) -> None:
    await bench.round("monday")
    recommender = await bench.recommender()
    await bench.runtime.store.erase(keys=[recommender.ballots(0)])
    assert (await bench.ask()).round == "monday"
    with pytest.raises(InvalidArgument):
        await bench.votes("monday", {"ann": "a"})


async def test_the_newest_rounds_are_listed_in_their_order(bench: Bench) -> None:
    for name in ("x", "y", "z"):
        await bench.round(name)
    await bench.ask(round="y")
    desk, recommender = await bench.desk(), await bench.recommender()
    listed = await desk.rounds.latest(bench.runtime, recommender)
    assert [(one.id, closed) for one, closed in listed] == [
        ("x", False),
        ("y", True),
        ("z", False),
    ]
    assert len(await desk.rounds.latest(bench.runtime, recommender, most=2)) == 2


async def test_removing_erases_everything_but_the_ledger(bench: Bench, memory: MemoryStore) -> None:
    await bench.full_round("monday")
    await bench.ask()
    recommender = await bench.recommender()
    await bench.runtime.registry.remove(NAME)
    store, who = bench.runtime.store, bench.runtime.principals.client(NAME, "ann")
    assert await store.read_page(page=recommender.history(who)) == b""
    assert await store.read_page(page=recommender.ballots(0)) == b""
    assert (await store.load(keys=[recommender.definition(0)])) == [None]
    for roster in (recommender.rounds_roster, recommender.voters_roster):
        assert await store.roster_size(roster=roster) == 0
    population = bench.runtime.principals.client(NAME, recommender.population)
    assert (await store.balance(principal=population)).nano_epsilon > 0


async def test_the_budget_shown_is_the_voters(bench: Bench) -> None:
    family = bench.runtime.families["p-rec"]
    await bench.full_round("monday")
    answer = await bench.ask()
    report = await family.standing(bench.runtime, await bench.recommender(), "anybody")
    assert report.spent == answer.privacy.spent


class TestDocument:
    @pytest.mark.parametrize(
        ("changes", "argument"),
        [
            ({"peers": 11}, "peers"),
            ({"peers": 2000}, "peers"),
            ({"horizon": 3, "radius": 1}, "horizon"),
            ({"horizon": 60, "radius": 40}, "horizon"),
            ({"objects": 200, "horizon": 1_000_000, "peers": 1200, "voters": 2000}, "sharpness"),
            ({"privacy": {"budget": {"epsilon": 0.1, "delta": 1e-6}}}, "privacy.budget"),
        ],
    )
    async def test_what_the_theorems_do_not_cover_is_not_stored(
        self, memory: MemoryStore, changes: dict[str, object], argument: str
    ) -> None:
        with pytest.raises(InvalidArgument) as refusal:
            await open_bench(memory, **changes)
        assert refusal.value.argument == argument
        assert (await memory.registry()).documents == {}

    @pytest.mark.parametrize(
        "changes",
        [
            {"items": ["a"]},
            {"objects": 1},
            {"privacy": {"budget": {"epsilon": 20.0}}},
            {"privacy": {"budget": {"epsilon": 20.0, "delta": 1e-9}, "accounting": "zcdp"}},
            {"privacy": {"run_delta": 0.1}},
        ],
    )
    def test_unusable_fields_are_refused(self, changes: dict[str, object]) -> None:
        with pytest.raises(ValueError, match=r".+"):
            document(**changes)

    async def test_what_a_run_was_charged_for_cannot_change(self, bench: Bench) -> None:
        for changes in ({"peers": 160}, {"radius": 1}, {"horizon": 70}, {"voters": 2000}):
            with pytest.raises(InvalidArgument) as refusal:
                await bench.runtime.registry.put(NAME, document(**changes))
            assert refusal.value.argument in changes
        wider = document(privacy={"budget": {"epsilon": 30.0, "delta": 1e-6}})
        assert not await bench.runtime.registry.put(NAME, wider)

    def test_a_document_survives_being_stored(self) -> None:
        one = document(radius=1, voting_ends="when_closed")
        assert VotersDocument.model_validate(one.model_dump()) == one

    async def test_compiling_has_no_effect(self, bench: Bench) -> None:
        family = VotersFamily()
        compiled = family.compile(name=NAME, stored=(await bench.recommender()).stored)
        assert compiled.charge == (await bench.recommender()).charge
