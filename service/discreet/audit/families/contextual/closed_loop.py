"""The closed loop of the contextual learner: two items, two contexts, three people, both spaces."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from discreet.audit.claims import Claim, PlantedFault
from discreet.audit.closed_loop.claiming import claims_of, faults_of
from discreet.audit.closed_loop.faulty import (
    ForgetfulDiscardStore,
    HastyReleaser,
    RedrawingAnswers,
    RedrawingReleaser,
    RepeatedFreezeStore,
    decides_from_raw_sums,
    dislikes_are_free,
    exactness_unbooked,
    releases_by_feedback,
)
from discreet.audit.closed_loop.stage import MadeRelease, Planted, spread_noise
from discreet.audit.closed_loop.stories import Cast, every_story
from discreet.audit.closed_loop.story import Behaviour, Story
from discreet.audit.families.contextual.records import AddingOnlyNoise
from discreet.audit.mechanisms.stores import LinearPriceStore, UnpaidStore
from discreet.audit.scripted_noise import ExactLaw, TapedNoise, coin_law
from discreet.families.choice import COIN_SIDES
from discreet.families.contextual.blocks import gathered_sums
from discreet.families.contextual.cells import CellSpace
from discreet.families.contextual.model import ContextualModel
from discreet.families.contextual.recommender import ContextualRecommender
from discreet.families.questions import Ask, Decision, Question
from discreet.privacy.choice import RESPONSE_BITS
from discreet.privacy.noise import NoiseSource
from discreet.state.stores import Vector

LEFT, RIGHT = 0.2, 0.8
LINEAR = 4
_CELLS = CellSpace(1).entries
_WIDER = CellSpace(1).kept - _CELLS
"""Sums of more than a cell: those of both halves."""
_READ = 96
_UNREAD = RESPONSE_BITS - _READ


class ContextualLoop:
    """What a closed loop has to know about contextual."""

    algorithm = "contextual"

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions

    def ask(self, name: str, client: str, situation: float) -> Ask:
        """Return a question from a context."""
        return Ask(name, client, (situation,) * self._dimensions)

    def law(self, draw: Callable[[NoiseSource], str]) -> ExactLaw:
        """Return the law of an answer that is drawn with a coin and a uniform integer.

        Of the uniform the first bits are read, the others being 0: shares are off by less than
        2**-95, a billionth of what the draw's own bias is charged.
        """
        law = coin_law(
            lambda coin, uniform: draw(TapedNoise(bits=(coin, uniform << _UNREAD))),
            coin_bits=COIN_SIDES.bit_length() - 1,
            uniform_bits=_READ,
        )
        bits: dict[Hashable, tuple[int, ...]] = {
            shown: (coin, uniform << _UNREAD) for shown, (coin, uniform) in law.bits.items()
        }
        return ExactLaw(law.shares, bits)

    def noise(self, path: int, release: int, scales: Sequence[float]) -> list[int]:
        """On every second path, return noise as if items were liked on opposite sides by many."""
        if path % 2 == 0:
            return spread_noise(path, release, scales)
        signs = [self._sign(k) * (-1) ** release for k in range(len(scales))]
        return [round((40 + 40 * s) * scale) for s, scale in zip(signs, scales, strict=True)]

    def _sign(self, k: int) -> int:
        """Return 1 or -1 for the k-th number of a release."""
        if self._dimensions == LINEAR:
            return int((-1) ** (k + k // 16 + k // 32))
        item, within = divmod(k, 2 * (_WIDER + _CELLS))
        place, disliked = divmod(within, 2)
        right = place if place < _WIDER else (place - _WIDER) // (_CELLS // 2)
        return int((-1) ** (disliked + right + item))

    def summary(self, model: ContextualModel) -> list[float]:
        """Return the released sums of both items, added up."""
        return [*model.sums.liked.sum(axis=0).tolist(), *model.sums.disliked.sum(axis=0).tolist()]

    def difference(self, first: MadeRelease, second: MadeRelease) -> list[int] | None:
        """Compare what was gathered, to each number of which noise is added.

        The released numbers are weighted sums of the noisy ones, and follow from them.
        """
        apart = _summed(first) - _summed(second)
        if len(first.scales) != len(apart):
            return None if apart.any() else [0] * len(first.scales)
        return [int(each) for each in apart]


def _summed(made: MadeRelease) -> np.ndarray[Any, np.dtype[np.int64]]:
    recommender = made.recommender
    slots = sorted(recommender.stored.slots.values())
    items, products, _ = gathered_sums(recommender.space, made.gathered, slots)
    return np.concatenate([items.reshape(-1), products])


def document(
    *,
    dimensions: int = 1,
    feedback: Any = 1.0,
    answers: Any = 0.5,
    answers_budget: float = 20.0,
    feedback_budget: float = 20.0,
    items: Sequence[str] = ("a", "b"),
    delta: float = 1e-6,
) -> dict[str, Any]:
    """Return a small document; "exact" turns a dial off."""
    return {
        "algorithm": "contextual",
        "items": list(items),
        "context": {"dimensions": dimensions},
        "exploration": {"rate": 0.1},
        "releases": {"seconds": 5, "growth": 0},
        "privacy": {
            "answers": answers
            if answers == "exact"
            else {"epsilon": answers, "budget": {"epsilon": answers_budget, "delta": delta}},
            "feedback": feedback
            if feedback == "exact"
            else {
                "epsilon": feedback,
                "delta": delta,
                "budget": {"epsilon": feedback_budget, "delta": delta},
            },
        },
    }


def _likes(favourite: str) -> Callable[[float, str], float | None]:
    return lambda _, item: float(item == favourite)


CELLS = Cast(
    document=document,
    others={
        "first": Behaviour(lambda _: LEFT, _likes("a")),
        "second": Behaviour(lambda at: RIGHT if at % 2 else LEFT, lambda _, item: 0.5),
    },
    opposites=(Behaviour(lambda _: LEFT, _likes("a")), Behaviour(lambda _: RIGHT, _likes("b"))),
    tastes=(Behaviour(lambda _: LEFT, _likes("a")), Behaviour(lambda _: LEFT, _likes("b"))),
)
"""The person lives on one side and likes one item, or on the other and likes the other."""

LINES = replace(CELLS, document=partial(document, dimensions=LINEAR))


def stories() -> Iterator[Story]:
    """Yield what may happen to the person, where contexts lie in cells."""
    return every_story(CELLS)


def linear_stories() -> Iterator[Story]:
    """Yield the same where contexts are linear features."""
    for story in every_story(LINES):
        yield replace(story, name=f"linear, {story.name}")


def claims() -> Iterator[Claim]:
    """Yield the claims about one person."""
    yield from claims_of(stories(), ContextualLoop(1))
    yield from claims_of(linear_stories(), ContextualLoop(LINEAR))


class SilentEntries(ContextualRecommender):
    """Adds noise only to the sums that feedback came for."""

    def release(
        self, model: ContextualModel, gathered: Mapping[bytes, Vector], noise: NoiseSource
    ) -> ContextualModel:
        """Return the next model; what nothing was said about stays as it is."""
        released = super().release(model, gathered, noise)
        before, after = model.sums, released.sums
        items, _, _ = gathered_sums(self.space, gathered, range(before.slots))
        silent = items[:, -self.space.entries :] == 0
        return self._model(
            replace(
                after,
                liked=np.where(silent[:, :, 0], before.liked, after.liked),
                disliked=np.where(silent[:, :, 1], before.disliked, after.disliked),
            )
        )


class CuriousAnswers(ContextualRecommender):
    """Looks at the context of clients whose budget is spent."""

    def decide_without_client(
        self, model: ContextualModel, questions: Sequence[Question], noise: NoiseSource
    ) -> list[Decision]:
        """Decide as if it had been paid for."""
        decided = super().decide(model, questions, [None] * len(questions), noise)
        return [decision._replace(personalised=False) for decision in decided]


class TellingNotes(ContextualRecommender):
    """Leaves notes of zeros short: the length of a recommendation id tells about the context."""

    def decide(
        self,
        model: ContextualModel,
        questions: Sequence[Question],
        own: Sequence[Any],
        noise: NoiseSource,
    ) -> list[Decision]:
        """Decide, with notes as long as what they say."""
        decided = super().decide(model, questions, own, noise)
        return [
            decision._replace(note=decision.note * (1 + decision.note[0] // 8))
            for decision in decided
        ]


def faults() -> Iterator[PlantedFault]:
    """Yield mistakes of the whole loop."""
    family = ContextualRecommender
    one = "one record, feedback epsilon 1"
    three = "three records in each of two releases, feedback epsilon 1"
    plants: dict[str, tuple[Planted, str]] = {
        "answers decided from raw sums": (Planted(recommender=decides_from_raw_sums(family)), one),
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
        "a retry that pays once and draws twice": (Planted(answers=RedrawingAnswers), "retries"),
        "a worker that answers from an unreleased model": (
            Planted(releaser=HastyReleaser),
            "workers that die",
        ),
        "records let into a release after it was frozen": (
            Planted(store=RepeatedFreezeStore),
            "workers that die",
        ),
        "records that are in two releases": (Planted(store=ForgetfulDiscardStore), three),
        "noise only where feedback came from": (Planted(recommender=SilentEntries), three),
        "noise for adding and removing only": (Planted(recommender=AddingOnlyNoise), one),
        "degraded answers that look at the context": (
            Planted(recommender=CuriousAnswers),
            "budgets spent",
        ),
        "a price that depends on the reward": (
            Planted(recommender=dislikes_are_free(family)),
            three,
        ),
        "an id whose length tells about the context": (
            Planted(recommender=TellingNotes),
            "retries",
        ),
    }
    return faults_of(plants, stories, ContextualLoop(1))
