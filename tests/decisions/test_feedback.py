"""Feedback counts once, or says why not."""

import asyncio
import math
import os

import pytest

from discreet.decisions.clients import erase_client
from discreet.decisions.feedback import Feedback, Receipt, feedback_batch, give_feedback
from discreet.families.p_dap.answering import Ask, Recommendation
from discreet.decisions.recommend import recommend
from discreet.decisions.runtime import Runtime
from discreet.errors import (
    InvalidArgument,
    RewardConflict,
    TokenExpired,
    TokenForged,
    UnknownDecision,
)
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import Clock, document

pytestmark = pytest.mark.anyio


async def ask(runtime: Runtime, limit: int = 1, event_id: str | None = None) -> Recommendation:
    return await recommend(
        runtime,
        Ask(
            recommender="films",
            client="someone",
            context=[0.2, 0.8],
            limit=limit,
            event_id=event_id,
        ),
    )


async def arrivals(runtime: Runtime) -> int:
    """How much feedback all cells together have counted."""
    recommender = await runtime.registry.find("films")
    cells = await runtime.store.cells(index=recommender.generation, most=1_000)
    return sum(int(vector[0]) for vector in await runtime.store.read(addresses=list(cells)))


async def test_feedback_is_learned(runtime: Runtime) -> None:
    answer = await ask(runtime)
    receipt = await give_feedback(
        runtime, Feedback(reward=1.0, recommendation_id=answer.recommendation_id)
    )
    assert receipt == Receipt(duplicate=False)
    assert await arrivals(runtime) == 1


async def test_the_same_reward_again_is_a_duplicate(runtime: Runtime) -> None:
    answer = await ask(runtime)
    feedback = Feedback(reward=0.5, recommendation_id=answer.recommendation_id)
    receipts = await asyncio.gather(*(give_feedback(runtime, feedback) for _ in range(20)))
    assert sum(not receipt.duplicate for receipt in receipts) == 1
    assert await arrivals(runtime) == 1


async def test_another_reward_is_a_conflict_and_adds_nothing(runtime: Runtime) -> None:
    answer = await ask(runtime)
    await give_feedback(runtime, Feedback(1.0, recommendation_id=answer.recommendation_id))
    with pytest.raises(RewardConflict):
        await give_feedback(runtime, Feedback(0.0, recommendation_id=answer.recommendation_id))
    assert await arrivals(runtime) == 1


async def test_expired_feedback_is_refused(runtime: Runtime, clock: Clock) -> None:
    answer = await ask(runtime)
    clock.now = answer.expires_at
    with pytest.raises(TokenExpired):
        await give_feedback(runtime, Feedback(1.0, recommendation_id=answer.recommendation_id))
    assert await arrivals(runtime) == 0


async def test_a_claim_outlives_its_token(runtime: Runtime, clock: Clock) -> None:
    answer = await ask(runtime)
    feedback = Feedback(1.0, recommendation_id=answer.recommendation_id)
    await give_feedback(runtime, feedback)
    clock.now = answer.expires_at - 1
    assert (await give_feedback(runtime, feedback)).duplicate


async def test_a_token_of_somebody_else_is_a_forgery(runtime: Runtime) -> None:
    other = await Runtime.open(
        store=MemoryStore(),
        noise=SystemNoise(),
        token_keys=[os.urandom(32)],
        lease_seconds=math.inf,
        survey_seconds=math.inf,
    )
    await other.registry.put("films", document())
    answer = await ask(other)
    with pytest.raises(TokenForged):
        await give_feedback(runtime, Feedback(1.0, recommendation_id=answer.recommendation_id))


async def test_a_removed_recommender_takes_no_feedback(runtime: Runtime) -> None:
    answer = await ask(runtime)
    await runtime.registry.remove("films")
    await runtime.registry.put("films", document())
    with pytest.raises(UnknownDecision):
        await give_feedback(runtime, Feedback(1.0, recommendation_id=answer.recommendation_id))


async def test_a_list_takes_feedback_once_for_each_item(runtime: Runtime) -> None:
    answer = await ask(runtime, limit=3)
    for item in answer.items:
        for duplicate in (False, True):
            receipt = await give_feedback(
                runtime,
                Feedback(1.0, recommendation_id=answer.recommendation_id, item=item),
            )
            assert receipt.duplicate == duplicate
    assert await arrivals(runtime) == 3


@pytest.mark.parametrize("item", [None, "unheard of"])
async def test_a_list_needs_one_of_its_items_named(runtime: Runtime, item: str | None) -> None:
    answer = await ask(runtime, limit=3)
    with pytest.raises(InvalidArgument, match="item"):
        await give_feedback(
            runtime, Feedback(1.0, recommendation_id=answer.recommendation_id, item=item)
        )


