"""One piece of feedback of the adaptive partition: what replacing it moves, and what it is charged.

What a record adds is read off the shipped `learn`, for rewards on and off the grid, in different
cells and for different items; which noise hides it, off the shipped `release`. Two records are
neighbours, and so are a record and none: the loss of the Gaussian noise is computed in rationals.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

from discreet.audit.claims import Claim, Finding, Method, PlantedFault
from discreet.audit.enclosures import float_above
from discreet.audit.families.p_dap.answers import taught
from discreet.audit.mechanisms.calibrations import summed_delta
from discreet.audit.scripted_noise import ConstantNoise
from discreet.families.contract import REWARD_STEPS
from discreet.families.p_dap.learning import FeedbackNoise
from discreet.families.p_dap.recommender import PartitionRecommender, own_note
from discreet.families.p_dap.statistics import SENSITIVITY
from discreet.families.questions import Choice, PendingDecision
from discreet.privacy.charges import NANO

Record = dict[tuple[bytes, int], int]
"""What a record adds, by block and field."""

REWARDS = (0.0, 1.0, 0.5, 1 / 3, 0.1, 1 - 2.0**-30, 2.0**-22)
PROMISES = ((0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-9), (8.0, 1e-5))


def records(recommender: Any) -> list[Record]:
    """Return what feedback may add: two items, two cells, many rewards, and no feedback at all."""
    found: list[Record] = [{}]
    for cell, slot, reward in product((1, 2), (0, 1), REWARDS):
        lesson = recommender.learn(_pending(recommender, cell, slot), 0, reward)
        found.append(
            {
                (block, field): amount
                for block, amounts in lesson.increments.items()
                for field, amount in amounts
            }
        )
    return found


def _pending(recommender: Any, cell: int, slot: int) -> PendingDecision:
    return PendingDecision(
        generation=recommender.generation,
        decision_id=b"decision",
        expires_at=1,
        principal=b"client",
        personalised=True,
        choices=(Choice(slot, 1.0),),
        note=own_note(cell),
    )


def scales_of(recommender: Any) -> set[float]:
    """Return the scales of the noise that a release asks for, in steps."""
    constant = ConstantNoise()
    recommender.release(recommender.current.model, {}, constant)
    return set(constant.gaussian)


def examine_record(recommender: Any) -> Finding:
    """Compare the exact rho of replacing, adding or removing a record with its charge."""
    added = records(recommender)
    pending = _pending(recommender, 1, 0)
    charged = {recommender.learn(pending, 0, reward).charge.nano_rho for reward in REWARDS}
    claimed = Fraction(min(charged), NANO)
    if len(charged) > 1:
        return Finding(float(claimed), math.inf, holds=False)
    scale = Fraction(min(scales_of(recommender)))
    worst = max(
        sum((one.get(key, 0) - other.get(key, 0)) ** 2 for key in one.keys() | other.keys())
        for one, other in product(added, added)
    )
    measured = worst / (2 * scale**2)
    return Finding(float(claimed), float_above(measured), holds=measured <= claimed)


def examine_promise(noise: FeedbackNoise, *, epsilon: float, delta: float) -> Finding:
    """Compare the delta that the noise of one record has at epsilon with the promise."""
    measured = summed_delta(multiplier=noise.deviation / SENSITIVITY, epsilon=epsilon)
    return Finding(delta, measured, holds=measured <= delta)


def examine_grid(steps: int) -> Finding:
    """Compare the length of every record with the grid's unit: rounding must not exceed it."""
    recommender = taught("uniform")
    longest = max(sum(each**2 for each in record.values()) for record in records(recommender))
    return Finding(float(steps), math.sqrt(longest), holds=longest <= steps**2)


def claims() -> Iterator[Claim]:
    """Yield the claims about one record."""
    yield Claim("p-dap, a record: rho", Method.EXACT, lambda _: examine_record(taught("uniform")))
    yield Claim(
        "p-dap, a record: length in steps", Method.EXACT, lambda _: examine_grid(REWARD_STEPS)
    )
    for epsilon, delta in PROMISES:

        def promise(_: object, epsilon: float = epsilon, delta: float = delta) -> Finding:
            noise = FeedbackNoise.calibrated(epsilon=epsilon, delta=delta)
            return examine_promise(noise, epsilon=epsilon, delta=delta)

        yield Claim(
            f"p-dap, noise of a record at ({epsilon:g}, {delta:g}): delta", Method.EXACT, promise
        )


class AddOrRemoveOnly(PartitionRecommender):
    """Noise for a record that comes or goes, charged alike: one that is replaced moves further."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._growth = {
            population: replace(
                growth,
                noise=replace(growth.noise, deviation=growth.noise.deviation / math.sqrt(2)),
            )
            for population, growth in self._growth.items()
        }


class DearLikes(PartitionRecommender):
    """Charges likes more than dislikes: the account tells which it was."""

    def learn(self, pending: PendingDecision, position: int, reward: float) -> Any:
        """Return the lesson with a price that depends on the reward."""
        lesson = super().learn(pending, position, reward)
        return lesson._replace(charge=lesson.charge + lesson.charge) if reward > 0.5 else lesson


def _pure_conversion(epsilon: float) -> FeedbackNoise:
    """Return noise as if epsilon**2 / 2 were the rho of (epsilon, delta)."""
    deviation = SENSITIVITY / epsilon
    return replace(FeedbackNoise.calibrated(epsilon=epsilon, delta=1e-6), deviation=deviation)


def faults() -> Iterator[PlantedFault]:
    """Yield mistakes about one record."""
    for name, examine in {
        "noise for adding and removing only": lambda: examine_record(
            taught("uniform", AddOrRemoveOnly)
        ),
        "likes dearer than dislikes": lambda: examine_record(taught("uniform", DearLikes)),
        "epsilon taken for pure privacy": lambda: examine_promise(
            _pure_conversion(1.0), epsilon=1.0, delta=1e-6
        ),
    }.items():

        def look(_: object, examine: Callable[[], Finding] = examine) -> Finding:
            return examine()

        yield PlantedFault(f"p-dap, a record: {name}", look)
