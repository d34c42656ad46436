"""Adding a release to what was released before, with weights that mind the noise."""

from dataclasses import replace

import numpy as np

from discreet.families.contextual.sums import ContextualSums, FreshSums

SLOTS = np.arange(2)


def fresh(count: float, variance: float, *, entries: int = 1) -> FreshSums:
    return FreshSums(
        slots=SLOTS,
        liked=np.full((2, entries), count / 4),
        disliked=np.full((2, entries), 3 * count / 4),
        products=np.zeros(0),
        own=np.zeros((2, 0)),
        variance=variance,
        product_variance=variance,
    )


def blank(entries: int = 1) -> ContextualSums:
    return ContextualSums.blank(slots=2, entries=entries, products=0, apart=entries > 1)


LAW = np.full((2, 1), 0.5)


def test_exact_feedback_is_simply_added() -> None:
    sums = blank().with_release(fresh(10, 0.0), law=LAW, decay=1.0)
    sums = sums.with_release(fresh(30, 0.0), law=LAW, decay=1.0)
    assert sums.count[:, 0].tolist() == [40, 40]
    assert sums.liked[:, 0].tolist() == [10, 10]
    assert not sums.variance.any()
    assert (sums.feedback, sums.rewards) == (80, 20)
    assert 0.25 < sums.reward_mean() < 0.3


def test_older_feedback_counts_less_by_the_clock() -> None:
    sums = blank().with_release(fresh(10, 0.0), law=LAW, decay=1.0)
    sums = sums.with_release(fresh(30, 0.0), law=LAW, decay=0.5)
    assert sums.count[:, 0].tolist() == [35, 35]


def test_a_release_of_little_hardly_adds_its_noise() -> None:
    """Added with weight 1 both, the noise would have variance 200."""
    sums = blank().with_release(fresh(1_000, 100.0), law=LAW, decay=1.0)
    after = sums.with_release(fresh(10, 100.0), law=LAW, decay=1.0)
    assert after.variance[0, 0] < 110
    assert after.count[0, 0] > 0.98 * sums.count[0, 0]


def test_weights_leave_less_noise_for_the_signal_than_plain_sums() -> None:
    sums = blank()
    sizes = [50 * 1.3**k for k in range(15)]
    for size in sizes:
        sums = sums.with_release(fresh(size, 400.0), law=LAW, decay=1.0)
    weighted = sums.count[0, 0] / np.sqrt(sums.variance[0, 0])
    plain = sum(sizes) / np.sqrt(400.0 * len(sizes))
    assert weighted > 1.3 * plain


def test_removed_items_are_forgotten_and_new_ones_start_at_nothing() -> None:
    sums = blank().with_release(fresh(10, 0.0), law=LAW, decay=1.0).fitted(3)
    one = fresh(10, 0.0)
    gone = FreshSums(np.array([1, 2]), one.liked, one.disliked, one.products, one.own, 0.0, 0.0)
    after = sums.with_release(gone, law=np.full((3, 1), 0.5), decay=1.0)
    assert after.count[:, 0].tolist() == [0, 20, 10]


def test_people_everywhere_leave_no_cell_empty() -> None:
    """Noise as large as the visits of a cell would hide every second one of them by itself."""
    rng = np.random.default_rng(3)
    blank = ContextualSums.blank(slots=1, entries=64, products=0, apart=True)
    noisy = 30.0 + 30.0 * rng.standard_normal(64)
    sums = replace(blank, arrivals=noisy, arrivals_variance=900.0)
    assert sums.occupied().mean() > 0.9
    assert sums.visits().std() < 0.5 * noisy.std()


def test_cells_without_people_are_not_occupied() -> None:
    rng = np.random.default_rng(0)
    shown = np.zeros((2, 16))
    shown[:, :3] = 400
    noisy = FreshSums(
        SLOTS,
        shown / 2 + 6 * rng.standard_normal(shown.shape),
        shown / 2 + 6 * rng.standard_normal(shown.shape),
        np.zeros(0),
        np.zeros((2, 0)),
        36.0,
        36.0,
    )
    sums = blank(16).with_release(noisy, law=np.full((2, 16), 0.5), decay=1.0)
    assert sums.occupied()[:3].all()
    assert sums.occupied().sum() <= 5


def test_sums_survive_being_stored() -> None:
    sums = blank(4).with_release(fresh(10, 2.0, entries=4), law=np.full((2, 4), 0.5), decay=1.0)
    again = ContextualSums.of(sums.arrays())
    for name, array in sums.arrays().items():
        assert np.array_equal(array, again.arrays()[name]), name
    assert isinstance(again.seen, float)


def test_what_items_keep_of_their_own_is_added_fades_and_goes_with_them() -> None:
    one = fresh(10.0, 0.0)
    own = FreshSums(
        SLOTS, one.liked, one.disliked, one.products, np.array([[4.0, 1.0], [2.0, 3.0]]), 0.0, 0.0
    )
    law = np.full((2, 1), 0.5)
    sums = blank().with_release(own, law=law, decay=1.0).with_release(own, law=law, decay=0.5)
    assert sums.own.tolist() == [[6.0, 1.5], [3.0, 4.5]]
    assert sums.fitted(3).own.shape == (3, 2)
    later = sums.with_release(one, law=law, decay=1.0)
    assert later.own.shape == (2, 0)
    gone = FreshSums(
        SLOTS[1:], one.liked[1:], one.disliked[1:], one.products, own.own[1:], 0.0, 0.0
    )
    assert not sums.with_release(gone, law=law, decay=1.0).own[0].any()


def test_sums_of_an_earlier_version_are_read() -> None:
    """It wrote nothing about the latest release; until the next one no item is tried in earnest."""
    sums = blank().with_release(fresh(10, 2.0), law=LAW, decay=1.0)
    assert sums.latest >= 10
    assert sums.latest_variance == 2.0
    earlier = sums.arrays()
    del earlier["latest"], earlier["latest_variance"]
    again = ContextualSums.of(earlier)
    assert (again.latest, again.latest_variance) == (0.0, 0.0)
    assert np.array_equal(again.liked, sums.liked)
