"""The odds of an answer, where a family can tell them: what is drawn follows them, and says so."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from discreet.errors import UnknownRecommender
from discreet.families.contract import Recommender
from discreet.families.questions import Ask, Decision, Question
from discreet.families.registration import FAMILIES
from discreet.research.noise import SeededNoise
from tests.contracts.samples import SAMPLES, asks, build, play, release

pytestmark = pytest.mark.anyio

TELLING = ("contextual", "fclub", "mirror-descent", "p-dap")
DRAWS = 3_000
DIALS = {
    "private": {"answers": {"epsilon": 2, "budget": {"epsilon": 100_000}}, "feedback": "exact"},
    "exact": {"answers": "exact", "feedback": "exact"},
    "best": {
        "answers": {"epsilon": 1, "budget": {"epsilon": 100_000}, "draw": "best"},
        "feedback": "exact",
    },
}
SETTINGS = [(algorithm, dials) for algorithm in TELLING for dials in ("private", "exact")]
SETTINGS.append(("mirror-descent", "best"))


async def learned(algorithm: str, dials: str) -> Recommender[Any]:
    recommender = build(algorithm, privacy=DIALS[dials])
    await SAMPLES[algorithm].prepare(recommender)
    for seed in range(3):
        await play(recommender, algorithm, rounds=40, seed=seed)
        await release(recommender, SeededNoise(seed))
    return recommender


def decisions(
    recommender: Recommender[Any], questions: Sequence[Question], own: Sequence[Any], *, paid: bool
) -> list[Decision]:
    model, noise = recommender.current.model, SeededNoise(5)
    if paid:
        return recommender.decide(model, questions, own, noise)
    return recommender.decide_without_client(model, questions, noise)


@pytest.mark.parametrize("paid", [True, False])
@pytest.mark.parametrize("offered", [None, ["i0", "i2", "i3"]], ids=["catalogue", "candidates"])
@pytest.mark.parametrize(("algorithm", "dials"), SETTINGS)
async def test_answers_are_drawn_by_their_odds(
    algorithm: str, offered: list[str] | None, dials: str, paid: bool
) -> None:
    """3,000 draws: an item's share is within 4.5 deviations of its odds, but for a chance of 1e-4
    in all; odds that are 30% off differ by 8 of them where an item has a tenth."""
    recommender = await learned(algorithm, dials)
    ask: Ask = asks(algorithm)[0]._replace(candidates=offered)
    questions = [recommender.question(ask)] * DRAWS
    own = await recommender.read_own(questions[:1])
    (law,) = recommender.answer_law(recommender.current.model, questions[:1], own, paid=paid)
    assert law.sum() == pytest.approx(1.0)
    drawn = decisions(recommender, questions, list(own) * DRAWS, paid=paid)
    shares = Counter(one.items[0] for one in drawn)
    for item, slot in recommender.slot_of.items():
        spread = np.sqrt(law[slot] * (1 - law[slot]) / DRAWS)
        assert abs(shares[item] / DRAWS - law[slot]) <= 4.5 * spread + 1e-9, item
    for one in drawn[:50]:
        said = one.choices[0].propensity
        assert said == pytest.approx(law[recommender.slot_of[one.items[0]]])


@pytest.mark.parametrize("algorithm", sorted({*FAMILIES} - {*TELLING}))
async def test_other_families_say_that_they_cannot(algorithm: str) -> None:
    recommender = build(algorithm)
    with pytest.raises(UnknownRecommender, match="odds"):
        recommender.answer_law(recommender.current.model, [], [], paid=True)
