"""Feedback counts once, or says why not."""

import asyncio
import os

import pytest

from discreet.decisions.services import DecisionServices
from discreet.errors import (
    InvalidArgument,
    RewardConflict,
    TokenExpired,
    TokenForged,
    UnknownDecision,
)
from discreet.families.questions import Feedback, Receipt, Recommendation
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import Clock, ask, document, gathered, opened, privacy

pytestmark = pytest.mark.anyio


async def test_feedback_is_learned(services: DecisionServices) -> None:
    answer = await ask(services)
    receipt = await services.feedback.record(
        Feedback(reward=1.0, recommendation_id=answer.recommendation_id)
    )
    assert receipt == Receipt(duplicate=False)
    assert await gathered(services) == 1


async def test_the_same_reward_again_is_a_duplicate(services: DecisionServices) -> None:
    answer = await ask(services)
    feedback = Feedback(reward=0.5, recommendation_id=answer.recommendation_id)
    receipts = await asyncio.gather(*(services.feedback.record(feedback) for _ in range(20)))
    assert sum(not receipt.duplicate for receipt in receipts) == 1
    assert await gathered(services) == 1


async def test_another_reward_is_a_conflict_and_adds_nothing(services: DecisionServices) -> None:
    answer = await ask(services)
    await services.feedback.record(Feedback(1.0, recommendation_id=answer.recommendation_id))
    with pytest.raises(RewardConflict):
        await services.feedback.record(Feedback(0.0, recommendation_id=answer.recommendation_id))
    assert await gathered(services) == 1


async def test_expired_feedback_is_refused(services: DecisionServices, clock: Clock) -> None:
    answer = await ask(services)
    clock.now = answer.expires_at
    with pytest.raises(TokenExpired):
        await services.feedback.record(Feedback(1.0, recommendation_id=answer.recommendation_id))
    assert await gathered(services) == 0


async def test_a_claim_outlives_its_token(services: DecisionServices, clock: Clock) -> None:
    answer = await ask(services)
    feedback = Feedback(1.0, recommendation_id=answer.recommendation_id)
    await services.feedback.record(feedback)
    clock.now = answer.expires_at - 1
    assert (await services.feedback.record(feedback)).duplicate


async def test_a_token_of_somebody_else_is_a_forgery(services: DecisionServices) -> None:
    other = await opened(MemoryStore(), token_keys=[os.urandom(32)])
    await other.registry.put("films", document())
    answer = await ask(other)
    with pytest.raises(TokenForged):
        await services.feedback.record(Feedback(1.0, recommendation_id=answer.recommendation_id))


async def test_a_removed_recommender_takes_no_feedback(services: DecisionServices) -> None:
    answer = await ask(services)
    await services.registry.remove("films")
    await services.registry.put("films", document())
    with pytest.raises(UnknownDecision):
        await services.feedback.record(Feedback(1.0, recommendation_id=answer.recommendation_id))


async def test_a_list_takes_feedback_once_for_each_item(services: DecisionServices) -> None:
    answer = await ask(services, limit=3)
    for item in answer.items:
        for duplicate in (False, True):
            receipt = await services.feedback.record(
                Feedback(1.0, recommendation_id=answer.recommendation_id, item=item),
            )
            assert receipt.duplicate == duplicate
    assert await gathered(services) == 3


@pytest.mark.parametrize("item", [None, "unheard of"])
async def test_a_list_needs_one_of_its_items_named(
    services: DecisionServices, item: str | None
) -> None:
    answer = await ask(services, limit=3)
    with pytest.raises(InvalidArgument, match="item"):
        await services.feedback.record(
            Feedback(1.0, recommendation_id=answer.recommendation_id, item=item)
        )


async def test_feedback_by_event_id(services: DecisionServices) -> None:
    answer = await ask(services, event_id="click-1")
    assert not (await services.feedback.record(Feedback(1.0, event_id="click-1"))).duplicate
    by_token = Feedback(1.0, recommendation_id=answer.recommendation_id)
    assert (await services.feedback.record(by_token)).duplicate


