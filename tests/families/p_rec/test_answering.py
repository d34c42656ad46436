"""Questions of one turn: each gets what it would get alone, and fails alone."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from discreet.errors import ClientErased, DiscreetError, InvalidArgument, StoreUnavailable
from discreet.families.observer import AnswerOutcome
from discreet.families.p_rec.history import MARK_BYTES
from discreet.families.questions import Answered, Ask
from discreet.state.memory import MemoryStore
from discreet.state.stores import PageWrite, Written
from discreet.state.tombstones import Tombstones
from discreet.store_metrics import OPERATIONS
from tests.families.p_rec.conftest import NAME, Bench, InterruptedStore, stored_document
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio


async def together(
    bench: Bench, *asked: tuple[str, str | None]
) -> Sequence[Answered | DiscreetError]:
    """Ask as different clients, or as the same one again, in one turn."""
    questions = [
        bench.recommender.question(Ask(recommender=NAME, client=client, round=round_id))
        for client, round_id in asked
    ]
    return await bench.recommender.answer(questions, [None] * len(questions))


def shown(answers: Sequence[Answered | DiscreetError]) -> list[Any]:
    return [one.decision.round if isinstance(one, Answered) else type(one) for one in answers]


async def test_everybody_in_a_turn_is_answered_and_pays_for_a_run(bench: Bench) -> None:
    await bench.full_round("monday")
    answers = await together(bench, *((f"client {number}", None) for number in range(6)))
    assert shown(answers) == ["monday"] * 6
    assert bench.observer.counts["client_runs", "begun"] == 6
    last = answers[-1]
    assert isinstance(last, Answered)
    assert last.ledger is not None
    run = bench.recommender.run_charge
    # All of them see the ledger after all of their debits.
    assert last.ledger.answers.nano_epsilon == 6 * run.nano_epsilon
    for number in range(6):
        history = (await bench.history(f"client {number}")).records
        assert len(history) == 2, "the run, and its answer"


async def test_a_client_who_asks_twice_in_a_turn_is_shown_the_same(bench: Bench) -> None:
    await bench.full_round("monday")
    answers = await together(bench, ("ann", None), ("bob", None), ("ann", None), ("ann", "monday"))
    outcomes = [one.outcome for one in answers if isinstance(one, Answered)]
    assert outcomes == [
        AnswerOutcome.PERSONALISED,
        AnswerOutcome.PERSONALISED,
        AnswerOutcome.REPEATED,
        AnswerOutcome.REPEATED,
    ]
    assert bench.observer.counts["client_runs", "begun"] == 2


async def test_a_question_that_cannot_be_answered_harms_nobody(bench: Bench) -> None:
    await bench.full_round("monday")
    answers = await together(bench, ("ann", "monday"), ("eve", "never"), ("bob", None))
    assert shown(answers) == ["monday", InvalidArgument, "monday"]
    assert await bench.recommender.clients.read(bench.recommender.principal("eve")) is None


async def test_whom_another_worker_was_faster_for_is_shown_what_that_one_drew() -> None:
    store = InterruptedStore()
    bench = Bench(store)
    for name in ("monday", "tuesday"):
        await bench.full_round(name)
    for client in ("ann", "bob"):
        await bench.give_feedback(await bench.ask(client), 1.0, client)
    elsewhere: list[Answered] = []

    async def answer_elsewhere() -> None:
        elsewhere.append(await bench.another().ask("ann"))

    store.before_write = (8, answer_elsewhere())
    ann, bob = await together(bench, ("ann", None), ("bob", None))
    assert isinstance(ann, Answered)
    assert isinstance(bob, Answered)
    assert ann.outcome is AnswerOutcome.REPEATED
    assert ann.decision == elsewhere[0].decision
    assert bob.outcome is AnswerOutcome.PERSONALISED


async def test_an_erasure_meanwhile_takes_back_that_clients_answer_only() -> None:
    store = InterruptedStore()
    bench = Bench(store)
    await bench.full_round("monday")
    await bench.full_round("tuesday")
    for client in ("ann", "bob"):
        await bench.give_feedback(await bench.ask(client), 1.0, client)

    store.before_write = (8, bench.another().recommender.forget("ann"))
    answers = await together(bench, ("ann", None), ("bob", None))
    assert shown(answers)[0] is ClientErased
    assert isinstance(answers[1], Answered)
    assert await bench.recommender.clients.read(bench.recommender.principal("ann")) is None
    assert len((await bench.history("bob")).records) == 3


async def test_an_answer_is_never_written_into_the_history_that_follows_an_erasure() -> None:
    store = InterruptedStore()
    bench = Bench(store)
    for name in ("monday", "tuesday"):
        await bench.full_round(name)
    await bench.give_feedback(await bench.ask(), 1.0)

    async def begin_anew() -> None:
        elsewhere = bench.another()
        await elsewhere.recommender.forget("ann")
        for _ in range(2):
            await elsewhere.give_feedback(await elsewhere.ask(), 1.0)

    # The new history is as long as the one that was read.
    store.before_write = (8, begin_anew())
    (answer,) = await together(bench, ("ann", None))
    assert isinstance(answer, ClientErased)
    assert len((await bench.history()).records) == 2


async def test_a_history_begun_during_an_erasure_is_not_left() -> None:
    store = InterruptedStore()
    bench = Bench(store)
    await bench.full_round("monday")

    async def erase() -> None:
        await Tombstones(store).mark(bench.recommender.principal("ann"))
        await bench.another().recommender.forget("ann")

    store.before_write = (MARK_BYTES, erase())
    answers = await together(bench, ("ann", None), ("bob", None))
    assert shown(answers) == [ClientErased, "monday"]
    assert await bench.recommender.clients.read(bench.recommender.principal("ann")) is None
    (again,) = await together(bench, ("ann", None))
    assert isinstance(again, Answered)


async def test_a_turn_of_known_clients_asks_the_store_twice() -> None:
    """Once to read, with how often votes were erased; once to write, with the voters' ledger."""
    store = CountingStore()
    bench = Bench(store, stored_document(privacy={"budget": {"epsilon": 1e3, "delta": 1e-6}}))
    for name in ("monday", "tuesday"):
        await bench.full_round(name)
        await bench.ask("somebody else", round=name)
    for name in ("monday", "tuesday"):
        store.calls.clear()
        await together(bench, *((f"client {number}", name) for number in range(20)))
    assert store.calls == ["read_pages", "versions", "write_pages", "ledgers"]


