"""What is kept about a cell."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from discreet.families.p_dap.cell import REWARD_STEPS, arrivals, observation, tallies
from discreet.families.p_dap.contract import Address, Choice, Decision, Vector, merge

DECISION = Decision(choices=(Choice(2, 0.5), Choice(0, 0.25)), address=Address(b"here", 3))


def vector(*fields: int) -> Vector:
    return np.array(fields, dtype=np.int64)


def test_an_unwritten_cell_has_seen_nothing() -> None:
    counts, sums = tallies(vector(), 2)
    assert arrivals(vector()) == 0
    assert counts.tolist() == sums.tolist() == [0.0, 0.0]


def test_counts_and_sums_alternate_after_the_arrivals() -> None:
    counts, sums = tallies(vector(5, 3, REWARD_STEPS, 2, REWARD_STEPS // 4), 2)
    assert arrivals(vector(5, 3, 0)) == 5
    assert counts.tolist() == [3.0, 2.0]
    assert sums.tolist() == [1.0, 0.25]


def test_a_vector_may_know_fewer_or_more_arms_than_we_do() -> None:
    assert tallies(vector(1, 1, REWARD_STEPS), 3)[0].tolist() == [1.0, 0.0, 0.0]
    longer = vector(2, 1, REWARD_STEPS, 1, 0)
    assert tallies(longer, 1)[0].tolist() == [1.0]
    assert tallies(longer, 1)[1].tolist() == [1.0]


def test_feedback_goes_to_the_cell_and_the_arm_of_the_decision() -> None:
    update = observation(decision=DECISION, choice=1, reward=1)
    assert update.address == DECISION.address
    assert update.increments == ((0, 1), (1, 1), (2, REWARD_STEPS))
    assert observation(decision=DECISION, choice=0, reward=0).increments == ((0, 1), (5, 1), (6, 0))


@given(rewards=st.lists(st.floats(0, 1), max_size=30))
def test_a_sum_of_rewards_is_right_to_half_a_step_each(rewards: list[float]) -> None:
    state = vector()
    for reward in rewards:
        state = merge(state=state, update=observation(decision=DECISION, choice=0, reward=reward))
    counts, sums = tallies(state, 3)
    assert counts[2] == len(rewards)
    assert abs(sums[2] - sum(rewards)) <= (len(rewards) + 1) * 0.5 / REWARD_STEPS
