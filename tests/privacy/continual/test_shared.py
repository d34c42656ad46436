"""Running sums whose noise belongs to nodes that everybody can name."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.privacy.accountants import accountant
from discreet.privacy.continual import Doubling, LaplaceTree
from discreet.privacy.continual.shared import GRANULARITY, STEPS, SharedSum
from discreet.research.noise import SeededNoise

ONE = SharedSum(epsilon=1.0)


def covered(node: int) -> range:
    """The steps that a node covers: the last lowbit of its place within its epoch."""
    epoch = node.bit_length() - 1
    place = node - (1 << epoch) + 1
    return range(node - (place & -place) + 1, node + 1)


@given(st.integers(0, 10**6))
def test_the_nodes_of_a_release_partition_the_steps_so_far(step: int) -> None:
    ranges = sorted((covered(node) for node in ONE.nodes(step)), key=lambda one: one.start)
    ends = [0, *(one.stop - 1 for one in ranges)]
    assert [one.start for one in ranges] == [end + 1 for end in ends[:-1]]
    assert ends[-1] == step


def test_a_step_is_in_as_many_nodes_as_its_epoch_pays_for() -> None:
    used = {node for step in range(1, 2_048) for node in ONE.nodes(step)}
    entered = Counter(step for node in used for step in covered(node))
    for epoch in range(11):
        inside = [entered[step] for step in range(1 << epoch, 2 << epoch)]
        assert max(inside) == epoch + 1


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_the_noise_pays_for_that_many_nodes(epsilon: float) -> None:
    sums = SharedSum(epsilon=epsilon)
    for node in (1, 2, 3, 4, 100, 2**20):
        epoch = node.bit_length() - 1
        # Each node costs sensitivity / scale, and all that a step is in cost epsilon at most.
        assert (epoch + 1) / sums.scale(node) <= epsilon
        assert (epoch + 1) / sums.scale(node) == pytest.approx(epsilon, rel=1e-5)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_the_whole_costs_epsilon(epsilon: float) -> None:
    charge = accountant("basic").charge(SharedSum(epsilon=epsilon).event)
    assert charge.nano_epsilon == round(epsilon * 1e9)


def test_it_is_the_doubling_tree_with_its_noise_laid_open() -> None:
    doubling = Doubling(family=LaplaceTree, multiplier=1.0, share=0.0, granularity=GRANULARITY)
    for step in (0, 1, 2, 3, 10, 1_000, 123_456):
        assert ONE.variance(step) == pytest.approx(doubling.variance(step), rel=1e-9)


def test_draws_have_the_scale_that_they_should() -> None:
    """3,000 draws: the mean of |z| is the scale, with a relative error of 1/sqrt(3000) = 0.018;
    a scale wrong by 30% is 16 of those away. Seeded."""
    noise = SeededNoise(3)
    for node in (1, 1_000):
        draws = [abs(ONE.draw(node, noise)) / STEPS for _ in range(3_000)]
        assert sum(draws) / len(draws) == pytest.approx(ONE.scale(node), rel=0.09)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 51.0, 1e-4])
def test_epsilons_that_make_no_sense_are_refused(epsilon: float) -> None:
    with pytest.raises(InvalidArgument, match="epsilon"):
        SharedSum(epsilon=epsilon)


def test_steps_and_nodes_that_do_not_exist_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="step"):
        ONE.nodes(-1)
    with pytest.raises(InvalidArgument, match="node"):
        ONE.scale(0)
