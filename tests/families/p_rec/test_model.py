"""A run as served: the test ends it where it should, and learning works."""

from collections import Counter

import numpy as np
import pytest

from discreet.families.p_rec.credits import Ballots, Credits
from discreet.families.p_rec.model import DrawnObjects, RoundQuestion, RunView, begin_runs, draw
from discreet.families.p_rec.run_parameters import RunParameters, VotingParameters, parameters_for
from discreet.privacy.noise import NoiseSource
from discreet.research.noise import SeededNoise

VOTING = VotingParameters(objects=3, rounds=200, radius=1, diversity=1)


def run_of(peers: int = 900, voters: int = 4000) -> RunParameters:
    return parameters_for(voting=VOTING, peers=peers, voters=voters, delta=1e-9)


def fresh() -> Credits:
    return Credits(diversity=1, radius=1)


def drawn_from(
    run: RunParameters, credits: Credits, offset: int, ballots: Ballots, noise: NoiseSource
) -> DrawnObjects:
    view = RunView(credits.tally(ballots=ballots, objects=3), offset)
    (drawn,) = draw(run, [RoundQuestion(3, view)], noise)
    return drawn


class Play:
    """A client's run: as many voters as given are peers, the others vote for anything."""

    def __init__(self, *, peers: int, others: int, rounds: int, seed: int) -> None:
        run, noise, rng = run_of(), SeededNoise(seed), np.random.default_rng(seed)
        self.credits, self.lost, self.ended = fresh(), 0, False
        (offset,) = begin_runs(run, 1, noise)
        for _ in range(rounds):
            wanted = int(rng.integers(3))
            theirs = rng.integers(1, 4, others)
            ballots = np.concatenate([np.full(peers, wanted + 1), theirs]).astype(np.uint8)
            if self.ended:
                (drawn,) = draw(run, [RoundQuestion(3)], noise)
            else:
                drawn = drawn_from(run, self.credits, offset, ballots, noise)
            self.ended = not drawn.used_votes
            liked = drawn.chosen == (wanted,)
            if liked:
                self.credits.update(ballots=ballots, liked=wanted)
            else:
                self.credits.update(ballots=ballots, disliked=drawn.chosen)
            self.lost += not liked


class TestRun:
    def test_peers_are_found_and_the_loss_stays_below_its_bound(self) -> None:
        played = Play(peers=1000, others=3000, rounds=200, seed=1)
        assert not played.ended
        assert played.lost < run_of().loss_bound / 3
        assert played.credits.counting.sum() == 1000

    def test_without_peers_the_run_ends_and_answers_are_random(self) -> None:
        played = Play(peers=0, others=4000, rounds=200, seed=2)
        assert played.ended
        # Two thirds of 200, six standard deviations: a false alarm in 10**8.
        assert 93 < played.lost < 174


