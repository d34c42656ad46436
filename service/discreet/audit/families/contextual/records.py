"""One piece of feedback of the contextual learner: what replacing it moves, and what it costs.

What a record adds is read off the shipped `question`, `decide_without_client` and `learn`; which
noise hides it, off the shipped `release`. Contexts are chosen to be far apart: the corners and the
axes, for which the bound of `spaces` is reached. Two records are neighbours, and so are a record
and none; one that comes or goes may cost half of one that is replaced, and no more.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

from discreet.audit.claims import Claim, Finding, Method, PlantedFault
from discreet.audit.enclosures import float_above
from discreet.audit.scripted_noise import ConstantNoise
from discreet.families.contextual.learning import ReleaseNoise
from discreet.families.contextual.recommender import ContextualRecommender
from discreet.families.contextual.spaces import LINEAR_PARTS
from discreet.families.contract import Resources
from discreet.families.observer import NullObserver
from discreet.families.peering import NoPeers
from discreet.families.questions import Ask, Choice, PendingDecision
from discreet.families.registration import read_document
from discreet.families.stored import StoredDocument
from discreet.privacy.charges import NANO
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore
from discreet.state.principals import Principals

Record = dict[tuple[bytes, int], int]
"""What a record adds, by block and field."""

REWARDS = (0.0, 1.0, 0.5, 1 / 3, 1 - 2.0**-30)
SIZES = (1, 2, 4, 20, 64, 100)
_AXES = 3


def shipped(
    dimensions: int, family: type[ContextualRecommender] = ContextualRecommender
) -> ContextualRecommender:
    """Return a recommender of two items for contexts of so many numbers."""
    document = read_document(
        {"algorithm": "contextual", "items": ["a", "b"], "context": {"dimensions": dimensions}}
    )
    stored = StoredDocument(document, b"generate", 0.0, {}, 0).with_document(document)
    return family(
        name="audited",
        stored=stored,
        resources=Resources(
            store=MemoryStore(),
            noise=SystemNoise(),
            observer=NullObserver(),
            principals=Principals(bytes(32)),
            peers=NoPeers(),
            clock=lambda: 1.0,
        ),
    )


def contexts(dimensions: int) -> list[tuple[float, ...]]:
    """Return contexts far apart: both ends of an axis, the corners, the middle, in between."""
    middle = 0.5 if dimensions <= 64 else 0.0
    found = [(middle,) * dimensions, (0.0,) * dimensions, (1.0,) * dimensions]
    for axis, end in product(range(min(dimensions, _AXES)), (0.0, 1.0)):
        found.append(tuple(end if at == axis else middle for at in range(dimensions)))
    found.append(tuple((at * 0.37) % 1.0 for at in range(dimensions)))
    return found


def records(recommender: Any, dimensions: int) -> list[Record]:
    """Return what feedback may add, and nothing: no feedback at all."""
    found: list[Record] = [{}]
    for context, slot, reward in product(contexts(dimensions), (0, 1), REWARDS):
        lesson = recommender.learn(_pending(recommender, context, slot), 0, reward)
        found.append(
            {
                (block, field): amount
                for block, amounts in lesson.increments.items()
                for field, amount in amounts
            }
        )
    return found


def _pending(recommender: Any, context: tuple[float, ...], slot: int) -> PendingDecision:
    question = recommender.question(Ask("audited", "client", context))
    (decision,) = recommender.decide_without_client(
        recommender.current.model, [question], SystemNoise()
    )
    return PendingDecision(
        generation=recommender.generation,
        decision_id=b"decision",
        expires_at=1,
        principal=b"client",
        personalised=True,
        choices=(Choice(slot, 1.0),),
        note=decision.note,
    )


def examine_record(recommender: Any, dimensions: int) -> Finding:
    """Compare the exact cost of replacing, adding or removing a record with its charge: in rho,
    and in epsilon where Laplace noise hides it."""
    added = records(recommender, dimensions)
    pending = _pending(recommender, contexts(dimensions)[1], 0)
    charges = {recommender.learn(pending, 0, reward).charge for reward in REWARDS}
    charge = min(charges)
    claimed = Fraction(charge.nano_rho, NANO)
    if len(charges) > 1:
        return Finding(float(claimed), math.inf, holds=False)
    noise = ConstantNoise()
    recommender.release(recommender.current.model, {}, noise)
    pure = bool(noise.laplace)
    if pure == bool(noise.gaussian):
        return Finding(float(claimed), math.inf, holds=False)

    def length(record: Record) -> int:
        return sum(abs(amount) if pure else amount**2 for amount in record.values())

    replaced = max(
        length({key: one.get(key, 0) - other.get(key, 0) for key in one.keys() | other.keys()})
        for one, other in product(added[1:], added[1:])
    )
    furthest = max(replaced, 2 * max(length(one) for one in added))
    if not pure:
        measured = furthest / (2 * Fraction(min(noise.gaussian)) ** 2)
        return Finding(float(claimed), float_above(measured), holds=measured <= claimed)
    epsilon = furthest / Fraction(min(noise.laplace))
    measured = epsilon**2 / 2
    holds = measured <= claimed and epsilon <= Fraction(charge.nano_epsilon, NANO)
    return Finding(float(claimed), float_above(measured), holds=holds)


def claims() -> Iterator[Claim]:
    """Yield the claims about one record."""
    for size in SIZES:

        def look(_: object, size: int = size) -> Finding:
            return examine_record(shipped(size), size)

        yield Claim(f"contextual, a record of {size} numbers: rho", Method.EXACT, look)


def scaled_noise(recommender: ContextualRecommender, factor: float) -> None:
    """Give a recommender so much of its noise, at the same price."""
    event = recommender.release_noise.event
    assert event is not None
    recommender.release_noise = ReleaseNoise(replace(event, scale=event.scale * factor))


class AddingOnlyNoise(ContextualRecommender):
    """Noise for a record that comes or goes, charged alike: one that is replaced moves further."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        scaled_noise(self, 1 / math.sqrt(2))


