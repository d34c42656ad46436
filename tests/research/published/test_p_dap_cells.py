"""The cells of the published algorithms, and the paper's constants."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.published.p_dap_cells import Cell, Cells, PartitionParameters

HORIZON = 100


def cells(**changes: object) -> Cells:
    parameters = PartitionParameters(**({"horizon": HORIZON} | changes))  # type: ignore[arg-type]
    return Cells(parameters, dimensions=1, slots=2)


def fill(cell: Cell, arrivals: int) -> None:
    for _ in range(arrivals):
        cell.add(0, 1.0)


def test_a_cell_splits_at_the_papers_threshold_and_control_grows_with_depth() -> None:
    here = cells(base=10.0, growth=2.0, similarity=0.5)
    x = np.array([0.3])
    root = here.active(x)
    fill(root, 9)
    assert here.active(x) is root
    fill(root, 1)
    child = here.active(x)
    assert (child.level, child.arrivals) == (1, 0)
    fill(child, 39)
    assert here.active(x) is child
    fill(child, 1)
    assert here.active(x).level == 2
    assert here.parameters.control(1) == pytest.approx(2 * math.log(HORIZON))


def test_only_cells_in_which_somebody_arrived_come_into_being() -> None:
    here = cells(base=1.0)
    fill(here.active(np.array([0.3])), 1)
    assert here.active(np.array([0.4])) is here.active(np.array([0.1]))
    assert here.active(np.array([0.9])) is not here.active(np.array([0.1]))
    assert [cell.level for cell in here] == [0, 1, 1]
    assert here.active(np.array([1.0])) is here.active(np.array([0.99]))


def test_the_uniform_rival_has_one_size_of_cells_for_ever() -> None:
    here = cells(uniform_level=2, base=1.0)
    cell = here.active(np.array([0.3]))
    fill(cell, 1_000)
    assert here.active(np.array([0.3])) is cell
    assert cell.level == 2
    assert len({here.active(np.array([x])).name for x in (0.1, 0.2, 0.3)}) == 2


def test_means_are_zero_before_anything_was_tried() -> None:
    cell = cells().active(np.array([0.5]))
    assert cell.means().tolist() == [0.0, 0.0]
    cell.add(1, 1.0)
    cell.add(1, 0.0)
    assert cell.means().tolist() == [0.0, 0.5]


def test_geometric_privacy_grows_with_the_level() -> None:
    geometric = PartitionParameters(horizon=9, mode="geometric", epsilon=0.5, similarity=1.0)
    assert [geometric.epsilon_at(level) for level in range(3)] == [0.5, 1.0, 2.0]
    assert PartitionParameters(horizon=9, mode="uniform", epsilon=0.5).epsilon_at(2) == 0.5


def test_the_sensitivity_is_lemma_2s_and_at_most_1() -> None:
    assert PartitionParameters(horizon=9, similarity=2.0).sensitivity == 0.25
    assert PartitionParameters(horizon=9, similarity=2.0, lipschitz=9.0).sensitivity == 1.0


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"mode": "some"}, "mode"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"lipschitz": math.inf}, "lipschitz"),
        ({"similarity": -1.0}, "similarity"),
        ({"growth": 0.0}, "growth"),
        ({"base": 0.5}, "base"),
        ({"segments": 1}, "segments"),
        ({"horizon": 1}, "horizon"),
        ({"uniform_level": 99}, "uniform_level"),
    ],
)
def test_impossible_parameters_are_named(changes: dict[str, object], argument: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        cells(**changes)
    assert refused.value.argument == argument


@pytest.mark.parametrize("context", [[0.1, 0.2], [1.1], [-0.1], [math.nan]])
def test_contexts_outside_the_cube_are_refused(context: list[float]) -> None:
    with pytest.raises(InvalidArgument, match="context"):
        cells().active(np.array(context))


def test_rewards_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="reward"):
        cells().active(np.array([0.5])).add(0, math.nan)
