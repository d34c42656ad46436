"""What arrives in one turn of the loop is answered together, and each as if it were alone."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest

from discreet.decisions.batcher import MOST, Batcher
from discreet.decisions.services import DecisionServices
from discreet.errors import DiscreetError, StoreUnavailable
from discreet.families.contract import Recommender
from discreet.families.questions import Ask, Feedback
from tests.decisions.conftest import ask, gathered
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

FILMS = cast(Recommender[Any], "films")
BOOKS = cast(Recommender[Any], "books")
"""All that a batcher asks of a recommender is that it is itself."""


class Doubling:
    """Doubles numbers once it may; -1 fails alone, and `fails` fails for all."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, list[int]]] = []
        self.may = asyncio.Event()
        self.may.set()
        self.fails: Exception | None = None
        self.batcher: Batcher[int, int] = Batcher(self.answer)

    async def answer(
        self, recommender: Recommender[Any], requests: Sequence[int]
    ) -> list[int | DiscreetError]:
        self.calls.append((recommender, list(requests)))
        await self.may.wait()
        if self.fails is not None and recommender is FILMS:
            raise self.fails
        return [StoreUnavailable("alone") if one == -1 else 2 * one for one in requests]


async def outcomes(*asked: "asyncio.Future[int]") -> list[Any]:
    async with asyncio.timeout(PATIENCE):
        return await asyncio.gather(*asked, return_exceptions=True)


@pytest.fixture
async def doubling(anyio_backend: str) -> AsyncIterator[Doubling]:
    one = Doubling()
    yield one
    await asyncio.sleep(0)
    assert one.batcher._waiting == {}
    assert one.batcher._running == set()


async def test_requests_of_one_turn_are_one_call_in_order(doubling: Doubling) -> None:
    first = [doubling.batcher.join(FILMS, number) for number in range(5)]
    assert doubling.calls == [], "nothing is asked before the turn is over"
    assert await outcomes(*first) == [0, 2, 4, 6, 8]
    assert await outcomes(doubling.batcher.join(FILMS, 9)) == [18]
    assert doubling.calls == [(FILMS, [0, 1, 2, 3, 4]), (FILMS, [9])]


async def test_two_recommenders_in_one_turn_are_asked_apart(doubling: Doubling) -> None:
    mixed = [doubling.batcher.join(FILMS if n % 2 else BOOKS, n) for n in range(4)]
    assert await outcomes(*mixed) == [0, 2, 4, 6]
    assert doubling.calls == [(BOOKS, [0, 2]), (FILMS, [1, 3])]


async def test_a_full_batch_does_not_wait_for_the_turn_to_end(doubling: Doubling) -> None:
    many = [doubling.batcher.join(FILMS, number) for number in range(2 * MOST + 1)]
    assert await outcomes(*many) == [2 * number for number in range(2 * MOST + 1)]
    assert sorted(len(asked) for _, asked in doubling.calls) == [1, MOST, MOST]


async def test_one_that_fails_fails_alone(doubling: Doubling) -> None:
    good, bad = doubling.batcher.join(FILMS, 1), doubling.batcher.join(FILMS, -1)
    found = await outcomes(good, bad)
    assert found[0] == 2
    assert isinstance(found[1], StoreUnavailable)


async def test_a_failure_of_the_whole_call_reaches_each(doubling: Doubling) -> None:
    doubling.fails = RuntimeError("all")
    asked = [doubling.batcher.join(FILMS, 1), doubling.batcher.join(FILMS, 2)]
    other = doubling.batcher.join(BOOKS, 3)
    assert await outcomes(*asked, other) == [doubling.fails, doubling.fails, 6]


async def test_a_caller_who_has_gone_harms_nobody(doubling: Doubling) -> None:
    doubling.may.clear()
    gone, stays = doubling.batcher.join(FILMS, 1), doubling.batcher.join(FILMS, 2)
    await asyncio.sleep(0)
    gone.cancel()
    doubling.may.set()
    assert await outcomes(stays) == [4]


async def test_one_who_cannot_be_told_harms_nobody(
    doubling: Doubling, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def answered(self, outcome: int) -> None:
            raise RuntimeError

    doubling.batcher.enter(FILMS, 1, Broken())
    assert await outcomes(doubling.batcher.join(FILMS, 2)) == [4]
    assert doubling.calls == [(FILMS, [1, 2])]
    assert "could not be handed over" in caplog.text


async def test_requests_of_one_turn_share_the_store_and_nothing_else(
    services: DecisionServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    spend = type(services.store).spend

    def counted(self: Any, debits: Sequence[Any]) -> Any:
        calls.append(len(debits))
        return spend(self, debits)

    monkeypatch.setattr(type(services.store), "spend", counted)
    asks = [Ask("films", f"client {n}", (0.1 * n, 0.5)) for n in range(10)]
    answers = await asyncio.gather(*map(services.recommend.recommend, asks))
    assert calls == [10]
    assert len({answer.recommendation_id for answer in answers}) == 10


async def test_feedback_of_one_turn_counts_each_once(services: DecisionServices) -> None:
    tokens = [(await ask(services, client=f"c{n}")).recommendation_id for n in range(8)]
    given = [Feedback(1.0, recommendation_id=token) for token in tokens]
    receipts = await asyncio.gather(*map(services.feedback.record, given * 2))
    assert sum(receipt.duplicate for receipt in receipts) == 8
    assert await gathered(services) == 8
