"""What training finds, against a slow computation of the same."""

import numpy as np
import pytest

from discreet.families.collaborative.similarities import SIMILARITY_FIELDS, Ints, unpack
from discreet.families.collaborative.training import fit, pack_profiles, trained
from tests.families.collaborative.test_similarities import ints


def packed(profiles: list[list[int]]) -> tuple[Ints, Ints]:
    starts = np.cumsum([0, *(len(profile) for profile in profiles)])
    return starts.astype(np.int64), ints(*(slot for profile in profiles for slot in profile))


def random_profiles(seed: int, items: int, count: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [
        sorted(rng.choice(items, size=rng.integers(1, items), replace=False).tolist())
        for _ in range(count)
    ]


def slowly(profiles: list[list[int]], items: int, neighbours: int) -> np.ndarray:
    """Return the similarity of item j (row) to its nearest neighbours (columns), by definition."""
    table = np.zeros((len(profiles), items))
    for row, profile in enumerate(profiles):
        table[row, profile] = np.log(1 + items / len(profile))
    lengths = np.linalg.norm(table, axis=0)
    lengths[lengths == 0] = 1
    similar = (table / lengths).T @ (table / lengths)
    np.fill_diagonal(similar, 0)
    for row in similar:
        row[np.argsort(-row)[neighbours:]] = 0
    return similar


@pytest.mark.parametrize("neighbours", [1, 3, 50])
def test_it_finds_each_items_neighbours(neighbours: int) -> None:
    items = 12
    profiles = random_profiles(neighbours, items, 40)
    starts, slots = packed(profiles)
    found = fit(starts=starts, slots=slots, live=np.arange(items), neighbours=neighbours)
    wanted = slowly(profiles, items, neighbours)
    for item in range(items):
        np.testing.assert_allclose(
            found.scores([np.array([item])], size=items)[0], wanted[:, item], rtol=1e-5
        )
    whole = found.scores([np.array([0, 4, 7])], size=items)[0]
    np.testing.assert_allclose(whole, wanted[:, [0, 4, 7]].sum(axis=1), rtol=1e-5)
    assert found.counts.tolist() == np.bincount(slots, minlength=items).tolist()
    assert found.profiles == 40


def test_short_profiles_say_more_than_long_ones() -> None:
    # 0 goes with 1 in a profile of two, with 2 in one that has everything.
    starts, slots = packed([[0, 1], [0, 2, 3, 4, 5], [1, 3, 4, 5], [2, 3, 4, 5]])
    scores = fit(starts=starts, slots=slots, live=np.arange(6), neighbours=5).scores(
        [np.array([0])], size=6
    )[0]
    assert scores[1] > scores[2] > 0


def test_profiles_of_the_whole_catalogue_divide_by_nothing() -> None:
    starts, slots = packed([[0, 1, 2, 3]] * 3)
    found = fit(starts=starts, slots=slots, live=np.arange(4), neighbours=3)
    assert np.isfinite(found.weights).all()
    np.testing.assert_allclose(found.scores([np.array([0])], size=4)[0], [0, 1, 1, 1], rtol=1e-5)


@pytest.mark.parametrize(
    ("profiles", "live"),
    [([], []), ([], [0, 1]), ([[5]], [0, 1]), ([[0]], [0]), ([[], [0]], [0, 1])],
)
def test_too_little_to_learn_from_is_no_mistake(profiles: list[list[int]], live: list[int]) -> None:
    starts, slots = packed(profiles)
    found = fit(starts=starts, slots=slots, live=ints(*live), neighbours=3)
    assert found.size == (max(live) + 1 if live else 0)
    assert not found.scores([np.array([0, 1])], size=9).any()


def test_removed_items_are_left_out() -> None:
    starts, slots = packed([[0, 1, 2]] * 3)
    found = fit(starts=starts, slots=slots, live=ints(0, 2), neighbours=3)
    assert found.scores([np.array([0])], size=3)[0, 1] == 0
    assert found.scores([np.array([0])], size=3)[0, 2] > 0
    assert found.counts.tolist() == [3, 0, 3]


def test_what_is_packed_for_the_process_trains_the_same() -> None:
    starts, slots = packed(random_profiles(7, 20, 30))
    live = np.arange(20)
    found = unpack(
        trained(pack_profiles(starts=starts, slots=slots, live=live), 4), SIMILARITY_FIELDS
    )
    wanted = fit(starts=starts, slots=slots, live=live, neighbours=4).arrays()
    for name in SIMILARITY_FIELDS:
        np.testing.assert_array_equal(found[name], wanted[name])
