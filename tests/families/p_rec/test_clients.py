"""What a worker remembers of clients: a cache that can be lost at any moment."""

import asyncio

import pytest

from discreet.errors import StoreDamaged
from discreet.families.p_rec.clients import ClientState, OwnRound
from discreet.families.p_rec.credits import Credits, VoteTally
from discreet.families.p_rec.history import MARK_BYTES, ClientHistory
from discreet.state.memory import MemoryStore
from tests.families.p_rec.conftest import VOTERS, Bench, stored_document

pytestmark = pytest.mark.anyio


async def tally_of(bench: Bench, client: str, number: int) -> tuple[int, list[int]]:
    """Return what a round would look like to a client now, by this worker's memory."""
    clients = bench.recommender.clients
    state = await clients.read(bench.recommender.principal(client))
    assert state is not None
    run = state.history.run()
    assert run is not None
    credits = await clients.credits(state, run)
    (ballots,) = await bench.votes_of.ballots([number])
    seen: VoteTally = credits.tally(ballots=ballots, objects=2)
    return seen.credit, seen.votes.tolist()


async def test_a_lost_cache_is_rebuilt_to_the_same_credits() -> None:
    # Credit for many contradictions; what that costs does not matter here.
    bench = Bench(
        MemoryStore(),
        stored_document(
            radius=4, diversity=8, privacy={"budget": {"epsilon": 1000.0, "delta": 1e-6}}
        ),
    )
    for number in range(9):
        name = f"r{number}"
        await bench.round(name)
        voted = {f"v{at}": "ab"[(at >> (number % 3)) % 2] for at in range(VOTERS)}
        voted |= {f"w{at}": "a" for at in range(number, 300)}
        await bench.votes(name, voted)
        answer = await bench.ask()
        if number < 8:
            await bench.give_feedback(answer, float(number % 2))
    other = bench.another()
    assert (await other.ask()).decision == (await bench.ask()).decision
    # The two take turns: each goes on from where it was, over what the other has written.
    for number, worker in enumerate((other, bench, other, bench)):
        await worker.full_round(f"late {number}", voters=300 + number)
        answer = await worker.ask(round=f"late {number}")
        if number % 2:
            await worker.give_feedback(answer, 1.0)
    fresh = bench.another()
    found = [await tally_of(worker, "ann", 8) for worker in (bench, other, fresh)]
    assert found[0] == found[1] == found[2]
    assert VOTERS < found[0][0] < 25 * (VOTERS + 300)


async def test_going_past_an_answer_that_is_not_stored_leaves_the_credits_alone(
    bench: Bench,
) -> None:
    for name in ("one", "two", "three"):
        await bench.full_round(name)
    first = await bench.ask(round="one")
    await bench.give_feedback(first, float(first.decision.items == ("a",)))
    await bench.ask(round="two")
    clients, client = bench.recommender.clients, bench.recommender.principal("ann")
    # Prepared twice, never stored: the pending answer counts as dislike, once each time.
    for _ in range(2):
        own = await clients.prepare(client, "three")
        assert own.skipped is not None
        assert own.view is not None
        kept = own.skipped.chosen == (1,)
        assert own.view.tally.credit == (VOTERS if kept else 0)
    assert await tally_of(bench, "ann", 1) == (VOTERS, [VOTERS, 0])


async def test_an_erasure_in_the_middle_of_a_replay_begins_it_again(bench: Bench) -> None:
    for number in range(12):
        await bench.round(f"r{number}")
        await bench.votes(f"r{number}", {f"v{at}": "a" for at in range(300)} | {"ann": "b"})
        await bench.give_feedback(await bench.ask("client"), 1.0, "client")
    fresh = bench.another()
    clients = fresh.recommender.clients
    state = await clients.read(fresh.recommender.principal("client"))
    assert state is not None
    run = state.history.run()
    assert run is not None

    async def erase_meanwhile() -> Credits | None:
        for _ in range(100):
            await asyncio.sleep(0)  # a replay lets others have their turn between two pieces
            if state.replayed == 8:
                break
        assert state.replayed == 8
        before = state.credits
        fresh.votes_of.notice_erasures(1)
        return before

    credits, before = await asyncio.gather(clients.credits(state, run), erase_meanwhile())
    assert credits is state.credits
    assert credits is not before
    assert (state.replayed, credits.answered) == (12, 12)


async def test_memory_is_bounded(bench: Bench) -> None:
    await bench.full_round("one")
    await bench.full_round("two")
    clients = bench.recommender.clients
    size = 3 * ClientState(ClientHistory(), b"page").held_bytes
    held = clients._states
    held.most = size
    for number in range(8):
        answer = await bench.ask(f"client {number}")
        await bench.give_feedback(answer, 1.0, f"client {number}")
        await bench.ask(f"client {number}", round="two")
        assert held.size <= size
        assert sum(state.held_bytes for state, _ in held._held.values()) <= size
    assert 1 <= len(held) < 8
    # Too large for the cache at all: it is answered, and not remembered.
    held.most = 10
    held.clear()
    assert (await bench.ask("client 0")).decision.round == "two"
    assert len(held) == 0


async def test_a_page_that_became_shorter_is_read_anew(bench: Bench) -> None:
    # A store that failed over may have lost the last answers.
    for name in ("one", "two"):
        await bench.full_round(name)
        await bench.give_feedback(await bench.ask(), 1.0)
    await bench.full_round("three")
    await bench.ask()
    store, page = bench.store, bench.recommender.clients.page(bench.recommender.principal("ann"))
    assert isinstance(store, MemoryStore)
    del store._pages[page][-16:]
    again = await bench.ask(round="three")
    assert again.decision.round == "three"
    assert len((await bench.history()).records) == 3


async def test_a_damaged_history_harms_its_client_only(bench: Bench) -> None:
    for name in ("one", "two"):
        await bench.full_round(name)
    for client in ("ann", "bob"):
        await bench.ask(client)
    store, clients = bench.store, bench.another().recommender.clients
    assert isinstance(store, MemoryStore)
    ann, bob = map(bench.recommender.principal, ("ann", "bob"))
    store._pages[clients.page(ann)][MARK_BYTES] = 200
    damaged, sound = await clients.prepare_each([(ann, None), (bob, None)])
    assert isinstance(damaged, StoreDamaged)
    assert isinstance(sound, OwnRound)
    with pytest.raises(StoreDamaged):
        await clients.read(ann)


async def test_a_round_that_was_answered_and_is_gone_is_missed(bench: Bench) -> None:
    await bench.full_round("one")
    await bench.ask()
    other = bench.another()
    await bench.store.erase(keys=[bench.rounds.definition(0)])
    with pytest.raises(StoreDamaged, match="no more"):
        await other.ask()