class TestDraw:
    def test_enough_credit_passes_and_too_little_does_not(self) -> None:
        run = run_of()
        everybody = np.full(4000, 2, dtype=np.uint8)
        nobody = np.zeros(4000, dtype=np.uint8)
        for seed in range(20):
            noise = SeededNoise(seed)
            (offset,) = begin_runs(run, 1, noise)
            assert drawn_from(run, fresh(), offset, everybody, noise).used_votes
            assert not drawn_from(run, fresh(), offset, nobody, noise).used_votes

    def test_the_threshold_is_where_the_noise_puts_it(self) -> None:
        # Credit exactly at the threshold passes for half of the noises and a little more.
        run = run_of()
        voters = run.threshold // VOTING.credit
        assert voters * VOTING.credit > run.floor
        ballots = np.ones(voters, dtype=np.uint8)
        noise = SeededNoise(5)
        passed = sum(
            drawn_from(run, fresh(), begin_runs(run, 1, noise)[0], ballots, noise).used_votes
            for _ in range(1000)
        )
        # 500 +- 16; the half-step below the threshold moves it by less than ten.
        assert 380 < passed < 600

    def test_the_threshold_moves_with_the_noise_of_the_run(self) -> None:
        run = run_of()
        everybody = np.full(4000, 2, dtype=np.uint8)
        assert not drawn_from(run, fresh(), 10**6, everybody, SeededNoise(6)).used_votes
        # Below the threshold by far more than the test's own noise, and above the floor.
        few = np.ones(run.survivors + 2, dtype=np.uint8)
        assert not drawn_from(run, fresh(), 0, few, SeededNoise(6)).used_votes
        assert drawn_from(run, fresh(), -(10**6), few, SeededNoise(6)).used_votes

    def test_below_the_floor_no_noise_lets_votes_through(self) -> None:
        run = run_of()
        ballots = np.ones(run.survivors, dtype=np.uint8)
        assert not drawn_from(run, fresh(), -(10**9), ballots, SeededNoise(6)).used_votes

    def test_the_draw_is_the_papers(self) -> None:
        # Frequencies within 6 standard deviations of the rule's own probabilities.
        run = run_of()
        ballots = np.repeat(np.array([1, 2, 3], dtype=np.uint8), [1400, 1350, 1250])
        view = RunView(fresh().tally(ballots=ballots, objects=3), 0)
        question = RoundQuestion(3, view)
        drawn = Counter(one.chosen[0] for one in draw(run, [question] * 2000, SeededNoise(7)))
        expected = VOTING.rule(run.survivors).probabilities(np.array([1400, 1350, 1250]))
        for place, share in enumerate(expected):
            assert abs(drawn[place] / 2000 - share) < 6 * np.sqrt(share * (1 - share) / 2000)
        assert expected[0] > 1.3 * expected[1]

    @pytest.mark.parametrize("seed", range(3))
    def test_without_a_view_the_draw_is_uniform(self, seed: int) -> None:
        drawn = draw(run_of(), [RoundQuestion(3)] * 3000, SeededNoise(seed))
        assert not any(one.used_votes for one in drawn)
        counts = Counter(one.chosen for one in drawn)
        # 1000 +- 26, six standard deviations; a share wrong by 30% would be 300 off.
        assert all(abs(count - 1000) < 155 for count in counts.values())
        assert len(counts) == 3

    def test_many_are_drawn_together_each_by_its_own_view(self) -> None:
        run = run_of()
        views: list[RunView | None] = []
        for votes in (np.full(4000, 2), np.zeros(4000), np.full(4000, 3)):
            ballots = votes.astype(np.uint8)
            views += [RunView(fresh().tally(ballots=ballots, objects=3), 0), None]
        before = [view and view.tally.votes.copy() for view in views]
        questions = [RoundQuestion(3, view) for view in views]
        drawn = draw(run, questions, SeededNoise(9))
        assert [one.used_votes for one in drawn] == [True, False, False, False, True, False]
        # The uniform share is 1/99 here: with this seed both follow the votes.
        assert (drawn[0].chosen, drawn[4].chosen) == ((1,), (2,))
        assert draw(run, questions, SeededNoise(9)) == drawn
        for view, votes in zip(views, before, strict=True):
            assert view is None or (view.tally.votes == votes).all()
        assert draw(run, [], SeededNoise(9)) == []

    def test_a_list_holds_different_objects_by_the_votes_or_at_random(self) -> None:
        run = run_of()
        ballots = np.repeat(np.array([1, 2, 3], dtype=np.uint8), [2200, 1800, 0])
        view = RunView(fresh().tally(ballots=ballots, objects=3), 0)
        asked = [RoundQuestion(3, view, 2)] * 400
        lists = [one.chosen for one in draw(run, asked, SeededNoise(11))]
        assert all(len(set(one)) == 2 for one in lists)
        # The two that have votes are nearly always the two; one in 99 first objects is random.
        assert sum(set(one) == {0, 1} for one in lists) > 360
        without = [
            one.chosen for one in draw(run, [RoundQuestion(3, None, 2)] * 600, SeededNoise(1))
        ]
        assert len(set(without)) == 6
        # 200 +- 12, six standard deviations.
        assert abs(sum(2 not in one for one in without) - 200) < 72

    def test_a_round_of_few_objects_is_drawn_whole(self) -> None:
        run = run_of()
        ballots = np.repeat(np.array([1, 2], dtype=np.uint8), [2200, 1800])
        view = RunView(fresh().tally(ballots=ballots, objects=2), 0)
        for seen in (view, None):
            (drawn,) = draw(run, [RoundQuestion(2, seen, 3)], SeededNoise(2))
            assert sorted(drawn.chosen) == [0, 1]
