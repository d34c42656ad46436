"""One world: workers die where a story says, and the store notes every model that was written."""

from collections.abc import AsyncIterator

import pytest

from discreet.audit.closed_loop.stage import NAME, Stage, WatchedStore, spread_noise
from discreet.audit.closed_loop.story import PERSON, Asks, Lost, Tells
from discreet.audit.families.p_dap.closed_loop import CAST, PartitionLoop

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    behaviours = {**CAST.others, PERSON: CAST.opposites[0]}
    world = Stage(family=PartitionLoop(), behaviours=behaviours)
    await world.open(CAST.document(), workers=2)
    yield world
    await world.close()


async def told(stage: Stage, worker: int = 0) -> None:
    await stage.ask(Asks(PERSON, worker=worker))
    await stage.tell(Tells(PERSON, worker=worker))
    stage.now += 10


@pytest.mark.parametrize(
    ("lost", "models", "adopted"),
    [
        (None, 1, True),
        (Lost.BEFORE_READING, 0, False),
        (Lost.BEFORE_STORING, 0, False),
        (Lost.AFTER_STORING, 1, True),
        (Lost.BEFORE_CLEANING_UP, 1, True),
    ],
)
async def test_a_release_is_interrupted_where_the_story_says(
    stage: Stage, lost: Lost | None, models: int, adopted: bool
) -> None:
    await told(stage)
    stage.store.lose_next(lost)
    assert await stage.release(0) is (lost is None)
    assert stage.store.lose is None, "it happened"
    assert len(stage.store.models) == models
    # What is stored is noticed by everybody, also by a worker that never heard of it.
    numbers = [(await stage.recommender(worker)).current.number for worker in (0, 1)]
    assert numbers == [int(adopted)] * 2
    stage.store.lose_next(None)
    await told(stage, worker=1)
    assert await stage.release(1)
    assert len(stage.store.models) == models + 1


async def test_the_second_of_two_workers_overtakes_the_first(stage: Stage) -> None:
    await told(stage)
    await stage.race()
    assert len(stage.store.models) == 1
    first, second = [await stage.recommender(worker) for worker in (0, 1)]
    assert first.current.number == second.current.number == 1
    assert first.encode(first.current.model) == second.encode(second.current.model)


async def test_feedback_waits_for_its_chance(stage: Stage) -> None:
    await stage.ask(Asks(PERSON))
    assert (await stage.ledger()).feedback.nano_rho == 0
    await stage.tell(Tells(PERSON))
    assert (await stage.ledger()).feedback.nano_rho > 0
    spent = (await stage.ledger()).feedback
    await stage.tell(Tells(PERSON))
    assert (await stage.ledger()).feedback == spent


async def test_a_retry_is_asked_under_one_event(stage: Stage) -> None:
    answers = await stage.ask(Asks(PERSON, retries=3))
    assert len(answers) == 4
    assert all(answer == answers[0] for answer in answers)


async def test_other_blobs_are_written_as_they_are() -> None:
    store = WatchedStore(clock=lambda: 0.0)
    assert await store.save(key=b"something else", content=b"1") == 1
    assert store.models == []
    assert NAME == "audited"


def test_noise_is_spread_out_and_the_same_in_every_run() -> None:
    scales = [10.0] * 40
    assert spread_noise(0, 3, scales) == [4] * 40
    drawn = spread_noise(2, 0, scales)
    assert drawn == spread_noise(2, 0, scales) != spread_noise(2, 1, scales)
    assert min(drawn) < -15
    assert max(drawn) > 15
