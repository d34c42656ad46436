"""The closed loop of sparse mirror descent: two items and two features of clients, crossed."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from discreet.audit.claims import Claim, PlantedFault
from discreet.audit.closed_loop.claiming import claims_of, faults_of
from discreet.audit.closed_loop.faulty import (
    HastyReleaser,
    RedrawingAnswers,
    RedrawingReleaser,
    decides_from_raw_sums,
    exactness_unbooked,
    releases_by_feedback,
)
from discreet.audit.closed_loop.stage import MadeRelease, Planted, spread_noise
from discreet.audit.closed_loop.stories import (
    Cast,
    rounds,
    stories_of_answers,
    stories_of_feedback,
    stories_of_workers,
)
from discreet.audit.closed_loop.story import Behaviour, Story
from discreet.audit.mechanisms.stores import LinearPriceStore, UnpaidStore
from discreet.audit.scripted_noise import ExactLaw, TapedNoise, coin_law
from discreet.families.mirror_descent.model import MirrorModel
from discreet.families.mirror_descent.recommender import MirrorDescentRecommender
from discreet.families.questions import Ask, Question, Sparse
from discreet.privacy.choice import RESPONSE_BITS
from discreet.privacy.draw import BITS
from discreet.privacy.noise import NoiseSource

_COIN_BITS = 32
_SEED_BITS = 64
_SEEDS = (1, 3)
"""Of the order of equals: it looks at nobody, so the law is the same for each by itself. Under the
first the items stand in one order, under the second in the other."""


_OPPOSED = (4, 0, 0, 0, 0, 4, -4, -4, 4)
"""The number of records, and then the features of clients, of items, and their products."""


class SizedNoise(TapedNoise):
    """Uniform bits by how many are asked for: whether a seed is needed, and when, varies."""

    def __init__(self, answers: Mapping[int, int]) -> None:
        super().__init__()
        self._answers = answers
        self.given: list[int] = []
        """The answers so far, in the order in which they were asked for."""

    def bits(self, count: int) -> int:
        """Return the answer of this size; there must be one."""
        self.given.append(self._answers[count])
        return self.given[-1]


class MirrorLoop:
    """What a closed loop has to know about mirror-descent; a draw takes `uniform_bits`."""

    algorithm = "mirror-descent"

    def __init__(self, uniform_bits: int = BITS) -> None:
        self._uniform_bits = uniform_bits

    def ask(self, name: str, client: str, situation: Sparse) -> Ask:
        """Return a question of a client with these features."""
        return Ask(name, client, features=situation)

    def law(self, draw: Callable[[NoiseSource], str]) -> ExactLaw:
        """Return the law of an answer: a coin, a draw by the mechanism, and a seed."""
        shares: dict[Hashable, Fraction] = {}
        bits: dict[Hashable, tuple[int, ...]] = {}
        for seed in _SEEDS:

            def tape(coin: int, uniform: int, seed: int = seed) -> SizedNoise:
                return SizedNoise({_COIN_BITS: coin, _SEED_BITS: seed, self._uniform_bits: uniform})

            def outcome(
                coin: int, uniform: int, tape: Callable[[int, int], SizedNoise] = tape
            ) -> Hashable:
                return draw(tape(coin, uniform))

            law = coin_law(outcome, coin_bits=_COIN_BITS, uniform_bits=self._uniform_bits)
            for shown, share in law.shares.items():
                noise = tape(*law.bits[shown])
                draw(noise)
                shares[seed, shown] = share / len(_SEEDS)
                bits[seed, shown] = tuple(noise.given)
        return ExactLaw(shares, bits)

    def noise(self, path: int, release: int, scales: Sequence[float]) -> list[int]:
        """On every second path, return noise under which clients' features change all."""
        if path % 2 == 0:
            return spread_noise(path, release, scales)
        parts = zip(_OPPOSED, scales, strict=False)
        return [round(each * scale) + release for each, scale in parts]

    def summary(self, model: MirrorModel) -> list[float]:
        """Return the released sums."""
        return [*model.own.gradients.tolist(), model.own.count]

    def difference(self, first: MadeRelease, second: MadeRelease) -> list[int] | None:
        """Compare what was gathered: the count and the gradients, to each of which noise is added.

        The released numbers are products of noisy ones, which would be harder to compare.
        """
        learner = first.recommender.learner
        apart = learner.summed(first.gathered) - learner.summed(second.gathered)
        if len(first.scales) != len(apart):
            return None if apart.any() else [0] * len(first.scales)
        return [int(each) for each in apart]


_FEATURES = {
    "a": {"indices": [0], "values": [1.0]},
    "b": {"indices": [1], "values": [1.0]},
    "c": {"indices": [0, 1], "values": [0.7, 0.7]},
}