async def test_an_unknown_event_is_said(services: DecisionServices) -> None:
    with pytest.raises(UnknownDecision):
        await services.feedback.record(Feedback(1.0, event_id="never"))


async def test_erasing_a_client_forgets_stored_answers_and_keeps_the_ledger(
    services: DecisionServices,
) -> None:
    await ask(services, event_id="click-1")
    assert (await services.clients.erase("someone")).certificate.events == 1
    with pytest.raises(UnknownDecision):
        await services.feedback.record(Feedback(1.0, event_id="click-1"))
    answer = await ask(services)
    assert answer.privacy.spent is not None
    assert answer.privacy.spent.epsilon == 2.0


async def test_a_batch_counts_each_by_itself_in_order(services: DecisionServices) -> None:
    answer = await ask(services)
    await ask(services, event_id="click-1")
    token = answer.recommendation_id
    results = await services.feedback.record_many(
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
    assert await gathered(services) == 2


async def test_a_mixed_batch_is_answered_in_order(services: DecisionServices, clock: Clock) -> None:
    for name in ("books", "songs"):
        await services.registry.put(name, document())

    async def token(recommender: str, limit: int = 1) -> Recommendation:
        return await ask(services, recommender=recommender, limit=limit)

    expired = (await token("films")).recommendation_id
    clock.now += 86_400
    await ask(services, event_id="click-1")
    removed = (await token("songs")).recommendation_id
    await services.registry.remove("songs")
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
        (Feedback(1.0, event_id="click-1"), Receipt(duplicate=True)),
        (Feedback(1.0, recommendation_id=both, item=films.items[0]), Receipt(duplicate=False)),
    ]
    results = await services.feedback.record_many([feedback for feedback, _ in cases])
    found = [one if isinstance(one, Receipt) else type(one) for one in results]
    assert found == [expected for _, expected in cases]
    assert await gathered(services) == 4


async def test_an_empty_batch_is_answered_by_nothing(services: DecisionServices) -> None:
    assert await services.feedback.record_many([]) == []


async def test_a_client_pays_for_each_record_and_more_for_several_in_one_release(
    services: DecisionServices,
) -> None:
    await services.registry.put("films", document(privacy=privacy(budget=1e3)))
    one = 24_360_000  # nano-rho of one record at (1, 1e-6), within a thousandth
    spent = []
    for _ in range(3):
        token = (await ask(services)).recommendation_id
        await services.feedback.record(Feedback(1.0, recommendation_id=token))
        principal = (await services.registry.find("films")).principal("someone")
        (ledger,) = await services.store.ledgers([principal])
        spent.append(ledger.feedback.nano_rho)
    assert [round(amount / one) for amount in spent] == [1, 4, 9]


async def test_feedback_that_is_not_paid_for_is_accepted_and_not_learned(
    services: DecisionServices,
) -> None:
    await services.registry.put("films", document(privacy=privacy(budget=1e3)))
    receipts = []
    for _ in range(12):
        token = (await ask(services)).recommendation_id
        receipts.append(await services.feedback.record(Feedback(1.0, recommendation_id=token)))
    learned = sum(receipt.learned for receipt in receipts)
    assert [receipt.learned for receipt in receipts] == [place < learned for place in range(12)]
    # (8, 1e-6) is rho 1.0524; n records in one release cost n * n * 0.02436.
    assert learned == 6
    assert await gathered(services) == learned
    again = await services.feedback.record(Feedback(1.0, recommendation_id=token))
    assert again == Receipt(duplicate=True, learned=False)


async def test_a_degraded_answer_takes_feedback_that_is_paid_for(
    services: DecisionServices,
) -> None:
    for _ in range(6):
        answer = await ask(services)
    assert not answer.personalised
    token = answer.recommendation_id
    assert (await services.feedback.record(Feedback(1.0, recommendation_id=token))).learned
