"""The closed loop of a collaborative recommender: feedback makes items popular for everybody.

Nobody has a profile here, so answers are what is popular, and nothing in them is drawn.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.audit.claims import Claim, PlantedFault
from discreet.audit.closed_loop.claiming import claims_of, faults_of
from discreet.audit.closed_loop.faulty import (
    HastyReleaser,
    RedrawingReleaser,
    exactness_unbooked,
    releases_by_feedback,
)
from discreet.audit.closed_loop.stage import (
    MadeRelease,
    Planted,
    difference_of_numbers,
    spread_noise,
)
from discreet.audit.closed_loop.stories import Cast, every_story
from discreet.audit.closed_loop.story import Behaviour, Story
from discreet.audit.mechanisms.stores import LinearPriceStore, UnpaidStore
from discreet.audit.scripted_noise import ConstantNoise, ExactLaw
from discreet.families.collaborative.model import CollaborativeModel
from discreet.families.collaborative.recommender import (
    CollaborativeRecommender,
    GatheredForTraining,
)
from discreet.families.contract import REWARD_STEPS
from discreet.families.questions import Ask, Decision, Question
from discreet.privacy.noise import NoiseSource


class CollaborativeLoop:
    """What a closed loop has to know about collaborative."""

    algorithm = "collaborative"

    def ask(self, name: str, client: str, situation: None) -> Ask:
        """Ask for everything."""
        return Ask(name, client, limit=2)

    def law(self, draw: Callable[[NoiseSource], str]) -> ExactLaw:
        """Return the only answer there is."""
        shown = draw(ConstantNoise())
        return ExactLaw({shown: Fraction(1)}, {shown: ()})

    def noise(self, path: int, release: int, scales: Sequence[float]) -> list[int]:
        """Return noise that is spread out."""
        return spread_noise(path, release, scales)

    def summary(self, model: CollaborativeModel) -> list[float]:
        """Return the noisy rewards."""
        rewards: list[float] = model.rewards.tolist()
        return rewards

    def difference(self, first: MadeRelease, second: MadeRelease) -> list[int] | None:
        """Compare the released rewards."""
        return difference_of_numbers(first, second, _rewards)


def _rewards(_: CollaborativeModel, model: CollaborativeModel) -> list[int]:
    return [int(each) for each in np.rint(model.rewards * REWARD_STEPS)]


def document(
    *,
    feedback: Any = 1.0,
    answers: Any = "on-device",
    answers_budget: float = 0.0,
    feedback_budget: float = 20.0,
    items: Sequence[str] = ("a", "b"),
) -> dict[str, Any]:
    """Return a small document. Answers have no epsilon of their own, and so no budget."""
    del answers_budget
    return {
        "algorithm": "collaborative",
        "items": list(items),
        "releases": {"seconds": 5, "growth": 0},
        "privacy": {
            "answers": "exact" if answers == "exact" else "on-device",
            "feedback": feedback
            if feedback == "exact"
            else {
                "epsilon": feedback,
                "delta": 1e-6,
                "budget": {"epsilon": feedback_budget, "delta": 1e-6},
            },
        },
    }


def _only(favourite: str, reward: float = 1.0) -> Behaviour:
    """Return somebody who says something about one item only."""
    return Behaviour(lambda _: None, lambda _, item: reward if item == favourite else None)


CAST = Cast(
    document=document,
    others={"first": _only("a"), "second": _only("b", 0.5)},
    opposites=(_only("a"), _only("b")),
    tastes=(_only("a"), _only("a", 0.0)),
)


def stories() -> Iterator[Story]:
    """Yield what may happen to the person."""
    return every_story(CAST)


def claims() -> Iterator[Claim]:
    """Yield the claims about one person."""
    return claims_of(stories(), CollaborativeLoop())


class ExactPopularity(CollaborativeRecommender):
    """Ranks by rewards that nobody has released."""

    def decide(
        self,
        model: CollaborativeModel,
        questions: Sequence[Question],
        own: Sequence[Any],
        noise: NoiseSource,
    ) -> list[Decision]:
        """Decide from what has gathered so far."""
        store: Any = self.store
        gathered = GatheredForTraining(store._open.get(self.generation, {}), None)
        raw = CollaborativeRecommender.release(self, model, gathered, ConstantNoise())
        exact = CollaborativeModel(raw.similarities, raw.rewards, 0 * raw.variances, raw.recipe)
        return super().decide(exact, questions, own, noise)


def faults() -> Iterator[PlantedFault]:
    """Yield mistakes of the whole loop."""
    family = CollaborativeRecommender
    three = "three records in each of two releases, feedback epsilon 1"
    one = "one record, feedback epsilon 1"
    plants = {
        "answers decided from raw sums": (Planted(recommender=ExactPopularity), three),
        "feedback learned that was not paid for": (Planted(store=UnpaidStore), "budgets spent"),
        "n records in one release charged n times": (Planted(store=LinearPriceStore), three),
        "noise drawn anew for the same release": (Planted(releaser=RedrawingReleaser), one),
        "a release that waits for feedback": (
            Planted(recommender=releases_by_feedback(family, records=3)),
            "feedback or none",
        ),
        "exact feedback not booked": (
            Planted(recommender=exactness_unbooked(family)),
            "exact feedback",
        ),
        "a worker that answers from an unreleased model": (
            Planted(releaser=HastyReleaser),
            "workers that die",
        ),
    }
    return faults_of(plants, stories, CollaborativeLoop())