def document(
    *,
    feedback: Any = 1.0,
    answers: Any = 0.5,
    answers_budget: float = 20.0,
    feedback_budget: float = 20.0,
    items: Sequence[str] = ("a", "b"),
    delta: float = 1e-6,
    truncation: float = 0.0,
    draw: str = "weighted",
) -> dict[str, Any]:
    """Return a small document; "exact" turns a dial off."""
    return {
        "algorithm": "mirror-descent",
        "items": [{"id": item, "features": _FEATURES[item]} for item in items],
        "features": {"clients": 2, "items": 2, "most_nonzeros": 4},
        "learning": {"truncation": truncation},
        "exploration": {"rate": 0.1},
        "releases": {"seconds": 5, "growth": 0},
        "privacy": {
            "answers": answers
            if answers == "exact"
            else {
                "epsilon": answers,
                "budget": {"epsilon": answers_budget, "delta": delta},
                "draw": draw,
            },
            "feedback": feedback
            if feedback == "exact"
            else {
                "epsilon": feedback,
                "delta": delta,
                "budget": {"epsilon": feedback_budget, "delta": delta},
            },
        },
    }


def _likes(favourite: str) -> Callable[[Sparse, str], float | None]:
    return lambda _, item: float(item == favourite)


FEW, MANY = Sparse((0,), (1.0,)), Sparse((0, 1), (-0.6, 0.8))
"""A client with one feature, and one with two."""

CAST = Cast(
    document=document,
    others={
        "first": Behaviour(lambda _: FEW, _likes("a")),
        "second": Behaviour(lambda at: MANY if at % 2 else FEW, _likes("b")),
    },
    opposites=(Behaviour(lambda _: FEW, _likes("a")), Behaviour(lambda _: MANY, _likes("b"))),
    tastes=(Behaviour(lambda _: FEW, _likes("a")), Behaviour(lambda _: FEW, _likes("b"))),
)


UNDECIDED = replace(CAST, document=partial(document, truncation=100.0), opposites=CAST.tastes)
"""The same people with a model that prefers nothing yet: then every record teaches all it can."""


def stories() -> Iterator[Story]:
    """Yield what may happen to the person: to feedback, to answers, and to both at once."""
    yield from stories_of_feedback(UNDECIDED)
    yield from stories_of_workers(UNDECIDED)
    yield from stories_of_answers(CAST)
    yield CAST.story("features and tastes", [*rounds(2, asks=2)], answers=2.0, answers_budget=6.0)


def stories_of_the_best() -> Iterator[Story]:
    """Yield what may happen where the best is drawn by randomised response."""
    yield CAST.story(
        "the best of few", [*rounds(2, asks=2)], answers=2.0, answers_budget=6.0, draw="best"
    )


def claims() -> Iterator[Claim]:
    """Yield the claims about one person."""
    yield from claims_of(stories(), MirrorLoop())
    yield from claims_of(stories_of_the_best(), MirrorLoop(RESPONSE_BITS))


class RankedWithoutNoise(MirrorDescentRecommender):
    """Ranks the visitor's features exactly, and says that it costs nothing."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        object.__setattr__(self.ranking, "choice", type(self.ranking.choice)(None))

    def price(self, question: Question) -> Any:
        """Return the price of a question without features."""
        anonymous = self._reader.question(Ask(self.name, "anybody"), question.client)
        return super().price(anonymous)


class TellingLength(MirrorDescentRecommender):
    """Does not fill notes up: the length of a recommendation id tells how many features."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._reader._hides_lengths = False


def faults() -> Iterator[PlantedFault]:
    """Yield mistakes of the whole loop."""
    family = MirrorDescentRecommender
    three = "three records in each of two releases, feedback epsilon 1"
    one = "one record, feedback epsilon 1"
    return faults_of(
        {
            "answers decided from raw sums": (
                Planted(recommender=decides_from_raw_sums(family)),
                "features and tastes",
            ),
            "feedback learned that was not paid for": (Planted(store=UnpaidStore), "budgets spent"),
            "n records in one release charged n times": (Planted(store=LinearPriceStore), three),
            "noise drawn anew for the same release": (Planted(releaser=RedrawingReleaser), one),
            "a release that waits for feedback": (
                Planted(recommender=releases_by_feedback(family, records=3)),
                "feedback or none",
            ),
            "exact answers not booked": (
                Planted(recommender=exactness_unbooked(family)),
                "exact answers",
            ),
            "exact feedback not booked": (
                Planted(recommender=exactness_unbooked(family)),
                "exact feedback",
            ),
            "a retry that pays once and draws twice": (
                Planted(answers=RedrawingAnswers),
                "retries",
            ),
            "a worker that answers from an unreleased model": (
                Planted(releaser=HastyReleaser),
                "workers that die",
            ),
            "features ranked without noise, for nothing": (
                Planted(recommender=RankedWithoutNoise),
                "features and tastes",
            ),
            "an id whose length tells how many features": (
                Planted(recommender=TellingLength),
                "features and tastes",
            ),
        },
        stories,
        MirrorLoop(),
    )
