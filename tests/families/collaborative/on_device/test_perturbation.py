"""What leaves: whose noise covers it, what it costs, and that protected items do not leak."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InvalidArgument, Underpaid
from discreet.families.collaborative.on_device.calibration import calibrate
from discreet.families.collaborative.on_device.catalogue import (
    EVERYTHING,
    NOTHING,
    PERTURBED,
    Catalogue,
    Concerns,
    Level,
)
from discreet.families.collaborative.on_device.perturbation import (
    ProfileRelease,
    event_of,
    perturb,
    perturbs,
    with_noise,
)
from discreet.privacy.accountants import BasicAccountant
from discreet.privacy.events import ExactRelease, PureRelease
from discreet.privacy.noise import SystemNoise
from discreet.research.noise import SeededNoise
from tests.families.collaborative.on_device.profiles import FIVE, WrittenNoise, five, made

CATALOGUE = five()
MIXED = Concerns.choose(
    {"1": Level.ALL, "2": Level.NO, "3": Level.PERTURBED, "4": Level.ALL, "5": Level.ALL}
)


def released(
    history: set[str], draws: list[int], concerns: Concerns = PERTURBED, epsilon: float = 1.0
) -> ProfileRelease:
    return perturb(
        history=history,
        catalogue=CATALOGUE,
        concerns=concerns,
        epsilon=epsilon,
        noise=WrittenNoise(draws),
    )


def test_the_noise_has_the_calibrated_scales() -> None:
    noise = WrittenNoise([0] * 5)
    perturb(history={"item 1"}, catalogue=CATALOGUE, concerns=PERTURBED, epsilon=0.5, noise=noise)
    expected = calibrate(catalogue=CATALOGUE, epsilon=0.5).magnitudes
    assert tuple(noise.scales) == expected
    assert [round(scale, 2) for scale in noise.scales] == [7.23, 4.72, 6.68, 4.72, 2.77]


def test_noisy_counts_are_the_counts_plus_the_noise() -> None:
    release = released({"item 1", "item 4"}, [3, -2, 0, 1, 5])
    assert release.noisy == {"1": 5, "2": -1, "3": 1, "4": 1, "5": 6}
    assert release.epsilon == 1.0
    assert release.event == PureRelease(1.0, "profile perturbation")


def test_the_charge_is_the_epsilon_that_was_written() -> None:
    release = released(set(), [0] * 5, epsilon=0.1)
    assert release.event is not None
    assert BasicAccountant().charge(release.event).nano_epsilon == 100_000_000


@pytest.mark.parametrize("item", sorted(FIVE))
def test_any_item_can_be_explained_away_at_the_stated_price(item: str) -> None:
    """Whatever is released with an item can be released without it, nearly as likely.

    The same release follows from noise that is one more in the item's categories. The ratio of
    the two noises' likelihoods is exp of at most the sum of 1 / z_j over them.
    """
    history = {"item 2", "item 4"} - {item}
    loss = Fraction(0)
    shift = []
    for name, magnitude in zip(
        CATALOGUE.categories, calibrate(catalogue=CATALOGUE, epsilon=1.0).magnitudes, strict=True
    ):
        shift.append(int(name in FIVE[item]))
        loss += shift[-1] / Fraction(magnitude)
    assert loss <= 1
    for draws in itertools.product((-2, 0, 3), repeat=5):
        with_it = released(history | {item}, list(draws))
        without = released(history, [draw + more for draw, more in zip(draws, shift, strict=True)])
        assert with_it == without


def test_an_item_in_an_all_category_does_not_leak_through_it() -> None:
    """The leak of M-DPDP as published: item 2 is in "1" (all) and in "3" (perturbed)."""
    with_it = released({"item 2", "item 4"}, [2], MIXED)
    without = released({"item 4"}, [3], MIXED)
    assert with_it == without
    assert with_it.noisy == {"3": 3}
    assert with_it.open == {"item 4"}


def test_hidden_items_change_nothing_at_all() -> None:
    # Items 1 and 5 are in category 2, which says no. The very same noise gives the very same set.
    for draw in range(-3, 6):
        assert released({"item 1", "item 3", "item 5"}, [draw], MIXED) == (
            released({"item 3"}, [draw], MIXED)
        )


def test_hidden_items_never_leave_not_even_as_chaff() -> None:
    catalogue = made(items=300, categories=6, seed=8)
    concerns = Concerns.choose({"c00": Level.NO, "c03": Level.ALL})
    hidden = {item for item in catalogue.items if catalogue.profile([item])["c00"]}
    for seed in range(30):
        release = perturb(
            history=set(list(catalogue.items)[::3]),
            catalogue=catalogue,
            concerns=concerns,
            epsilon=0.2,
            noise=SeededNoise(seed),
        )
        assert not release.items & hidden


def test_what_is_drawn_depends_on_the_history_only_through_noisy_counts() -> None:
    """Two histories without a common item and with the same counts are released alike."""
    items = dict.fromkeys("abcdef", ("x",)) | dict.fromkeys("uvwxyz", ("x", "y"))
    catalogue = Catalogue.of(items)

    def release(history: set[str], seed: int) -> ProfileRelease:
        return perturb(
            history=history,
            catalogue=catalogue,
            concerns=PERTURBED,
            epsilon=0.5,
            noise=SeededNoise(seed),
        )

    for seed in range(50):
        assert release({"a", "b", "u"}, seed) == release({"c", "f", "z"}, seed)


def test_the_ends_of_the_overall_control() -> None:
    nothing = released({"item 1", "item 2"}, [], NOTHING, epsilon=0.0)
    assert nothing.items == frozenset()
    assert nothing.event is None
    everything = released({"item 1", "item 2"}, [], EVERYTHING, epsilon=0.0)
    assert everything.items == {"item 1", "item 2"}
    assert everything.event == ExactRelease()
    assert nothing.epsilon == everything.epsilon == 0.0


def test_the_cost_is_known_before_the_history_is() -> None:
    for chosen in itertools.product(Level, repeat=5):
        concerns = Concerns.choose(dict(zip(CATALOGUE.categories, chosen, strict=True)))
        announced = event_of(catalogue=CATALOGUE, concerns=concerns, epsilon=0.3)
        for history in (set(), {"item 3"}, set(FIVE)):
            release = released(history, [0] * 5, concerns, epsilon=0.3)
            assert release.event == announced
        assert perturbs(catalogue=CATALOGUE, concerns=concerns) == isinstance(
            announced, PureRelease
        )


def test_the_sets_of_a_release_do_not_overlap() -> None:
    release = released({"item 2", "item 4"}, [4], MIXED)
    assert not release.drawn & release.open
    assert release.items == release.drawn | release.open


def test_items_that_nobody_knows_are_refused_without_being_repeated() -> None:
    with pytest.raises(InvalidArgument, match="history: has an item") as caught:
        released({"item 1", "a secret title"}, [0] * 5)
    assert "secret" not in str(caught.value)
    with pytest.raises(InvalidArgument, match="collection"):
        perturb(
            history="item 1",
            catalogue=CATALOGUE,
            concerns=PERTURBED,
            epsilon=1.0,
            noise=WrittenNoise([]),
        )


def test_noise_that_is_too_small_for_its_epsilon_is_withheld() -> None:
    honest = calibrate(catalogue=CATALOGUE, epsilon=1.0)
    cheat = type(honest)(
        categories=honest.categories,
        magnitudes=tuple(each / 2 for each in honest.magnitudes),
        epsilon=1.0,
        loss=honest.loss * 2,
        gap=0.0,
    )
    noise = WrittenNoise([0] * 5)
    with pytest.raises(Underpaid):
        with_noise(np.zeros(5, dtype=np.int64), cheat, noise)
    assert noise.scales == []


def test_the_operating_systems_noise_has_the_stated_spread() -> None:
    """Mean |noise| of the discrete Laplace is 1 / sinh(1/z); 1,500 draws, about 3% deviation.

    Seven deviations of the mean: a false alarm has probability below 1e-10 for each of the five,
    and a scale that is wrong by 30% would be 10 deviations away.
    """
    calibration = calibrate(catalogue=CATALOGUE, epsilon=0.5)
    runs = 1_500
    draws = np.array(
        [with_noise(np.zeros(5, dtype=np.int64), calibration, SystemNoise()) for _ in range(runs)]
    )
    expected = 1 / np.sinh(1 / np.array(calibration.magnitudes))
    deviation = np.abs(draws).std(axis=0) / np.sqrt(runs)
    assert (np.abs(np.abs(draws).mean(axis=0) - expected) < 7 * deviation).all()
