"""The closed loop of federated clusters, as the reading `person` promises it.

Two casts. In the first the answers to the person are private and part of what is seen, so both
worlds show the same items. In the second they are exact, made from the person's own sums, and not
seen by others: the worlds then show the person different items, and the person's sums are as far
apart as they can be.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.audit.claims import Claim, PlantedFault
from discreet.audit.closed_loop.claiming import claims_of, faults_of
from discreet.audit.closed_loop.faulty import HastyReleaser, RedrawingAnswers, RedrawingReleaser
from discreet.audit.closed_loop.stage import MadeRelease, Planted, spread_noise
from discreet.audit.closed_loop.stories import (
    Cast,
    rounds,
    stories_of_feedback,
    stories_of_workers,
)
from discreet.audit.closed_loop.story import (
    PERSON,
    Asks,
    Behaviour,
    Step,
    Story,
    Tells,
    Waits,
)
from discreet.audit.scripted_noise import ExactLaw, TapedNoise, uniform_law
from discreet.families.fclub.by_person import GatheredPeople, PersonModel, PersonReading
from discreet.families.fclub.learning import Integers
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.questions import Ask, Decision, Question
from discreet.privacy.draw import BITS
from discreet.privacy.noise import NoiseSource


class ClusterLoop:
    """What a closed loop has to know about fclub."""

    algorithm = "fclub"

    def ask(self, name: str, client: str, situation: None) -> Ask:
        """Ask: what is private about a client is what the client's own sums hold."""
        return Ask(name, client)

    def law(self, draw: Callable[[NoiseSource], str]) -> ExactLaw:
        """Return the law of an answer that is drawn by the exponential mechanism, or not at all."""
        return uniform_law(lambda uniform: draw(TapedNoise(bits=(uniform,))), uniform_bits=BITS)

    def noise(self, path: int, release: int, scales: Sequence[float]) -> list[int]:
        """On every second path, return noise as if many people of two kinds had come."""
        if path % 2 == 0:
            return spread_noise(path, release, scales)
        # A slot has the number of people, three entries of a matrix and two of a vector.
        kinds = ((6, 6, 0, 1, 4, -4), (6, 1, 0, 6, -4, 4))
        flat = [each for kind in kinds for each in kind]
        return [round(each * scale) + release for each, scale in zip(flat, scales, strict=False)]

    def summary(self, model: PersonModel) -> list[float]:
        """Return the weighted sums."""
        return [float(each) for each in model.totals.reshape(-1)]

    def difference(self, first: MadeRelease, second: MadeRelease) -> list[int] | None:
        """Compare what people put in: noise is added to every number of every slot."""
        reading = first.recommender.reading
        apart = summed(reading, first) - summed(reading, second)
        if len(apart) != len(first.scales):
            return None if apart.any() else [0] * len(first.scales)
        return [int(each) for each in apart]


def summed(reading: Any, made: MadeRelease) -> Integers:
    """Return the exact sums of a release, in the order in which noise is drawn for them."""
    exact: Integers = reading._summed(made.before, made.gathered.steps).reshape(-1)
    return exact


_FEATURES = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.7, 0.7]}


def document(
    *,
    feedback: Any = 1.0,
    answers: Any = 0.5,
    answers_budget: float = 20.0,
    feedback_budget: float = 20.0,
    items: Sequence[str] = ("a", "b"),
) -> dict[str, Any]:
    """Return a small document: people take part in a release from their first record on."""
    return {
        "algorithm": "fclub",
        "role": "local",
        "dimensions": 2,
        "items": [{"id": item, "features": _FEATURES[item]} for item in items],
        "learning": {"kinds": 2},
        "sharing": {"first_update": 1, "growth": 0.01},
        "releases": {"seconds": 5, "growth": 0},
        "privacy": {
            "protects": "person",
            "answers": answers
            if answers == "exact"
            else {"epsilon": answers, "budget": {"epsilon": answers_budget, "delta": 1e-6}},
            "feedback": {
                "epsilon": feedback,
                "delta": 1e-6,
                "budget": {"epsilon": feedback_budget, "delta": 1e-6},
            },
        },
    }


def exact_document(**dials: Any) -> dict[str, Any]:
    """Return a document with answers from the person's own sums, as they are by default."""
    return document(**{**dials, "answers": "exact"})


def _likes(favourite: str) -> Behaviour:
    return Behaviour(lambda _: None, lambda _, item: float(item == favourite))


def _sees(wanted: str, reward: float) -> Behaviour:
    """Return somebody who says something about one item only."""
    return Behaviour(lambda _: None, lambda _, item: reward if item == wanted else None)


