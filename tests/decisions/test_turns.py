"""What arrives in one turn of the loop is answered together, and each as if it were alone."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, cast

import pytest

from discreet.families.questions import Ask, Feedback
from discreet.decisions.clients import budget_of
from discreet.decisions.feedback import Receipt, give_feedback
from discreet.decisions.recommend import recommend
from discreet.decisions.recommender import Recommender
from discreet.decisions.runtime import Runtime
from discreet.decisions.turns import MOST, Turns
from discreet.errors import DiscreetError, InvalidArgument, RewardConflict, StoreUnavailable
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import document

pytestmark = pytest.mark.anyio

FILMS = cast(Recommender, "films")
BOOKS = cast(Recommender, "books")
"""All that turns ask of a recommender is that it is itself."""


class Family:
    """Doubles numbers once it is let; -1 fails alone, and `fails` fails for all."""

    def __init__(self) -> None:
        self.calls: list[tuple[Recommender, list[int]]] = []
        self.let = asyncio.Event()
        self.let.set()
        self.refuses: Exception | None = None
        self.fails: Exception | None = None
        self.turns: Turns[int, int] = Turns(self.answer)

    def answer(
        self, recommender: Recommender, questions: Sequence[int]
    ) -> Awaitable[Sequence[int | DiscreetError]]:
        self.calls.append((recommender, list(questions)))
        if self.refuses is not None and recommender is FILMS:
            raise self.refuses
        return self._answer(questions)

    async def _answer(self, questions: Sequence[int]) -> list[int | DiscreetError]:
        await self.let.wait()
        if self.fails is not None:
            raise self.fails
        return [StoreUnavailable("alone") if one == -1 else 2 * one for one in questions]

    async def nothing_is_left(self) -> None:
        await asyncio.sleep(0)
        assert self.turns._waiting == {}
        assert self.turns._running == set()


async def outcomes(*asked: "asyncio.Future[int]") -> list[Any]:
    async with asyncio.timeout(10):
        return await asyncio.gather(*asked, return_exceptions=True)


@pytest.fixture
async def family(anyio_backend: str) -> AsyncIterator[Family]:
    one = Family()
    yield one
    await one.nothing_is_left()


async def test_questions_of_one_turn_reach_the_family_in_one_call_in_order(family: Family) -> None:
    first = [family.turns.join(FILMS, number) for number in range(5)]
    assert family.calls == [], "nothing is asked before the turn is over"
    assert await outcomes(*first) == [0, 2, 4, 6, 8]
    assert await outcomes(family.turns.join(FILMS, 9)) == [18]
    assert family.calls == [(FILMS, [0, 1, 2, 3, 4]), (FILMS, [9])]


async def test_two_recommenders_in_one_turn_are_asked_apart_and_at_once(family: Family) -> None:
    family.let.clear()
    asked = [family.turns.join(each, n) for n, each in enumerate([FILMS, BOOKS, FILMS, BOOKS])]
    await asyncio.sleep(0)
    assert family.calls == [(FILMS, [0, 2]), (BOOKS, [1, 3])]
    family.let.set()
    assert await outcomes(*asked) == [0, 2, 4, 6]


async def test_the_next_turn_does_not_wait_for_the_answers_of_this_one(family: Family) -> None:
    family.let.clear()
    first = family.turns.join(FILMS, 1)
    await asyncio.sleep(0)
    second = family.turns.join(FILMS, 2)
    await asyncio.sleep(0)
    assert family.calls == [(FILMS, [1]), (FILMS, [2])]
    assert len(family.turns._running) == 2
    family.let.set()
    assert await outcomes(first, second) == [2, 4]


async def test_an_error_of_one_is_its_own(family: Family) -> None:
    first, second, third = (family.turns.join(FILMS, number) for number in (1, -1, 3))
    with pytest.raises(StoreUnavailable, match="alone"):
        await second
    assert await outcomes(first, third) == [2, 6]


@pytest.mark.parametrize("error", [StoreUnavailable("all"), RuntimeError("a fault of ours")])
async def test_what_fails_for_all_reaches_each(family: Family, error: Exception) -> None:
    family.fails = error
    found = await outcomes(*(family.turns.join(FILMS, number) for number in range(3)))
    assert found == [error] * 3


@pytest.mark.parametrize("error", [InvalidArgument("x", "y"), RuntimeError("a fault of ours")])
async def test_what_cannot_begin_reaches_each_and_no_other_recommender(
    family: Family, error: Exception
) -> None:
    family.refuses = error
    asked = [family.turns.join(each, 4) for each in (FILMS, BOOKS, FILMS)]
    assert await outcomes(*asked) == [error, 8, error]


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("fails", [None, StoreUnavailable("all")])
async def test_who_gives_up_disturbs_nobody(
    family: Family, begun: bool, fails: Exception | None
) -> None:
    """Before the question was asked, and while it is being answered."""
    family.let.clear()
    family.fails = fails

    async def ask(number: int) -> int:
        return await family.turns.join(FILMS, number)

    tasks = [asyncio.ensure_future(ask(number)) for number in (1, -1, 3)]
    for _ in range(3 if begun else 1):
        await asyncio.sleep(0)
    assert bool(family.calls) is begun
    tasks[0].cancel()
    tasks[1].cancel()
    await asyncio.sleep(0)
    family.let.set()
    gone, gone_too, kept = await outcomes(*tasks)
    assert isinstance(gone, asyncio.CancelledError)
    assert isinstance(gone_too, asyncio.CancelledError)
    assert kept == (fails or 6)


# Over a runtime that serves


class Counting(MemoryStore):
    """Notes how many principals each debit of many had, and how many pieces feedback."""

    def __init__(self) -> None:
        super().__init__()
        self.debits: list[int] = []
        self.learned: list[int] = []

    def spend_each(self, **given: Any) -> Awaitable[Any]:
        self.debits.append(len(given["principals"]))
        return super().spend_each(**given)

    def learn_each(self, **given: Any) -> Awaitable[Any]:
        self.learned.append(len(given["learnings"]))
        return super().learn_each(**given)


@pytest.fixture
async def serving(anyio_backend: str) -> AsyncIterator[Runtime]:
    runtime = await Runtime.open(
        store=Counting(), noise=SystemNoise(), lease_seconds=math.inf, survey_seconds=3_600
    )
    for name in ("films", "books"):
        await runtime.registry.put(name, document())
    yield runtime
    await asyncio.sleep(0)
    for turns in (runtime.asked, runtime.told):
        assert turns is not None
        assert (turns._waiting, turns._running) == ({}, set())
    await runtime.close()


def ask(client: str, recommender: str = "films") -> Ask:
    return Ask(recommender=recommender, client=client, context=[0.2, 0.8])


async def spent(runtime: Runtime, client: str, recommender: str = "films") -> float:
    report = await budget_of(runtime, recommender=recommender, client=client)
    assert report.spent is not None
    return report.spent.epsilon


async def test_clients_of_one_turn_are_debited_together_and_once_each(serving: Runtime) -> None:
    clients = [f"client {number}" for number in range(20)]
    answers = await asyncio.gather(*(recommend(serving, ask(client)) for client in clients))
    assert all(answer.personalised for answer in answers)
    assert len({answer.recommendation_id for answer in answers}) == 20
    assert cast(Counting, serving.store).debits == [MOST, 20 - MOST]
    assert [await spent(serving, client) for client in clients] == [1.0] * 20


async def test_who_asks_twice_in_one_turn_pays_twice_and_is_told_so(serving: Runtime) -> None:
    asks = [ask("ada"), ask("bob"), ask("ada"), ask("ada", "books")]
    answers = await asyncio.gather(*(recommend(serving, one) for one in asks))
    assert cast(Counting, serving.store).debits == [3, 1]
    told = [answer.privacy.spent for answer in answers]
    assert [one and one.epsilon for one in told] == [1.0, 1.0, 2.0, 1.0]
    assert await spent(serving, "ada") == 2.0
    assert await spent(serving, "ada", "books") == 1.0


async def test_a_budget_for_five_personalises_five_of_one_turn(serving: Runtime) -> None:
    answers = await asyncio.gather(*(recommend(serving, ask("ada")) for _ in range(8)))
    assert [answer.personalised for answer in answers] == [True] * 5 + [False] * 3
    assert [answer.privacy.epsilon for answer in answers] == [1.0] * 5 + [0.0] * 3
    assert await spent(serving, "ada") == 5.0


async def test_a_question_that_cannot_be_asked_is_refused_alone_and_free(serving: Runtime) -> None:
    bad = ask("bob")._replace(context=[0.5])
    found = await asyncio.gather(
        *(recommend(serving, one) for one in (ask("ada"), bad, ask("eve"))), return_exceptions=True
    )
    assert isinstance(found[1], InvalidArgument)
    assert [await spent(serving, client) for client in ("ada", "bob", "eve")] == [1.0, 0.0, 1.0]


async def test_feedback_of_one_turn_is_learned_together_and_once_each(serving: Runtime) -> None:
    answers = [await recommend(serving, ask(f"client {number}")) for number in range(10)]
    words = [Feedback(1.0, recommendation_id=one.recommendation_id) for one in answers]
    words += [words[0], Feedback(0.0, recommendation_id=answers[1].recommendation_id)]
    found = await asyncio.gather(
        *(give_feedback(serving, word) for word in words), return_exceptions=True
    )
    assert found[:10] == [Receipt(duplicate=False)] * 10
    assert found[10] == Receipt(duplicate=True)
    assert isinstance(found[11], RewardConflict)
    assert cast(Counting, serving.store).learned == [12]
