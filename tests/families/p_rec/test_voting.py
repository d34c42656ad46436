"""A run as served: the test ends it where it should, and learning works."""

from collections import Counter

import numpy as np
import pytest

from discreet.families.p_rec.voting import Run, answer, begin, draw_without_votes
from discreet.families.p_rec.credits import Ballots, Credits
from discreet.families.p_rec.run_parameters import Terms, Voting, terms_for
from discreet.research.noise import SeededNoise

VOTING = Voting(objects=3, rounds=200, radius=1, diversity=1)


def terms_of(peers: int = 900, voters: int = 4000) -> Terms:
    return terms_for(voting=VOTING, peers=peers, voters=voters, delta=1e-9)


def ballots_of(peers: int, others: int, rng: np.random.Generator) -> tuple[Ballots, int]:
    """Return a round in which the peers vote for one object and the others for any."""
    wanted = int(rng.integers(3))
    theirs = rng.integers(1, 4, others)
    return np.concatenate([np.full(peers, wanted + 1), theirs]).astype(np.uint8), wanted


def play(run: Run, *, peers: int, others: int, rounds: int, seed: int) -> int:
    """Return how often the client disliked what he got."""
    rng = np.random.default_rng(seed)
    lost = 0
    for _ in range(rounds):
        ballots, wanted = ballots_of(peers, others, rng)
        chosen = run.recommend(ballots)
        run.hear(ballots, chosen=chosen, liked=chosen == wanted)
        lost += chosen != wanted
    return lost


class TestRun:
    def test_peers_are_found_and_the_loss_stays_below_its_bound(self) -> None:
        terms = terms_of()
        run = Run(terms=terms, noise=SeededNoise(1))
        lost = play(run, peers=1000, others=3000, rounds=200, seed=1)
        assert not run.ended
        assert lost < terms.loss_bound / 3
        assert run.counting.sum() == 1000

    def test_without_peers_the_run_ends_and_answers_are_drawn_by_chance(self) -> None:
        run = Run(terms=terms_of(), noise=SeededNoise(2))
        lost = play(run, peers=0, others=4000, rounds=200, seed=2)
        assert run.ended
        # Two thirds of 200, six standard deviations: a false alarm in 10**8.
        assert 93 < lost < 174

    def test_an_ended_run_never_looks_at_votes_again(self) -> None:
        run = Run(terms=terms_of(), noise=SeededNoise(3))
        play(run, peers=0, others=4000, rounds=60, seed=3)
        assert run.ended
        everybody = np.full(4000, 2, dtype=np.uint8)
        drawn = Counter(run.recommend(everybody) for _ in range(300))
        assert set(drawn) == {0, 1, 2}
        assert min(drawn.values()) > 50


class TestAnswer:
    def test_enough_credit_passes_and_too_little_does_not(self) -> None:
        terms = terms_of()
        everybody = np.full(4000, 2, dtype=np.uint8)
        nobody = np.zeros(4000, dtype=np.uint8)
        for seed in range(20):
            noise = SeededNoise(seed)
            offset = begin(terms=terms, noise=noise)
            fresh = Credits(diversity=1, radius=1)
            used = answer(terms=terms, credits=fresh, offset=offset, ballots=everybody, noise=noise)
            assert used.counted
            unused = answer(terms=terms, credits=fresh, offset=offset, ballots=nobody, noise=noise)
            assert not unused.counted

    def test_the_threshold_is_where_the_noise_puts_it(self) -> None:
        # Credit exactly at the threshold passes for half of the noises and a little more.
        terms = terms_of()
        voters = terms.threshold // VOTING.credit
        assert voters * VOTING.credit > terms.floor
        ballots = np.ones(voters, dtype=np.uint8)
        noise = SeededNoise(5)
        passed = 0
        for _ in range(1000):
            fresh = Credits(diversity=1, radius=1)
            offset = begin(terms=terms, noise=noise)
            passed += answer(
                terms=terms, credits=fresh, offset=offset, ballots=ballots, noise=noise
            ).counted
        # 500 +- 16; the half-step below the threshold moves it by less than ten.
        assert 380 < passed < 600

    def test_below_the_floor_no_noise_lets_votes_through(self) -> None:
        terms = terms_of()
        ballots = np.ones(terms.survivors, dtype=np.uint8)
        drawn = answer(
            terms=terms,
            credits=Credits(diversity=1, radius=1),
            offset=-(10**9),
            ballots=ballots,
            noise=SeededNoise(6),
        )
        assert not drawn.counted

    def test_the_draw_is_the_papers(self) -> None:
        # Frequencies within 6 standard deviations of the rule's own probabilities.
        terms = terms_of()
        ballots = np.repeat(np.array([1, 2, 3], dtype=np.uint8), [1400, 1350, 1250])
        noise = SeededNoise(7)
        drawn = Counter(
            answer(
                terms=terms,
                credits=Credits(diversity=1, radius=1),
                offset=0,
                ballots=ballots,
                noise=noise,
            ).chosen
            for _ in range(2000)
        )
        expected = VOTING.rule(terms.survivors).probabilities(np.array([1400, 1350, 1250]))
        for place, share in enumerate(expected):
            assert abs(drawn[place] / 2000 - share) < 6 * np.sqrt(share * (1 - share) / 2000)
        assert expected[0] > 1.3 * expected[1]

    @pytest.mark.parametrize("seed", range(3))
    def test_chance_alone_is_uniform(self, seed: int) -> None:
        noise = SeededNoise(seed)
        drawn = Counter(
            draw_without_votes(terms=terms_of(), noise=noise).chosen for _ in range(3000)
        )
        assert all(abs(count - 1000) < 155 for count in drawn.values())
        assert len(drawn) == 3
