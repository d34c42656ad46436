"""Noise of a release, and models as bytes."""

import math

import numpy as np
import pytest

from discreet.families.budgets import BudgetPolicy
from discreet.families.contextual.blocks import item_block
from discreet.families.contextual.cells import CellSpace
from discreet.families.contextual.learning import (
    ReleaseNoise,
    decode,
    encode,
    fit,
    fresh_sums,
    noise_for,
)
from discreet.families.contextual.spaces import LINEAR_PARTS, LinearSpace, space_for
from discreet.families.contextual.sums import ContextualSums
from discreet.families.contract import REWARD_STEPS
from discreet.privacy.conversions import zcdp_rho
from discreet.privacy.events import GaussianRelease, LaplaceRelease
from discreet.research.noise import SeededNoise

SEVEN = ReleaseNoise(GaussianRelease(7.0, 1.0))
"""Noise of deviation 7."""


def test_noise_is_worth_its_price() -> None:
    noise = noise_for(LinearSpace(8), 1.0, 1e-6)
    rho = LinearSpace(8).sensitivity ** 2 / (2 * noise.deviation**2)
    assert rho <= zcdp_rho(epsilon=1.0, delta=1e-6) < rho * 1.000001
    budget = BudgetPolicy(epsilon=1.0, delta=1e-6)
    assert noise.event is not None
    assert budget.limit.admits(budget.charge((noise.event,))), "it pays for one"
    pure = noise_for(CellSpace(2), 0.7, 1e-6)
    assert isinstance(pure.event, LaplaceRelease)
    assert 0.7 * 0.999999 < CellSpace(2).sensitivity / pure.event.scale <= 0.7
    assert ReleaseNoise().deviation == 0.0


@pytest.mark.parametrize("dimensions", [2, 8])
def test_noise_has_the_deviation_that_estimates_expect(dimensions: int) -> None:
    """20,000 draws: a deviation that is wrong by 30% is 30 standard errors off."""
    noise = noise_for(space_for(dimensions), 1.0, 1e-6)
    drawn = noise.draw(SeededNoise(0), 20_000) / REWARD_STEPS
    assert abs(drawn.std() / noise.deviation - 1) < 0.1


def test_every_released_number_has_noise_of_the_stated_size() -> None:
    """4,160 numbers: a deviation that is wrong by 30% is 27 standard errors off."""
    space = LinearSpace(64)
    fresh = fresh_sums(space, {}, slots=np.arange(16), hidden_by=SEVEN, noise=SeededNoise(0))
    _, psi, products = LINEAR_PARTS
    assert math.isclose(fresh.variance, 49 / LINEAR_PARTS[0])
    assert math.isclose(fresh.variance * space.uneven[1], 49 / psi)
    for array, deviation in (
        (fresh.liked[:, 1:], 7 / math.sqrt(psi)),
        (fresh.disliked[:, 1:], 7 / math.sqrt(psi)),
        (fresh.products, 3.5 / math.sqrt(products)),
    ):
        assert np.count_nonzero(array) == array.size
        assert abs(array.std() / deviation - 1) < 0.1


def test_what_is_released_has_noise_also_if_no_item_is_left() -> None:
    """Records of items that were removed a moment ago are in everybody's products."""
    space = LinearSpace(8)
    row = space.rows(np.full((1, 8), 0.9))[0]
    gathered = {
        name: np.array([amount for _, amount in sorted(entries)], dtype=np.int64)
        for name, entries in space.increments(space.note(row), 0, 1.0).items()
    }
    nobody = np.zeros(0, dtype=np.intp)
    fresh = fresh_sums(space, gathered, slots=nobody, hidden_by=SEVEN, noise=SeededNoise(0))
    again = fresh_sums(space, gathered, slots=nobody, hidden_by=SEVEN, noise=SeededNoise(1))
    assert fresh.liked.shape == (0, 9)
    assert not np.any(fresh.products == again.products)
    empty = fresh_sums(space_for(2), {}, slots=nobody, hidden_by=SEVEN, noise=SeededNoise(0))
    assert empty.liked.size == 0


def test_exact_sums_have_none() -> None:
    exact = space_for(2, exact=True)
    gathered = {item_block(exact, 0): np.array([REWARD_STEPS, 0], dtype=np.int64)}
    fresh = fresh_sums(
        exact, gathered, slots=np.arange(2), hidden_by=ReleaseNoise(), noise=SeededNoise(0)
    )
    assert fresh.liked[0, 0] == 1.0
    assert fresh.liked.sum() == 1.0
    assert not fresh.disliked.any()


def test_what_items_keep_of_their_own_is_never_released_beside_noise() -> None:
    space = space_for(20, items=2, exact=True)
    with pytest.raises(ValueError, match="own records"):
        fresh_sums(space, {}, slots=np.arange(2), hidden_by=SEVEN, noise=SeededNoise(0))


def test_nothing_is_said_before_the_first_release() -> None:
    sums = ContextualSums.blank(slots=2, entries=36, products=0, apart=True)
    assert fit(space_for(2), sums, np.arange(2)) is None


def test_models_survive_being_stored_and_rubbish_is_refused() -> None:
    sums = ContextualSums.blank(slots=2, entries=5, products=10, apart=False)
    assert decode(encode(sums)).liked.shape == (2, 5)
    for rubbish in (b"", b"rubbish", encode(sums)[:100]):
        with pytest.raises(ValueError, match="cannot be read"):
            decode(rubbish)
