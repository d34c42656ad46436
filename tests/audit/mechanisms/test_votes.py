"""The p-REC rule: weights and scripted draws say the same."""

from itertools import product

import pytest

from discreet.audit.examine_worlds import enumerate_pairs, examine_epsilon
from discreet.audit.mechanisms.votes import (
    one_vote_apart,
    spreads,
    vote_worlds,
    weighed_pairs,
)
from discreet.privacy.truncated import TruncatedExponential

SMALL = TruncatedExponential(objects=2, sharpness=6.0, uniform_share=0.1, survivors=4)


def test_every_spread_of_the_votes_is_there_once() -> None:
    found = list(spreads(objects=3, survivors=4))
    assert len(set(found)) == len(found)
    assert set(found) == {v for v in product(range(6), repeat=3) if sum(v) in (4, 5)}


def test_neighbours_differ_by_one_vote() -> None:
    assert one_vote_apart((2, 2), (2, 3))
    assert one_vote_apart((2, 2), (1, 2))
    assert not one_vote_apart((2, 2), (2, 2))
    assert not one_vote_apart((2, 2), (3, 1))
    assert not one_vote_apart((2, 2), (3, 3))


def test_weights_and_scripted_draws_give_the_same_loss() -> None:
    """The draw's own bias is below 2**-62 of it."""
    drawn = enumerate_pairs(vote_worlds(SMALL, objects=2, survivors=4), one_vote_apart)
    weighed = weighed_pairs(SMALL)
    assert drawn[0] == weighed[0]
    assert len(drawn[1]) == len(weighed[1])
    first, second = examine_epsilon(drawn), examine_epsilon(weighed)
    assert first.holds
    assert second.holds
    assert first.measured == pytest.approx(second.measured, rel=1e-15)


@pytest.mark.parametrize(("promised", "holds"), [(4, True), (8, True), (16, False), (100, False)])
def test_four_votes_charged_like_sixteen_are_noticed(promised: int, holds: bool) -> None:
    """The price is an upper bound: of four votes it is three times the loss that is found."""
    _, pairs = weighed_pairs(SMALL)
    charged = TruncatedExponential(
        objects=2, sharpness=6.0, uniform_share=0.1, survivors=promised
    ).event
    assert examine_epsilon((frozenset({charged}), pairs)).holds == holds
