"""What every recommender does with feedback and releases, whatever its family."""

import pytest

from discreet.errors import InvalidArgument, RewardConflict
from discreet.families.questions import (
    Choice,
    Feedback,
    PendingDecision,
    PendingFeedback,
    Receipt,
)
from tests.families.p_dap.places import recommender

pytestmark = pytest.mark.anyio


def pending(*slots: int, decision: bytes = b"decision-id.") -> PendingDecision:
    choices = tuple(Choice(slot, 0.5) for slot in slots)
    return PendingDecision(b"generate", decision, 2_000, b"p" * 16, True, choices, b"o\0\0\0\0")


def given(reward: float, item: str | None = None, *, of: PendingDecision) -> PendingFeedback:
    return PendingFeedback(of, Feedback(reward=reward, item=item), 100)


async def test_each_piece_of_feedback_succeeds_or_fails_by_itself() -> None:
    one, answer = recommender(), pending(0, 2)
    receipts = await one.record_feedback(
        [
            given(1.0, "a", of=answer),
            given(1.0, "a", of=answer),
            given(0.0, "a", of=answer),
            given(1.0, "z", of=answer),
            given(1.0, None, of=answer),
            given(0.5, "c", of=answer),
        ]
    )
    assert receipts[0] == Receipt(duplicate=False)
    assert receipts[1] == Receipt(duplicate=True)
    assert [type(each) for each in receipts[2:5]] == [
        RewardConflict,
        InvalidArgument,
        InvalidArgument,
    ]
    assert receipts[5] == Receipt(duplicate=False)


async def test_an_empty_answer_takes_no_feedback() -> None:
    (receipt,) = await recommender().record_feedback([given(1.0, of=pending())])
    assert isinstance(receipt, InvalidArgument)


def test_releases_are_due_by_the_clock() -> None:
    one = recommender(releases={"seconds": 10, "growth": 0.5, "longest": 100})
    assert not one.due(9.0)
    assert one.due(10.0)
    one.adopt(number=1, released_at=60.0, model=one.current.model)
    assert not one.due(89.0)
    assert one.due(90.0)


async def test_what_gathered_is_read_again_after_a_crash() -> None:
    one = recommender()
    await one.record_feedback([given(1.0, "a", of=pending(0))])
    first = await one.gather(1)
    await one.record_feedback([given(1.0, "a", of=pending(0, decision=b"another-one."))])
    again = await one.gather(1)
    assert {name: vector.tolist() for name, vector in first.items()} == {
        name: vector.tolist() for name, vector in again.items()
    }
    await one.clean_up(1)
    await one.clean_up(1)
    assert await one.store.frozen(generation=one.generation, number=1) == {}
    assert await one.gather(2)
