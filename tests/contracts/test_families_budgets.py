"""Budgets of every family, found by reflection: personal items, windows, groups, days, reasons."""

from typing import Any

import pytest
from pydantic import ValidationError

from discreet.families.contract import Recommender
from discreet.families.questions import Answered
from discreet.families.registration import FAMILIES
from discreet.privacy.charges import NANO
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from discreet.state.stores import Account
from tests.contracts.samples import SAMPLES, asks, build, play, release

pytestmark = pytest.mark.anyio

ALGORITHMS = sorted(name for name in FAMILIES if not name.startswith("stub"))
WITHOUT_ANSWERS_DIAL = {"collaborative", "p-rec"}
"""Profiles are made private on the device, or not at all; p-rec protects voters."""
WITHOUT_FEEDBACK_DIAL = {"p-rec"}
MONTH = 30 * 86_400
ANSWERS = {"epsilon": 1.0, "personal_slots": 2, "budget": {"epsilon": 4.0, "per": "30d"}}
FEEDBACK = {"epsilon": 1.0, "budget": {"epsilon": 8.0, "per": "12h"}}


def privacy(algorithm: str) -> dict[str, Any]:
    dials: dict[str, Any] = {}
    if algorithm not in WITHOUT_ANSWERS_DIAL:
        dials["answers"] = ANSWERS
    if algorithm not in WITHOUT_FEEDBACK_DIAL:
        dials["feedback"] = FEEDBACK
    return {"privacy": dials} if dials else {}


async def prepared(algorithm: str, **changes: Any) -> Recommender[Any]:
    recommender = build(algorithm, noise=SeededNoise(1), **privacy(algorithm), **changes)
    await SAMPLES[algorithm].prepare(recommender)
    await play(recommender, algorithm, rounds=30, seed=0)
    if SAMPLES[algorithm].releases:
        await release(recommender, SeededNoise(2))
    return recommender


async def answer(recommender: Recommender[Any], algorithm: str, limit: int) -> Answered:
    ask = asks(algorithm, "a newcomer")[0]._replace(limit=limit)
    (found,) = await recommender.answer([recommender.question(ask)], [None])
    assert isinstance(found, Answered)
    return found


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_dials_are_the_same_for_every_family(algorithm: str) -> None:
    recommender = build(algorithm, **privacy(algorithm))
    for without, policy, window in (
        (WITHOUT_ANSWERS_DIAL, recommender.answers_budget, MONTH),
        (WITHOUT_FEEDBACK_DIAL, recommender.feedback_budget, 12 * 3_600),
    ):
        if algorithm in without:
            continue
        assert policy is not None
        assert policy.window == window, "the document's window is not used"
    card = recommender.guarantee()
    if algorithm not in WITHOUT_ANSWERS_DIAL:
        assert card.answers.personal_slots == 2
        assert card.answers.window is not None
        assert (card.answers.window.per, card.answers.budget_epsilon) == ("30d", 4.0)
        assert "(8, 2e-06)" in card.answers.window.sliding
    if algorithm not in WITHOUT_FEEDBACK_DIAL:
        assert card.feedback.window is not None
        assert "one window" in card.unit


@pytest.mark.parametrize("algorithm", sorted(WITHOUT_ANSWERS_DIAL))
def test_a_family_without_the_dial_refuses_it(algorithm: str) -> None:
    with pytest.raises(ValidationError):
        build(algorithm, privacy={"answers": ANSWERS})


@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if a not in WITHOUT_ANSWERS_DIAL])
async def test_a_list_costs_its_personal_items_whatever_its_length(algorithm: str) -> None:
    recommender = await prepared(algorithm)
    visible = len(SAMPLES[algorithm].document["items"])
    for paid in (True, True, False):
        found = await answer(recommender, algorithm, 100)
        assert len(found.decision.items) == len(set(found.decision.items)) == visible
        assert found.decision.personalised is paid
        assert found.charge.nano_epsilon == (2 * NANO if paid else 0)
        assert (found.decision.reason is None) is paid, "the answer says why not"
        assert len(found.decision.choices) == visible
    assert (await answer(recommender, algorithm, 1)).charge.nano_epsilon == 0


@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if a not in WITHOUT_ANSWERS_DIAL])
async def test_what_is_spent_is_booked_by_day_under_the_recommenders_name(algorithm: str) -> None:
    recommender = await prepared(algorithm)
    await answer(recommender, algorithm, 3)
    (day,) = await recommender.store.days(recommender.principal("a newcomer"))
    assert (day.account, day.purpose, day.uses) == (Account.ANSWERS, b"sample", 1)
    report, _ = await recommender.budgets("a newcomer")
    assert report.resets_at is not None
    assert report.resets_at % MONTH == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_group_gives_one_ledger_to_all_its_recommenders(algorithm: str) -> None:
    shared = [
        FAMILIES[algorithm].principal(build(algorithm, store=MemoryStore(), ledger=group), "ada")
        for group in ("shop", "shop", "other", None)
    ]
    assert shared[0] == shared[1]
    assert len(set(shared)) == 3
