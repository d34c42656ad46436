"""A client's word: counted once, contradicted never."""

import pytest

from discreet.errors import InvalidArgument, RewardConflict, TokenForged, UnknownDecision
from tests.families.p_rec.conftest import Bench

pytestmark = pytest.mark.anyio


async def test_the_same_word_again_is_a_duplicate(bench: Bench) -> None:
    await bench.round("monday")
    answer = await bench.ask()
    assert not (await bench.tell(answer, 1.0)).duplicate
    assert (await bench.tell(answer, 1.0)).duplicate
    # The answer shown again carries another token of the same decision.
    assert (await bench.tell(await bench.ask(round="monday"), 1.0)).duplicate


async def test_another_word_is_a_conflict(bench: Bench) -> None:
    await bench.round("monday")
    answer = await bench.ask()
    await bench.tell(answer, 0.0)
    with pytest.raises(RewardConflict):
        await bench.tell(answer, 1.0)


async def test_a_word_after_passing_on_must_be_dislike(bench: Bench) -> None:
    await bench.round("monday")
    await bench.round("tuesday")
    answer = await bench.ask(round="monday")
    await bench.ask(round="tuesday")
    assert (await bench.tell(answer, 0.0)).duplicate
    with pytest.raises(RewardConflict):
        await bench.tell(answer, 1.0)


@pytest.mark.parametrize("reward", [0.5, 0.999, 1e-9])
async def test_a_word_is_like_or_dislike(bench: Bench, reward: float) -> None:
    await bench.round("monday")
    answer = await bench.ask()
    with pytest.raises(InvalidArgument) as refusal:
        await bench.tell(answer, reward)
    assert refusal.value.argument == "reward"
    assert not (await bench.tell(answer, 1.0)).duplicate


async def test_the_item_must_be_the_one_that_was_shown(bench: Bench) -> None:
    await bench.round("monday")
    answer = await bench.ask()
    other = "b" if answer.items == ("a",) else "a"
    with pytest.raises(InvalidArgument) as refusal:
        await bench.tell(answer, 1.0, item=other)
    assert refusal.value.argument == "item"
    assert not (await bench.tell(answer, 1.0, item=answer.items[0])).duplicate


async def test_an_erased_client_has_no_recommendations(bench: Bench) -> None:
    await bench.round("monday")
    answer = await bench.ask()
    family = bench.runtime.families["p-rec"]
    assert await family.forget(bench.runtime, await bench.recommender(), "ann") == 1
    with pytest.raises(UnknownDecision):
        await bench.tell(answer, 1.0)
    # The same client again: a new history, which is paid for anew.
    await bench.ask()
    with pytest.raises(UnknownDecision):
        await bench.tell(answer, 1.0)


async def test_a_forged_token_is_refused(bench: Bench) -> None:
    await bench.round("monday")
    answer = await bench.ask()
    token = answer.recommendation_id
    with pytest.raises(TokenForged):
        await bench.tell(
            type(answer)(
                recommendation_id=token[:-2] + ("AA" if token[-2:] != "AA" else "BB"),
                items=answer.items,
                personalised=True,
                privacy=answer.privacy,
                expires_at=answer.expires_at,
            ),
            1.0,
        )
