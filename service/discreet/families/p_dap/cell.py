"""What is kept about one cell: how often something was recommended there, and what came of it.

One vector of 64-bit sums a cell: `[arrivals, count_0, sum_0, count_1, sum_1, ...]`, two fields an
arm. Rewards are summed in steps of 2**-20, so that addition is exact and its order does not
matter. Nothing is stored for a decision that never got feedback: an arrival is counted when its
feedback is learned.
"""

import math

import numpy as np

from discreet.families.p_dap.contract import Address, Decision, Floats, Update, Vector
from discreet.errors import InvalidArgument

REWARD_STEPS = 2**20
"""Steps in a reward of 1.0. A 64-bit sum holds more than 10**12 such rewards."""

ARRIVALS = 0


def count_field(slot: int) -> int:
    """Return which field counts the feedback about an arm."""
    return 1 + 2 * slot


def sum_field(slot: int) -> int:
    """Return which field sums the rewards of an arm."""
    return 2 + 2 * slot


def arrivals(vector: Vector) -> int:
    """Return how much feedback a cell has seen; a cell that nobody wrote to has seen none."""
    return int(vector[ARRIVALS]) if len(vector) else 0


def tallies(vector: Vector, arms: int) -> tuple[Floats, Floats]:
    """Return the counts and the reward sums of all arms.

    A vector written before the last items were added is shorter, and one written by a worker that
    already knows more items is longer: what is missing is zero, what is unknown is left out.
    """
    fields = 2 * arms
    body = vector[1 : 1 + fields]
    if len(body) < fields:
        padded = np.zeros(fields)
        padded[: len(body)] = body
        return padded[0::2], padded[1::2] / REWARD_STEPS
    return body[0::2].astype(np.float64), body[1::2] / REWARD_STEPS


def observation(*, decision: Decision, choice: int, reward: float) -> Update:
    """Return what the reward for one of the decision's choices adds to the cell it came from."""
    if not (isinstance(reward, int | float) and math.isfinite(reward) and 0 <= reward <= 1):
        raise InvalidArgument("reward", "must be a number from 0 to 1")
    if not 0 <= choice < len(decision.choices):
        raise InvalidArgument("choice", "must be the position of one of the decision's choices")
    slot = decision.choices[choice].slot
    return _update(decision.address, slot, round(reward * REWARD_STEPS))


def _update(address: Address, slot: int, steps: int) -> Update:
    return Update(
        address=address,
        increments=((ARRIVALS, 1), (count_field(slot), 1), (sum_field(slot), steps)),
    )