class UncountedProducts(ContextualRecommender):
    """Noise for an item's sums alone, as if the products of everybody's moved nothing."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        constant, psi, _ = LINEAR_PARTS
        scaled_noise(self, math.sqrt(constant + psi))


class LongerNumbers(ContextualRecommender):
    """A context's numbers with twice their part of a record, under the same noise."""

    def learn(self, pending: PendingDecision, position: int, reward: float) -> Any:
        """Return the lesson with longer numbers; the constant's two sums are as they were."""
        lesson: Any = super().learn(pending, position, reward)
        item = next(iter(lesson.increments))
        numbers = [
            (field, amount if field < 2 else math.trunc(amount * math.sqrt(2.0)))
            for field, amount in lesson.increments[item]
        ]
        return lesson._replace(increments={**lesson.increments, item: numbers})


class UnclippedContexts(ContextualRecommender):
    """Learns contexts as long as they are."""

    def learn(self, pending: PendingDecision, position: int, reward: float) -> Any:
        """Return the lesson, three halves as long."""
        lesson: Any = super().learn(pending, position, reward)
        longer = {
            block: [(field, amount * 3 // 2) for field, amount in amounts]
            for block, amounts in lesson.increments.items()
        }
        return lesson._replace(increments=longer)


class DearFeedback(ContextualRecommender):
    """Charges likes more than dislikes: the account tells which it was."""

    def learn(self, pending: PendingDecision, position: int, reward: float) -> Any:
        """Return the lesson with a price that depends on the reward."""
        lesson = super().learn(pending, position, reward)
        return lesson._replace(charge=lesson.charge + lesson.charge) if reward > 0.5 else lesson


def faults() -> Iterator[PlantedFault]:
    """Yield mistakes about one record."""
    plants: dict[str, tuple[type[ContextualRecommender], int]] = {
        "noise for adding and removing only, in cells": (AddingOnlyNoise, 2),
        "noise for adding and removing only, linear": (AddingOnlyNoise, 20),
        "products of contexts not counted": (UncountedProducts, 20),
        "numbers with more than their part": (LongerNumbers, 20),
        "contexts not clipped": (UnclippedContexts, 20),
        "likes dearer than dislikes": (DearFeedback, 4),
    }
    for name, (family, size) in plants.items():

        def examine(
            _: object, family: type[ContextualRecommender] = family, size: int = size
        ) -> Finding:
            return examine_record(shipped(size, family), size)

        look: Callable[[Any], Finding] = examine
        yield PlantedFault(f"contextual, a record: {name}", look)