async def test_feedback_by_event_id(runtime: Runtime) -> None:
    answer = await ask(runtime, event_id="click-1")
    assert not (await give_feedback(runtime, Feedback(1.0, event_id="click-1"))).duplicate
    by_token = Feedback(1.0, recommendation_id=answer.recommendation_id)
    assert (await give_feedback(runtime, by_token)).duplicate


async def test_an_unknown_event_is_said(runtime: Runtime) -> None:
    with pytest.raises(UnknownDecision):
        await give_feedback(runtime, Feedback(1.0, event_id="never"))


async def test_erasing_a_client_forgets_stored_answers_and_keeps_the_ledger(
    runtime: Runtime,
) -> None:
    await ask(runtime, event_id="click-1")
    assert (await erase_client(runtime, client="someone")).events == 1
    with pytest.raises(UnknownDecision):
        await give_feedback(runtime, Feedback(1.0, event_id="click-1"))
    answer = await ask(runtime)
    assert answer.privacy.spent is not None
    assert answer.privacy.spent.epsilon == 2.0


async def test_a_batch_counts_each_by_itself_in_order(runtime: Runtime) -> None:
    answer = await ask(runtime)
    await ask(runtime, event_id="click-1")
    token = answer.recommendation_id
    results = await feedback_batch(
        runtime,
        [
            Feedback(1.0, recommendation_id=token),
            Feedback(1.0, recommendation_id=token),
            Feedback(0.0, recommendation_id=token),
            Feedback(1.0, recommendation_id="forged"),
            Feedback(1.0, event_id="click-1"),
            Feedback(1.0, event_id="never"),
        ],
    )
    assert results[0] == Receipt(duplicate=False)
    assert results[1] == Receipt(duplicate=True)
    assert [type(result) for result in results[2:4]] == [RewardConflict, TokenForged]
    assert results[4] == Receipt(duplicate=False)
    assert isinstance(results[5], UnknownDecision)
    assert await arrivals(runtime) == 2


async def test_a_mixed_batch_is_answered_in_order(runtime: Runtime, clock: Clock) -> None:
    for name in ("books", "songs"):
        await runtime.registry.put(name, document())

    async def token(recommender: str, limit: int = 1) -> Recommendation:
        ask = Ask(recommender=recommender, client="someone", context=[0.2, 0.8], limit=limit)
        return await recommend(runtime, ask)

    expired = (await token("films")).recommendation_id
    clock.now += 86_400
    await ask(runtime, event_id="click-1")
    await runtime.store.claim_event(
        event=runtime.principals.event("unanswered"), fingerprint=b"f", ttl=60
    )
    removed = (await token("songs")).recommendation_id
    await runtime.registry.remove("songs")
    book, film, films = await token("books"), await token("films"), await token("films", 2)
    both = films.recommendation_id
    cases: list[tuple[Feedback, object]] = [
        (Feedback(1.0, event_id="never"), UnknownDecision),
        (Feedback(1.0, recommendation_id=book.recommendation_id), Receipt(duplicate=False)),
        (Feedback(1.0, recommendation_id=expired), TokenExpired),
        (Feedback(0.5, recommendation_id=film.recommendation_id), Receipt(duplicate=False)),
        (Feedback(1.0), InvalidArgument),
        (Feedback(1.0, recommendation_id=removed), UnknownDecision),
        (Feedback(1.0, event_id="click-1"), Receipt(duplicate=False)),
        (Feedback(0.0, recommendation_id=book.recommendation_id), RewardConflict),
        (Feedback(1.0, recommendation_id=both, item=films.items[1]), Receipt(duplicate=False)),
        (Feedback(1.0, recommendation_id="forged"), TokenForged),
        (Feedback(1.0, recommendation_id=both), InvalidArgument),
        (Feedback(1.0, recommendation_id=book.recommendation_id), Receipt(duplicate=True)),
        (Feedback(1.0, event_id="unanswered"), UnknownDecision),
        (Feedback(1.0, event_id="click-1"), Receipt(duplicate=True)),
        (Feedback(1.0, recommendation_id=both, item=films.items[0]), Receipt(duplicate=False)),
    ]
    results = await feedback_batch(runtime, [feedback for feedback, _ in cases])
    found = [one if isinstance(one, Receipt) else type(one) for one in results]
    assert found == [expected for _, expected in cases]
    assert await arrivals(runtime) == 4


async def test_an_empty_batch_is_answered_by_nothing(runtime: Runtime) -> None:
    assert await feedback_batch(runtime, []) == []