class LosingStore(MemoryStore):
    """Loses what is written to some pages."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: set[bytes] = set()

    async def write_pages(  # type: ignore[override]
        self, writes: Sequence[PageWrite]
    ) -> Sequence[Written | DiscreetError]:
        kept = iter(await super().write_pages([one for one in writes if one.page not in self.lost]))
        return [StoreUnavailable() if one.page in self.lost else next(kept) for one in writes]


class CountingStore(MemoryStore):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name in OPERATIONS:
            self.calls.append(name)
        return super().__getattribute__(name)


async def test_an_answer_whose_fate_is_unknown_is_not_shown_and_harms_nobody() -> None:
    store = LosingStore()
    bench = Bench(store, stored_document())
    await bench.full_round("monday")
    await bench.full_round("tuesday")
    for client in ("ann", "bob"):
        await bench.give_feedback(await bench.ask(client), 1.0, client)
    recommender = bench.recommender
    store.lost.add(recommender.clients.page(recommender.principal("ann")))
    answers = await together(bench, ("ann", None), ("bob", None))
    assert shown(answers) == [StoreUnavailable, "tuesday"]


async def test_turns_that_share_clients_wait_for_each_other_and_not_in_a_circle(
    bench: Bench,
) -> None:
    await bench.full_round("monday")
    async with asyncio.timeout(PATIENCE):
        both = await asyncio.gather(
            together(bench, ("ann", None), ("bob", None), ("eve", None)),
            together(bench, ("eve", None), ("bob", None), ("ann", None)),
        )
    items = [[each.decision.items for each in turn if isinstance(each, Answered)] for turn in both]
    assert items[0] == items[1][::-1]
    assert bench.observer.counts["client_runs", "begun"] == 3