CAST = Cast(
    document=document,
    others={"first": _likes("a"), "second": _likes("b")},
    opposites=(_likes("a"), _likes("b")),
    tastes=(_likes("a"), Behaviour(lambda _: None, lambda _, __: 0.0)),
)
UNSEEN = replace(
    CAST,
    document=exact_document,
    opposites=(_sees("a", 1.0), _sees("b", 1.0)),
    tastes=(_sees("a", 1.0), _sees("a", 0.0)),
    own_answers=False,
)


def stories() -> Iterator[Story]:
    """Yield what may happen to the person."""
    for story in stories_of_feedback(CAST):
        yield replace(story, name=f"private answers, {story.name}")
    for story in (*stories_of_feedback(UNSEEN), *stories_of_workers(UNSEEN)):
        yield replace(story, name=f"own answers unseen, {story.name}")
    yield UNSEEN.story("a spent budget", [*rounds(5, asks=2)], feedback_budget=1.5)
    yield CAST.story("a question repeated forty times", [*repeating()])


def repeating() -> Iterator[Step]:
    """Yield what makes the person's sums tell much, and then one question again and again."""
    for _ in range(8):
        yield Asks(PERSON)
        yield Tells(PERSON)
    yield Waits()
    yield Asks(PERSON, retries=40)


def claims() -> Iterator[Claim]:
    """Yield the claims about one person."""
    return claims_of(stories(), ClusterLoop())


def _with_reading(kind: type[PersonReading]) -> type[ClusterRecommender]:
    """Return the family with another reading."""

    class OtherReading(ClusterRecommender):
        """Releases in a way that is broken."""

        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            assert isinstance(self.reading, PersonReading)
            self.reading.__class__ = kind

    return OtherReading


class UnpaidParts(PersonReading):
    """Lets people take part whether they could pay or not."""

    async def gather(self, number: int, model: PersonModel) -> GatheredPeople:
        """Return everybody who is due."""
        paid = await super().gather(number, model)
        store: Any = self._store
        fields = self._encoding.fields
        everybody = list(store._own.get(self._generation, {}).values())
        return replace(paid, steps=self._own.steps(everybody)[:, :fields])


class UnscaledParts(PersonReading):
    """Adds all that a person has, not their share of a fixed number of observations."""

    def _summed(self, model: PersonModel, steps: Integers) -> Integers:
        summed = np.zeros(model.totals.shape, dtype=np.int64)
        if len(steps):
            np.add.at(summed, self._slots(model, steps), steps)
        return summed


class PublicCounts(PersonReading):
    """Takes it for public how many take part, as the reading `observation` does."""

    def release(
        self, model: PersonModel, gathered: GatheredPeople, noise: NoiseSource
    ) -> PersonModel:
        """Return the next model, with the number of people as it is."""
        released = super().release(model, gathered, noise)
        exact = self._summed(model, gathered.steps)[:, 0].astype(np.float64)
        return replace(released, totals=np.column_stack([exact, released.totals[:, 1:]]))


class SharedSums(ClusterRecommender):
    """Serves a client from the exact sums of everybody on this server."""

    def decide(
        self,
        model: Any,
        questions: Sequence[Question],
        own: Sequence[Any],
        noise: NoiseSource,
    ) -> list[Decision]:
        """Decide from everybody's sums, added up."""
        store: Any = self.store
        everybody = list(store._own.get(self.generation, {}).values())
        total = self._ranking.own.steps(everybody).sum(axis=0)
        return super().decide(model, questions, [total] * len(questions), noise)


class WaitsForPeople(ClusterRecommender):
    """Releases once enough people have told something."""

    def due(self, now: float) -> bool:
        """Tell whether it is time, and three people have sums."""
        store: Any = self.store
        return super().due(now) and len(store._own.get(self.generation, {})) > 2


def faults() -> Iterator[PlantedFault]:
    """Yield mistakes of the whole loop."""
    several = "unseen, three records in each of two releases, feedback epsilon 1"
    plants = {
        "clients served from each other's exact sums": (
            Planted(recommender=SharedSums),
            several,
        ),
        "people who take part without paying": (
            Planted(recommender=_with_reading(UnpaidParts)),
            "a spent budget",
        ),
        "people who put in all that they have": (
            Planted(recommender=_with_reading(UnscaledParts)),
            several,
        ),
        "the number of people taken for public": (
            Planted(recommender=_with_reading(PublicCounts)),
            "unseen, feedback or none",
        ),
        "noise drawn anew for the same release": (Planted(releaser=RedrawingReleaser), several),
        "a release that waits for people": (
            Planted(recommender=WaitsForPeople),
            "unseen, feedback or none",
        ),
        "a worker that answers from an unreleased model": (
            Planted(releaser=HastyReleaser),
            "unseen, workers that die",
        ),
        "a retry that pays once and draws twice": (Planted(answers=RedrawingAnswers), "repeated"),
    }
    return faults_of(plants, stories, ClusterLoop())
