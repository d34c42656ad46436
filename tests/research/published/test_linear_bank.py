"""Ridge regressions side by side: the inverse is the inverse, and the choice is the best bound."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.published.linear_bank import LinearBank


def observations(count: int, dimensions: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(count, dimensions))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x, rng.random(count)


def test_rank_one_updates_give_what_solving_gives() -> None:
    bank = LinearBank(models=2, dimensions=4, ridge=0.5)
    x, y = observations(200)
    for row, reward in zip(x, y, strict=True):
        bank.add(1, row, float(reward))
    gram = 0.5 * np.eye(4) + x.T @ x
    assert np.allclose(bank.gram[1], gram)
    assert np.allclose(bank.inverse[1] @ gram, np.eye(4), atol=1e-10)
    assert np.allclose(bank.estimate[1], np.linalg.solve(gram, x.T @ y))
    assert bank.count.tolist() == [0, 200]
    assert not bank.moment[0].any()


def test_inverse_survives_being_computed_anew() -> None:
    bank = LinearBank(models=1, dimensions=3, ridge=1.0)
    x, y = observations(5_000, 3)
    for row, reward in zip(x, y, strict=True):
        bank.add(0, row, float(reward))
    assert np.allclose(bank.inverse[0] @ bank.gram[0], np.eye(3), atol=1e-11)


def test_replace_sets_everything() -> None:
    bank = LinearBank(models=1, dimensions=2, ridge=1.0)
    bank.replace(0, gram=np.diag([2.0, 4.0]), moment=np.array([2.0, 2.0]), count=7)
    assert np.allclose(bank.estimate[0], [1.0, 0.5])
    assert bank.count[0] == 7


def test_the_largest_upper_bound_is_chosen() -> None:
    bank = LinearBank(models=1, dimensions=2, ridge=1.0)
    bank.replace(0, gram=np.diag([100.0, 1.0]), moment=np.array([50.0, 0.1]), count=100)
    assert bank.choose(0, np.eye(2), width=0.0) == 0
    assert bank.choose(0, np.eye(2), width=1.0) == 1


@pytest.mark.parametrize(
    "wrong", [{"models": 0}, {"dimensions": 0}, {"ridge": 0.0}, {"ridge": float("nan")}]
)
def test_refuses_what_is_no_bank(wrong: dict[str, float]) -> None:
    right = {"models": 1, "dimensions": 1, "ridge": 1.0}
    with pytest.raises(InvalidArgument):
        LinearBank(**{**right, **wrong})  # type: ignore[arg-type]
