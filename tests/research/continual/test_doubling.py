"""Epochs: where they begin, what they add, and that their shares compose to the whole."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.continual import (
    BinaryTree,
    Doubling,
    LaplaceTree,
    SmoothBinary,
    SquareRoot,
)
from discreet.research.noise import SeededNoise
from tests.research.continual.impulses import Impulse, losses, releases


def test_epochs_double() -> None:
    sums = Doubling(family=BinaryTree, multiplier=1.0)
    state, epochs = sums.start(), []
    for _ in range(15):
        state = sums.observe(state=state, value=1.0, noise=Impulse())
        epochs.append(state.epoch)
    assert epochs == [0] + [1] * 2 + [2] * 4 + [3] * 8
    assert sums.horizon is None


@pytest.mark.parametrize("family", [BinaryTree, SmoothBinary, SquareRoot, LaplaceTree])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
def test_the_shares_of_an_epoch_compose_to_the_whole(family: Any, share: float) -> None:
    """A step of a closed epoch is in its running sums and in its total: together, no more."""
    sums = Doubling(family=family, multiplier=2.0, share=share)
    found = losses(sums, 16)
    assert max(found) <= 0.5
    assert max(found[:7]) >= 0.3, "closed epochs pay too"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsplit(Doubling[Any]):
    """Planted: running sums and totals each take the whole privacy of the epoch."""

    def _part(self, share: float) -> float:
        return self.multiplier


@pytest.mark.parametrize("family", [BinaryTree, SmoothBinary, SquareRoot, LaplaceTree])
def test_totals_that_nobody_paid_for_show_in_the_loss(family: Any) -> None:
    assert max(losses(Unsplit(family=family, multiplier=2.0), 16)) > 0.52


def test_the_variance_grows_with_epochs() -> None:
    tree = Doubling(family=BinaryTree, multiplier=1.0, share=0.0)
    # Epochs 0, 1, 2 closed by their roots (1 + 2 + 3 levels), one step into epoch 3 (4 levels).
    assert tree.variance(8) == pytest.approx(1 + 2 + 3 + 4, rel=1e-5)
    assert tree.variance(1) == pytest.approx(1.0, rel=1e-5)


def test_a_share_for_totals_pays_for_smooth_sums_and_not_for_trees() -> None:
    def deviation(family: Any, share: float) -> float:
        sums = Doubling(family=family, multiplier=1.0, share=share)
        return math.sqrt(max(sums.variance(t) for t in (2**12 - 2, 2**12 - 1, 2**12)))

    assert deviation(SmoothBinary, 0.5) < 0.8 * deviation(SmoothBinary, 0.0)
    assert deviation(SquareRoot, 0.5) < 0.8 * deviation(SquareRoot, 0.0)
    assert deviation(BinaryTree, 0.0) < deviation(BinaryTree, 0.5)


def test_long_streams_run() -> None:
    """400 streams of 200 steps, seeded. An error's square is within 25% but for chance 1e-3."""
    sums = Doubling(family=SmoothBinary, multiplier=1.0, dimension=400)
    told = releases(sums, np.ones((200, 400)), SeededNoise(2))
    for step in (1, 63, 64, 200):
        error = told[step - 1] - step
        assert float(np.mean(error**2)) == pytest.approx(sums.variance(step), rel=0.25)


@pytest.mark.parametrize("share", [-0.1, 1.0, math.nan])
def test_a_share_is_less_than_the_whole(share: float) -> None:
    with pytest.raises(InvalidArgument) as caught:
        Doubling(family=BinaryTree, multiplier=1.0, share=share)
    assert caught.value.argument == "share"
