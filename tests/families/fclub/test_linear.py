"""Ridge regressions side by side: the inverse is the inverse, and the choice is the best bound."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.fclub.linear import Bank, choose, positive, upper_bounds


def observations(count: int, dimensions: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(count, dimensions))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x, rng.random(count)


def test_rank_one_updates_give_what_solving_gives() -> None:
    bank = Bank(models=2, dimensions=4, ridge=0.5)
    x, y = observations(200)
    for row, reward in zip(x, y, strict=True):
        bank.add(1, row, float(reward))
    gram = 0.5 * np.eye(4) + x.T @ x
    assert np.allclose(bank.gram[1], gram)
    assert np.allclose(bank.inverse[1] @ gram, np.eye(4), atol=1e-10)
    assert np.allclose(bank.estimate[1], np.linalg.solve(gram, x.T @ y))
    assert bank.count[1] == 200
    assert not bank.moment[0].any()
    assert bank.count[0] == 0


def test_inverse_survives_being_computed_anew() -> None:
    bank = Bank(models=1, dimensions=3, ridge=1.0)
    x, y = observations(5_000, 3)
    for row, reward in zip(x, y, strict=True):
        bank.add(0, row, float(reward))
    assert np.allclose(bank.inverse[0] @ bank.gram[0], np.eye(3), atol=1e-11)


def test_replace_sets_everything() -> None:
    bank = Bank(models=1, dimensions=2, ridge=1.0)
    bank.replace(0, gram=np.diag([2.0, 4.0]), moment=np.array([2.0, 2.0]), count=7)
    assert np.allclose(bank.estimate[0], [1.0, 0.5])
    assert bank.count[0] == 7


def test_bounds_are_estimate_plus_width_times_norm() -> None:
    items = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    inverse = np.diag([0.25, 1.0])
    bounds = upper_bounds(items=items, estimate=np.array([1.0, 0.0]), inverse=inverse, width=2.0)
    norm = np.sqrt(0.36 * 0.25 + 0.64)
    assert np.allclose(bounds, [1 + 2 * 0.5, 2.0, 0.6 + 2 * norm])


@pytest.mark.parametrize(("width", "chosen"), [(0.0, 0), (1.0, 1)])
def test_width_decides_between_known_and_unknown(width: float, chosen: int) -> None:
    items = np.eye(2)
    inverse = np.diag([0.01, 1.0])
    estimate = np.array([0.5, 0.1])
    assert choose(items=items, estimate=estimate, inverse=inverse, width=width) == chosen


def test_positive_raises_negative_eigenvalues_only() -> None:
    matrix = np.diag([3.0, -2.0, 0.1])
    assert np.allclose(positive(matrix, floor=0.0), np.diag([3.0, 0.0, 0.1]))
    assert np.allclose(positive(matrix, floor=0.5), np.diag([3.0, 0.5, 0.5]))


@pytest.mark.parametrize(
    "wrong", [{"models": 0}, {"dimensions": 0}, {"ridge": 0.0}, {"ridge": float("nan")}]
)
def test_refuses_what_is_no_bank(wrong: dict[str, float]) -> None:
    right = {"models": 1, "dimensions": 1, "ridge": 1.0}
    with pytest.raises(InvalidArgument):
        Bank(**{**right, **wrong})  # type: ignore[arg-type]
