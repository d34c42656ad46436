"""Credits against a naive reading of algorithm 2, voter by voter, with the rule for silence."""

from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.p_rec.credits import Ballots, Credits


class Naive:
    """Two integers a voter, one voter at a time."""

    def __init__(self, *, voters: int, diversity: int, radius: int) -> None:
        self.credit = [[2 * diversity, 2 * radius + 1] for _ in range(voters)]

    def counts(self, voter: int) -> bool:
        of_diversity, of_radius = self.credit[voter]
        return of_radius > 0 and of_diversity + of_radius > 0

    def update(self, ballots: list[int], liked: int | None, disliked: list[int]) -> None:
        for voter, ballot in enumerate(ballots):
            # Whoever has stopped counting never counts again: both credits only fall.
            if ballot - 1 in disliked:
                self.credit[voter][1] -= 1
            elif ballot == 0 or (liked is not None and ballot != liked + 1):
                self.credit[voter][0] -= 1

    def tally(self, ballots: list[int], objects: int) -> tuple[list[int], int]:
        votes, credit = [0] * objects, 0
        for voter, ballot in enumerate(ballots):
            if ballot and self.counts(voter):
                votes[ballot - 1] += 1
                credit += sum(self.credit[voter])
        return votes, credit


def packed(ballots: list[int]) -> Ballots:
    return np.array(ballots, dtype=np.uint8)


class TestAgainstTheNaiveReading:
    @pytest.mark.parametrize(("diversity", "radius"), [(0, 0), (0, 2), (3, 0), (2, 1), (60, 90)])
    def test_the_same_votes_count_with_the_same_credit(self, diversity: int, radius: int) -> None:
        rng = np.random.default_rng(diversity + 10 * radius)
        voters, objects = 60, 3
        credits = Credits(diversity=diversity, radius=radius)
        naive = Naive(voters=voters, diversity=diversity, radius=radius)
        for at in range(12 + 3 * (diversity + radius)):
            ballots = rng.integers(0 if at % 3 else 1, objects + 1, voters).tolist()
            tally = credits.tally(ballots=packed(ballots), objects=objects)
            assert (tally.votes.tolist(), tally.credit) == naive.tally(ballots, objects)
            # One object, or several; one of them is liked, or none.
            shown = rng.permutation(objects)[: int(rng.integers(1, objects + 1))].tolist()
            liked = shown.pop() if rng.integers(2) else None
            credits.update(ballots=packed(ballots), liked=liked, disliked=shown)
            naive.update(ballots, liked, shown)
            assert credits.counting.sum() == sum(map(naive.counts, range(voters)))
        assert credits.answered == 12 + 3 * (diversity + radius)

    def test_who_joins_late_was_silent_until_then(self) -> None:
        early, late = Credits(diversity=1, radius=1), Credits(diversity=1, radius=1)
        for round_ in ([1, 2, 1], [2, 2, 1]):
            early.update(ballots=packed([*round_, 0, 0]), liked=0)
            late.update(ballots=packed(round_), liked=0)
        now = packed([1, 1, 1, 2, 2])
        one, other = (credits.tally(ballots=now, objects=2) for credits in (early, late))
        assert one.votes.tolist() == other.votes.tolist()
        assert one.credit == other.credit

    @pytest.mark.parametrize("liked", [True, False])
    def test_a_short_page_is_silence_of_the_rest(self, liked: bool) -> None:
        short, long = Credits(diversity=1, radius=0), Credits(diversity=1, radius=0)
        # Nobody voted for what was disliked; the last two are silent in the second round.
        opinion: dict[str, Any] = {"liked": 0} if liked else {"disliked": [2]}
        for ballots in ([1, 1, 1, 1], [1, 2, 0, 0]):
            long.update(ballots=packed(ballots), **opinion)
        for ballots in ([1, 1, 1, 1], [1, 2]):
            short.update(ballots=packed(ballots), **opinion)
        now = packed([2, 2, 2, 2])
        one, other = (credits.tally(ballots=now, objects=3) for credits in (short, long))
        assert one.votes.tolist() == other.votes.tolist()
        assert one.credit == other.credit == (3 + 2 + 2 + 2 if liked else 3 + 3 + 2 + 2)


def test_a_copy_is_updated_by_itself() -> None:
    credits = Credits(diversity=1, radius=1)
    credits.update(ballots=packed([1, 2, 2]), liked=0)
    twin = credits.copy()
    twin.update(ballots=packed([1, 1, 2]), disliked=[0])
    now = packed([1, 1, 1])
    assert credits.tally(ballots=now, objects=2).credit == 5 + 4 + 4
    assert twin.tally(ballots=now, objects=2).credit == 4 + 3 + 4
    assert (credits.answered, twin.answered) == (1, 2)


def test_a_voter_takes_two_bytes_or_four() -> None:
    small, large = Credits(diversity=60, radius=60), Credits(diversity=100, radius=100)
    for credits in (small, large):
        credits.tally(ballots=np.ones(1000, dtype=np.uint8), objects=2)
    assert (small.held_bytes, large.held_bytes) == (2_000, 4_000)


def test_ballots_for_objects_that_are_not_there_are_refused() -> None:
    with pytest.raises(InvalidArgument) as refusal:
        Credits(diversity=0, radius=0).tally(ballots=packed([1, 3]), objects=2)
    assert refusal.value.argument == "ballots"


@pytest.mark.parametrize(("diversity", "radius"), [(-1, 0), (0, -1), (20_000, 20_000)])
def test_unusable_credits_are_refused(diversity: int, radius: int) -> None:
    with pytest.raises(InvalidArgument):
        Credits(diversity=diversity, radius=radius)
