"""Public facts help to read noisy counts, and nothing private does."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.calibration import calibrate
from discreet.families.collaborative.on_device.catalogue import (
    PERTURBED,
    Catalogue,
    Concerns,
    Integers,
    Level,
    scope_of,
)
from discreet.families.collaborative.on_device.expectation import Expectation
from discreet.families.collaborative.on_device.perturbation import ProfileRelease, perturb
from discreet.families.collaborative.on_device.sanitisation import sanitise
from discreet.research.noise import SeededNoise
from tests.families.collaborative.on_device.profiles import WrittenNoise, five, made


def popular(catalogue: Catalogue, typical: float = 40.0) -> Expectation:
    """Return an expectation under which early items are popular."""
    return Expectation.of(
        catalogue=catalogue,
        popularity={item: 1 / (5 + at) for at, item in enumerate(catalogue.items)},
        typical=typical,
    )


def test_popularity_is_compiled_by_group() -> None:
    catalogue = five()
    expectation = Expectation.of(
        catalogue=catalogue, popularity={"item 1": 6.0, "item 2": 2.0}, typical=3
    )
    by_item = {
        item: float(expectation.weights[catalogue.group_of[item]][0]) for item in catalogue.items
    }
    # Items that nobody named are unlikely, not impossible: half of the least.
    assert by_item == {"item 1": 6, "item 2": 2, "item 3": 1, "item 4": 1, "item 5": 1}
    assert expectation.shares.sum() == pytest.approx(1.0)


def test_with_little_noise_counts_are_taken_at_their_word() -> None:
    catalogue = made(items=300, categories=6, seed=1)
    scope = scope_of(catalogue, PERTURBED)
    noisy = np.array([80.0, 3.0, 44.0, 0.0, 12.0, 7.0])
    read = popular(catalogue).read(noisy=noisy, magnitudes=np.full(6, 0.01), scope=scope)
    assert np.array_equal(read, noisy)


def test_with_much_noise_the_public_profile_is_expected() -> None:
    catalogue = made(items=300, categories=6, seed=1)
    scope = scope_of(catalogue, PERTURBED)
    expectation = popular(catalogue, typical=50.0)
    read = expectation.read(
        noisy=np.array([9_000.0, -9_000, 50, 0, 0, 0]), magnitudes=np.full(6, 1e7), scope=scope
    )
    assert np.array_equal(read, np.rint(50 * expectation.shares @ catalogue.incidence))


def test_reading_halves_the_error_where_noise_is_large() -> None:
    """On histories that follow popularity and taste; 60 of them, seeded."""
    catalogue = made(items=600, categories=10, seed=2)
    expectation = popular(catalogue, typical=60.0)
    chances = np.array([1 / (5 + at) for at in range(len(catalogue.items))])
    rng = np.random.default_rng(0)
    errors: dict[str, list[float]] = {"as they are": [], "catalogue": [], "popularity": []}
    for seed in range(60):
        taste = np.exp(rng.uniform(-1, 1, len(catalogue.categories)))
        liking = np.array(
            [
                taste[catalogue.incidence[catalogue.group_of[item]]].mean()
                for item in catalogue.items
            ]
        )
        weights = chances * liking
        history = set(rng.choice(catalogue.items, 60, replace=False, p=weights / weights.sum()))
        true = catalogue.tally(history) @ catalogue.incidence

        def error(items: frozenset[str], true: Integers = true) -> float:
            return float(np.abs(catalogue.tally(items) @ catalogue.incidence - true).mean())

        for name, known in (("catalogue", None), ("popularity", expectation)):
            release = perturb(
                history=history,
                catalogue=catalogue,
                concerns=PERTURBED,
                epsilon=0.1,
                noise=SeededNoise(seed),
                expectation=known,
            )
            errors[name].append(error(release.items))
        as_they_are = np.array(list(release.noisy.values()), dtype=np.float64)
        drawn = sanitise(catalogue=catalogue, concerns=PERTURBED, wanted=as_they_are, seed=seed)
        errors["as they are"].append(error(drawn))
    assert np.mean(errors["catalogue"]) < 0.6 * np.mean(errors["as they are"])
    assert np.mean(errors["popularity"]) < np.mean(errors["catalogue"])


def test_popular_items_are_drawn_more_often() -> None:
    catalogue = Catalogue.of(dict.fromkeys("abcd", ("x",)))
    expectation = Expectation.of(
        catalogue=catalogue, popularity={"a": 97, "b": 1, "c": 1, "d": 1}, typical=1
    )
    drawn = [
        next(
            iter(
                sanitise(
                    catalogue=catalogue,
                    concerns=PERTURBED,
                    wanted=np.array([1.0]),
                    seed=seed,
                    expectation=expectation,
                )
            )
        )
        for seed in range(300)
    ]
    # 291 expected, deviation 3: fewer than 270 would be seven deviations off.
    assert drawn.count("a") > 270
    assert len(set(drawn)) > 1


def test_it_sees_the_history_only_through_noisy_counts() -> None:
    """The explanation that makes a release private works with an expectation as well."""
    catalogue = five()
    expectation = popular(catalogue, typical=3.0)

    def release(history: set[str], draws: list[int]) -> ProfileRelease:
        return perturb(
            history=history,
            catalogue=catalogue,
            concerns=PERTURBED,
            epsilon=1.0,
            noise=WrittenNoise(draws),
            expectation=expectation,
        )

    # Item 3 is in the categories 1, 3 and 4.
    assert release({"item 2", "item 3"}, [1, 0, -1, 0, 2]) == release({"item 2"}, [2, 0, 0, 1, 2])


def test_by_category_it_reads_what_is_counted() -> None:
    catalogue = made(items=200, categories=6, seed=5)
    concerns = Concerns.choose({"c00": Level.NO, "c02": Level.ALL})
    scope = scope_of(catalogue, concerns)
    magnitudes = np.array(calibrate(catalogue=catalogue, epsilon=0.3, concerns=concerns).magnitudes)
    expectation = popular(catalogue)
    read = expectation.read(noisy=np.full(len(magnitudes), 5.0), magnitudes=magnitudes, scope=scope)
    assert read.shape == scope.counted.shape
    assert (read >= 0).all()
    assert expectation.masses(scope).sum() == pytest.approx(scope.sizes.sum())


def test_the_catalogue_alone_expects_every_item_alike() -> None:
    catalogue = five()
    expectation = Expectation.of_catalogue(catalogue)
    assert expectation is Expectation.of_catalogue(catalogue)
    assert expectation.shares == pytest.approx([0.2] * 5)
    assert expectation.typical == 1.25  # a quarter of the items where there are few
    assert Expectation.of_catalogue(made(items=600, categories=5, seed=1)).typical == 100


def test_what_makes_no_sense_is_refused() -> None:
    catalogue = five()
    with pytest.raises(InvalidArgument, match="typical"):
        Expectation.of(catalogue=catalogue, popularity={"item 1": 1}, typical=0)
    with pytest.raises(InvalidArgument, match="spread"):
        Expectation.of(catalogue=catalogue, popularity={"item 1": 1}, typical=1, spread=0)
    with pytest.raises(InvalidArgument, match="not negative"):
        Expectation.of(catalogue=catalogue, popularity={"item 1": -1}, typical=1)
    with pytest.raises(InvalidArgument, match="must name an item"):
        Expectation.of(catalogue=catalogue, popularity={"another": 1}, typical=1)
    with pytest.raises(InvalidArgument, match="same catalogue"):
        sanitise(
            catalogue=five(),
            concerns=PERTURBED,
            wanted=np.zeros(5),
            seed=1,
            expectation=popular(catalogue),
        )
