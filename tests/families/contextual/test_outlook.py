"""What a released model says about all items together: who contends, and who is explored."""

import math

import numpy as np
import numpy.typing as npt
import pytest

from discreet.families.choice import COIN_SIDES, Floats
from discreet.families.contextual.learning import fit
from discreet.families.contextual.outlook import CatalogueOutlook, Prospects
from discreet.families.contextual.spaces import LinearSpace
from discreet.families.contextual.sums import ContextualSums
from tests.families.contextual.people import summed

RATE = 0.02


def shown_as(
    shown: npt.NDArray[np.intp], items: int, *, best: int = 0, deviation: float = 0.0
) -> tuple[LinearSpace, ContextualSums]:
    """Return sums of people who all like item `best`, and the others half as much."""
    space = LinearSpace(4, not deviation, apart=not deviation)
    contexts = np.random.default_rng(1).random((len(shown), 4))
    means = np.full((len(shown), items), 0.3)
    means[:, best] = 0.6
    return space, summed(space, contexts, means, seed=2, shown=shown, deviation=deviation)


def outlook(
    space: LinearSpace, sums: ContextualSums, *, epsilon: float | None = 2.0, items: int
) -> CatalogueOutlook:
    sums, slots = sums.fitted(items), np.arange(items, dtype=np.intp)
    return Prospects(
        space=space,
        sums=sums,
        estimates=fit(space, sums, slots),
        visible=slots,
        epsilon=epsilon,
        optimism=0.6,
        rate=RATE,
    ).outlook()


def explored(made: CatalogueOutlook) -> Floats:
    """Return the share of all answers that explores each item."""
    shares: Floats = made.coin / COIN_SIDES * made.curiosity / made.curiosity.sum()
    return shares


@pytest.mark.parametrize("epsilon", [None, 2.0])
def test_of_many_items_those_contend_that_were_tried(epsilon: float | None) -> None:
    """Of 200 items 60 were tried, so there is no room for others."""
    shown = np.arange(6_000, dtype=np.intp) % 60
    made = outlook(*shown_as(shown, 200, best=59), epsilon=epsilon, items=200)
    assert 59 in made.listed
    assert made.listed.max() < 60
    if epsilon is None:
        assert sorted(made.listed) == list(range(60))


def test_with_private_feedback_all_items_contend() -> None:
    shown = np.arange(6_000, dtype=np.intp) % 60
    made = outlook(*shown_as(shown, 200, deviation=6.0), epsilon=None, items=200)
    assert len(made.listed) == 200


def test_items_that_wait_are_looked_at_and_less_often_as_time_goes_by() -> None:
    early = explored(outlook(*shown_as(np.arange(3_000) % 90, 200), items=200))
    late = explored(outlook(*shown_as(np.arange(30_000) % 90, 200), items=200))
    assert early[90:].sum() > 0.07
    assert 0.02 < late[90:].sum() < 0.04
    assert np.ptp(late[90:]) == 0.0


@pytest.mark.parametrize("old", [10, 49, 60, 400])
@pytest.mark.parametrize("new", [1, 3])
def test_new_items_share_a_hundredth_of_all_answers(old: int, new: int) -> None:
    """Among any number of old ones, whether there is room for them to contend or not."""
    shown = np.arange(30 * old, dtype=np.intp) % old
    for seen in (False, True):
        if seen:  # each of the new ones once, and still hardly tried
            shown = np.append(shown, old + np.arange(new))
        made = outlook(*shown_as(shown, old + new), items=old + new)
        assert (explored(made)[old:] > 0.5 * RATE / new - 1e-5).all()


def test_what_is_unknown_about_tastes_counts_as_far_as_answers_can_differ() -> None:
    """Item 1 is a little worse for most people, and unknown for some: 10 of 12 came from one side,
    so at a large epsilon it is listed for the others, and at a small one nobody has to try it."""
    rng = np.random.default_rng(0)
    contexts = rng.random((3_000, 4))
    shown = np.where(rng.random(3_000) < 0.03, 1, 0)
    contexts[shown == 1, 0] = 0.0
    means = np.tile([0.5, 0.48], (3_000, 1))
    space = LinearSpace(4, exact=True, apart=True)
    sums = summed(space, contexts, means, seed=3, shown=shown)
    large, small = (outlook(space, sums, epsilon=epsilon, items=2) for epsilon in (6.0, 0.05))
    assert len(large.listed) == 2
    assert len(small.listed) == 1


def test_the_shortlist_comes_first_and_what_most_people_like_after_it() -> None:
    made = outlook(*shown_as(np.arange(4_000) % 8, 8, best=3), items=8)
    assert made.popular[0] == made.listed[0] == made.ranking[0] == 3
    assert sorted(made.ranking) == list(range(8))
    assert math.isclose(explored(made).sum(), made.coin / COIN_SIDES)
