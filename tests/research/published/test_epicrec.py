"""The paper's algorithm as it stands, and the leak that what is served does not have."""

import numpy as np
import pytest

from discreet.families.collaborative.on_device.catalogue import (
    EVERYTHING,
    PERTURBED,
    Catalogue,
    Concerns,
    Level,
)
from discreet.families.collaborative.on_device.perturbation import ProfileRelease, perturb
from discreet.privacy.events import ExactRelease, PureRelease
from discreet.research.noise import SeededNoise
from discreet.research.published.epicrec import counting_of, phase_two, published
from tests.families.collaborative.on_device.profiles import WrittenNoise, five, made

LEAKY = Catalogue.of({"told": ("A", "P"), **{f"other {at}": ("P",) for at in range(9)}})
"""The item "told" is protected, being in P, and the only one in A, which says "all"."""


def sent(history: set[str], seed: int, *, as_published: bool) -> ProfileRelease:
    release = published if as_published else perturb
    return release(
        history=history,
        catalogue=LEAKY,
        concerns=Concerns.choose({"A": Level.ALL}),
        epsilon=0.1,
        noise=SeededNoise(seed),
    )


def test_as_published_a_protected_item_is_told_with_certainty() -> None:
    for seed in range(40):
        assert "told" in sent({"told", "other 1"}, seed, as_published=True).items
        assert "told" not in sent({"other 1"}, seed, as_published=True).items
    assert sent({"told"}, 0, as_published=True).event == ExactRelease()


def test_as_served_it_is_not() -> None:
    with_it = [
        "told" in sent({"told", "other 1"}, seed, as_published=False).items for seed in range(40)
    ]
    without = ["told" in sent({"other 1"}, seed, as_published=False).items for seed in range(40)]
    assert 0 < sum(with_it) < 40
    assert 0 < sum(without) < 40


def test_counts_scatter_around_the_noisy_ones() -> None:
    """Independent rounding is unbiased: over 300 runs the mean is within five deviations."""
    catalogue = made(items=400, categories=6, seed=1)
    history = set(catalogue.items[:60])
    true = np.array(list(catalogue.profile(history).values()))
    counts = np.array(
        [
            list(
                catalogue.profile(
                    published(
                        history=history,
                        catalogue=catalogue,
                        concerns=PERTURBED,
                        epsilon=1.0,
                        noise=WrittenNoise([0] * 6, bits=bits),
                    ).items
                ).values()
            )
            for bits in range(300)
        ]
    )
    assert counts.std(axis=0).min() > 0.5
    deviation = counts.std(axis=0) / np.sqrt(len(counts))
    assert (np.abs(counts.mean(axis=0) - true) < 5 * deviation + 0.05).all()


def test_a_sparse_solution_meets_the_counts_where_an_even_one_scatters() -> None:
    catalogue = made(items=400, categories=6, seed=1)
    history = set(catalogue.items[:60])
    true = np.array(list(catalogue.profile(history).values()), dtype=np.float64)
    misses: dict[bool, list[float]] = {False: [], True: []}
    for sparse, found in misses.items():
        for seed in range(30):
            drawn = phase_two(
                history=history,
                catalogue=catalogue,
                concerns=PERTURBED,
                noisy=true,
                seed=seed,
                sparse=sparse,
            )
            counts = np.array(list(catalogue.profile(drawn).values()))
            found.append(float(np.abs(counts - true).mean()))
    # Six categories leave a corner at most six fractions, each of an item of four categories.
    assert max(misses[True]) <= 4.0
    assert np.mean(misses[True]) < 0.3 * np.mean(misses[False])


def test_phase_two_is_what_published_does_after_the_noise() -> None:
    catalogue = five()
    concerns = Concerns.choose({"2": Level.NO, "5": Level.ALL})
    history = {"item 1", "item 3", "item 4"}
    release = published(
        history=history, catalogue=catalogue, concerns=concerns, epsilon=1.0, noise=SeededNoise(3)
    )
    after = SeededNoise(3)
    for _ in release.noisy:
        after.discrete_laplace(scale=1.0, size=1)
    drawn = phase_two(
        history=history,
        catalogue=catalogue,
        concerns=concerns,
        noisy=np.array(list(release.noisy.values()), dtype=np.float64),
        seed=after.bits(128),
    )
    assert drawn == release.drawn
    assert set(release.noisy) == {"1", "3", "4"}
    assert catalogue.levels(counting_of(catalogue, concerns))[1] is Level.ALL


def test_what_is_served_comes_nearer_to_the_truth() -> None:
    catalogue = made(items=400, categories=6, seed=1)
    true = catalogue.profile(catalogue.items[:60])
    errors: dict[str, list[float]] = {"published": [], "served": []}
    for seed in range(40):
        for name, release in (("published", published), ("served", perturb)):
            made_of = release(
                history=set(catalogue.items[:60]),
                catalogue=catalogue,
                concerns=PERTURBED,
                epsilon=0.2,
                noise=SeededNoise(seed),
            )
            assert made_of.event == PureRelease(0.2, "profile perturbation")
            profile = catalogue.profile(made_of.items)
            errors[name].append(
                float(np.mean([abs(profile[each] - true[each]) for each in profile]))
            )
    assert np.mean(errors["served"]) < 0.7 * np.mean(errors["published"])


def test_hidden_items_never_leave_as_published_either() -> None:
    catalogue = five()
    concerns = Concerns.choose({"2": Level.NO})
    for seed in range(20):
        release = published(
            history=set(catalogue.items),
            catalogue=catalogue,
            concerns=concerns,
            epsilon=0.2,
            noise=SeededNoise(seed),
        )
        assert not release.items & {"item 1", "item 5"}


def test_as_published_hidden_items_are_counted_and_the_noise_covers_them() -> None:
    # Item 1 is hidden by category 2 and counted in 1 and 3, beside item 3.
    noise = WrittenNoise([0] * 4)
    release = published(
        history={"item 1", "item 3"},
        catalogue=five(),
        concerns=Concerns.choose({"2": Level.NO}),
        epsilon=1.0,
        noise=noise,
    )
    assert release.noisy == {"1": 2, "3": 2, "4": 1, "5": 0}
    assert 1 / noise.scales[0] + 1 / noise.scales[1] <= 1.0


@pytest.mark.parametrize("history", [set(), {"item 2"}])
def test_all_sends_everything(history: set[str]) -> None:
    release = published(
        history=history,
        catalogue=five(),
        concerns=EVERYTHING,
        epsilon=0.0,
        noise=WrittenNoise([]),
    )
    assert release.items == history
