"""Algorithm 1 as published, line by line."""

import math
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.noise import SeededNoise
from discreet.research.published.p_dap import PublishedAdaptivePartition
from discreet.research.published.p_dap_cells import Cell, PartitionParameters

ITEMS, VENDORS = 3, 2
SLOTS = ITEMS + 2 * VENDORS
HORIZON = 100
G1 = math.ceil(math.log(HORIZON))  # at level 0
CONTEXT = np.array([0.3])


def learner(
    *, items: int = ITEMS, vendors: int = VENDORS, seed: int = 0, **changes: object
) -> PublishedAdaptivePartition:
    fields = {"horizon": HORIZON, "mode": "none", "base": 1_000.0, **changes}
    return PublishedAdaptivePartition(
        PartitionParameters(**fields),  # type: ignore[arg-type]
        dimensions=1,
        items=items,
        vendors=vendors,
        noise=SeededNoise(seed),
    )


def known(
    one: PublishedAdaptivePartition, counts: Sequence[int], means: Sequence[float]
) -> PublishedAdaptivePartition:
    """Return the learner with these statistics in its first cell."""
    cell = one.cells.active(CONTEXT)
    cell.counts[:] = counts
    cell.sums[:] = [count * mean for count, mean in zip(counts, means, strict=True)]
    return one


def choose(one: PublishedAdaptivePartition) -> int:
    return one.decide(CONTEXT)[1]


def test_exploration_goes_through_own_items_then_training_then_evaluation() -> None:
    one = learner()
    order = []
    for _ in range(SLOTS * G1):
        cell, chosen = one.decide(CONTEXT)
        order.append(chosen)
        one.learn(cell, chosen, 0.0)
    # Lines 4 and 5; 6 and 7 (the training slots are the last); 8 and 9.
    # Within each, whoever was tried least.
    assert order == [each for group in ([0, 1, 2], [5, 6], [3, 4]) for each in group * G1]


@pytest.mark.parametrize(
    ("means", "chosen"),
    [
        ([0.2, 0.9, 0.1, 0.5, 0.8, 0, 0], 1),  # an own item is best
        ([0.2, 0.7, 0.1, 0.5, 0.8, 0, 0], 4),  # the second vendor is
        ([0.2, 0.8, 0.1, 0.5, 0.8, 0, 0], 1),  # a tie stays at home
        ([0.2, 0.7, 0.1, -30.0, 40.0, 0, 0], 4),  # noise may take a mean anywhere
        ([0.2, 0.7, 0.1, 0.5, 0.6, 9.0, 9.0], 1),  # training does not count in lines 15 and 16
    ],
)
def test_the_best_of_own_items_and_vendors_is_called(means: list[float], chosen: int) -> None:
    assert choose(known(learner(), [G1] * SLOTS, means)) == chosen


def test_the_exponential_mechanism_is_the_papers() -> None:
    epsilon, similarity = 3.0, 0.5
    one = learner(items=3, vendors=0, mode="uniform", epsilon=epsilon, similarity=similarity)
    means = np.array([0.1, 0.5, 0.9])
    expected = np.exp(epsilon * means / (2 * 2**-similarity))
    expected /= expected.sum()
    # The tables round utilities to a 4,096th and pay a little for it.
    assert one.mechanism(0).probabilities(means) == pytest.approx(expected, rel=2e-3)
    known(one, [50] * 3, means.tolist())
    drawn = Counter(choose(one) for _ in range(4_000))
    # A standard deviation of a share is at most 0.008: the tolerance is 4 of them. A law wrong by
    # 30% in its epsilon moves the largest share by 0.05.
    assert [drawn[item] / 4_000 for item in range(3)] == pytest.approx(expected, abs=0.032)


def test_a_vendor_is_called_for_the_items_that_it_beats() -> None:
    one = known(learner(mode="uniform"), [50] * SLOTS, [0.1, 0.5, 0.9, 0.6, 0.2, 0, 0])
    # Own item 2 beats the best vendor, items 0 and 1 do not.
    assert {choose(one) for _ in range(60)} == {2, 3}


def test_an_own_item_earns_0_to_1_and_only_a_vendors_reward_may_be_noisy() -> None:
    one = known(learner(), [G1] * SLOTS, [0.2, 0.3, 0.1, 0.5, 0.8, 0, 0])
    cell, slot = one.decide(CONTEXT)
    assert slot == 4
    before = (cell.arrivals, float(cell.sums[4]))
    one.learn(cell, slot, -12.5)
    assert (cell.arrivals, float(cell.sums[4])) == (before[0] + 1, before[1] - 12.5)
    with pytest.raises(InvalidArgument, match="reward"):
        one.learn(cell, 0, -12.5)
    with pytest.raises(InvalidArgument, match="reward"):
        one.learn(cell, slot, math.nan)


def test_what_was_learned_in_a_cell_stays_in_it() -> None:
    one = learner(items=1, vendors=0, base=1.0)
    cell, slot = one.decide(CONTEXT)
    one.learn(cell, slot, 1.0)
    child, _ = one.decide(CONTEXT)
    assert (cell.level, child.level) == (0, 1)
    assert isinstance(child, Cell)
    assert child.counts.tolist() == [0.0]


@pytest.mark.parametrize(
    ("changes", "argument"), [({"vendors": -1}, "vendors"), ({"items": 0}, "items")]
)
def test_impossible_parameters_are_named(changes: dict[str, int], argument: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        learner(**changes)  # type: ignore[arg-type]
    assert refused.value.argument == argument


def test_the_server_does_not_import_a_published_reading() -> None:
    code = (
        "import sys, discreet.app, discreet.serving, discreet.preparation; "
        "print([name for name in sys.modules if name.startswith('discreet.research')])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600
    )
    assert shown.stdout.strip() == "[]", shown.stderr
