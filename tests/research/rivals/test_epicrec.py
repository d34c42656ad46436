"""The rivals are what they are said to be, and as private as they are said to be."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.families.collaborative.on_device.calibration import calibrate
from discreet.families.collaborative.on_device.catalogue import PERTURBED, Concerns, Floats, Level
from discreet.privacy.charges import decimal
from discreet.research.noise import SeededNoise
from discreet.research.rivals.epicrec import Rival, noisy_counts, plain
from tests.families.collaborative.on_device.profiles import FIVE, WrittenNoise, five, made


def counts(method: Rival, history: set[str], noise: WrittenNoise, epsilon: float) -> Floats:
    return noisy_counts(
        method=method,
        history=history,
        catalogue=five(),
        concerns=PERTURBED,
        epsilon=epsilon,
        noise=noise,
    )


def test_the_plain_mechanism_uses_the_widest_item() -> None:
    found = plain(catalogue=five(), epsilon=0.5, concerns=PERTURBED)
    assert found.magnitudes == pytest.approx([6.0] * 5)
    assert found.loss <= decimal(0.5)
    assert found.mean > calibrate(catalogue=five(), epsilon=0.5).mean


def test_by_category_the_plain_mechanism_counts_perturbed_categories_only() -> None:
    chosen = Concerns.choose({"1": Level.ALL, "5": Level.NO})
    found = plain(catalogue=five(), epsilon=1.0, concerns=chosen)
    assert found.magnitudes == pytest.approx([2.0] * 3)


@pytest.mark.parametrize("method", [Rival.OURS, Rival.LPA])
def test_counts_get_the_noise_of_their_calibration(method: Rival) -> None:
    noise = WrittenNoise([1, 0, -1, 0, 2])
    assert counts(method, {"item 1", "item 5"}, noise, 1.0).tolist() == [2, 2, 0, 1, 2]
    choose = calibrate if method is Rival.OURS else plain
    expected = choose(catalogue=five(), epsilon=1.0, concerns=PERTURBED).magnitudes
    assert tuple(noise.scales) == expected


def test_smoothing_shares_averages_and_keeps_to_its_epsilon() -> None:
    for epsilon in (0.1, 0.23, 1.0, 20.0):
        noise = WrittenNoise([0] * 10)
        smoothed = counts(Rival.GS, {"item 1", "item 2", "item 3"}, noise, epsilon)
        assert sum(smoothed) == pytest.approx(8.0)  # averages without noise keep the sum
        order, averages = noise.scales[:5], noise.scales[5:]
        assert len(set(order)) == len(set(averages)) == 1
        # One item moves one sampled count by 1, and the group sums by 3 in total.
        loss = 1 / Fraction(order[0]) + 3 / Fraction(averages[0])
        assert decimal(epsilon) * Fraction(999, 1000) < loss <= decimal(epsilon)


def test_with_ample_epsilon_smoothing_leaves_counts_alone() -> None:
    # Tiny noise: groups of one fit best unless counts are equal, and equal ones may share.
    noise = WrittenNoise([0] * 10)
    smoothed = counts(Rival.GS, set(FIVE), noise, 50.0)
    assert smoothed == pytest.approx(np.array([4.0, 2.0, 3.0, 2.0, 1.0]), abs=1.1)


def test_at_a_small_epsilon_smoothing_has_less_noise_than_the_plain_mechanism() -> None:
    """What the method is for: averages over wide groups, where counts are alike."""
    catalogue = made(items=400, categories=12, seed=3, most=6)
    history = set(catalogue.items[:60])
    true = np.array(list(catalogue.profile(history).values()))
    errors = {}
    for method in (Rival.LPA, Rival.GS):
        errors[method] = np.mean(
            [
                np.abs(
                    noisy_counts(
                        method=method,
                        history=history,
                        catalogue=catalogue,
                        concerns=PERTURBED,
                        epsilon=0.05,
                        noise=SeededNoise(seed),
                    )
                    - true
                ).mean()
                for seed in range(40)
            ]
        )
    assert errors[Rival.GS] < 0.5 * errors[Rival.LPA]
