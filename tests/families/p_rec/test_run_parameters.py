"""The price of a run: the published formulas, the test's tails, and the bound on all leaks."""

import math
from functools import cache

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.p_rec.run_parameters import (
    RunParameters,
    VotingParameters,
    margin,
    parameters_at,
    parameters_for,
    parameters_within,
    tail,
)
from discreet.privacy.accountants import ZCDPAccountant

DELTA = 1e-9


class TestPublished:
    def test_epsilon_as_the_theorems_have_it(self) -> None:
        plain = VotingParameters(objects=10, rounds=1000)
        assert plain.published_epsilon(4000) == pytest.approx(18 * 100 * math.log(1000) / 4000)
        general = VotingParameters(objects=3, rounds=600, radius=2, diversity=4)
        expected = 36 * 9 * 13 * math.log(200) / 5000
        assert general.published_epsilon(5000) == pytest.approx(expected)

    def test_loss_as_the_theorem_has_it(self) -> None:
        voting = VotingParameters(objects=3, rounds=600, radius=2, diversity=4)
        expected = 6 * 5 * math.log(5 * 10_000 / (3 * 500)) + 3 / (600 - 1) * 600
        assert voting.loss_bound(peers=500, voters=10_000) == pytest.approx(expected)

    def test_parameters_of_the_draw(self) -> None:
        voting = VotingParameters(objects=3, rounds=600, radius=2, diversity=4)
        assert voting.uniform_share == pytest.approx(3 / 599)
        assert voting.sharpness == pytest.approx(6 * math.log(200))
        assert (voting.credit, voting.peer_credit) == (13, 7)


class TestTail:
    @pytest.mark.parametrize("scale", [0.4, 1.0, 3.7])
    def test_two_noises_are_convolved(self, scale: float) -> None:
        reach = np.arange(-400, 401)
        one = np.exp(-np.abs(reach) / scale)
        both = np.convolve(one / one.sum(), one / one.sum())
        for distance in (0, 1, 2, 5, 11):
            exact = both[800 + distance :].sum()
            assert tail(distance, scale) == pytest.approx(exact, rel=1e-8)

    @pytest.mark.parametrize("probability", [0.3, 1e-3, 1e-9, 1e-12])
    @pytest.mark.parametrize("scale", [0.5, 20.0, 1e5])
    def test_the_margin_is_just_far_enough(self, probability: float, scale: float) -> None:
        far = margin(probability, scale)
        assert tail(far, scale) <= probability < tail(far - 1, scale)


def worst_leaks(run: RunParameters) -> float:
    """Return the dearest sequence of leaks that (2) of the proof allows, one round at a time.

    In units of K lambda, by dynamic programming over all credit there is.
    """
    credit, objects = run.voting.credit, run.voting.objects
    least = run.floor

    @cache
    def dearest(left: int) -> float:
        worst = 0.0
        for voting in range(least, left + 1):
            taken = math.ceil(voting / credit / (2 * objects) + (left - voting) / credit)
            loses = math.log1p(1 / (voting / credit - 1))
            worst = max(worst, loses + (dearest(left - taken) if left - taken >= least else 0.0))
        return worst

    for left in range(least, run.voters * credit + 1):
        dearest(left)
    return dearest(run.voters * credit)


class TestLeaks:
    @pytest.mark.parametrize(
        ("objects", "radius", "diversity", "survivors", "voters"),
        [
            (2, 0, 0, 20, 300),
            (2, 0, 0, 30, 80),
            (2, 1, 1, 4, 60),
            (3, 1, 0, 6, 90),
            (5, 0, 0, 9, 9),
        ],
    )
    def test_no_sequence_of_leaks_is_dearer_than_the_bound(
        self, objects: int, radius: int, diversity: int, survivors: int, voters: int
    ) -> None:
        run = RunParameters(
            voting=VotingParameters(
                objects=objects, rounds=100, radius=radius, diversity=diversity
            ),
            peers=6 * objects,
            voters=voters,
            delta=0.01,
            scale=1.0,
            survivors=survivors,
            threshold=0,
        )
        steep = run.draw_epsilon / math.log1p(1 / survivors)
        worst = worst_leaks(run) * steep
        assert worst <= run.votes_epsilon
        # So a bound that forgot a third would have been caught, wherever there is room for leaks.
        if voters >= 3 * survivors:
            assert worst > run.votes_epsilon / 1.6

    def test_silence_costs_little_and_unknown_numbers_of_voters_too(self) -> None:
        voting = VotingParameters(objects=10, rounds=1000)
        few = parameters_for(voting=voting, peers=4000, voters=100_000, delta=DELTA)
        many = parameters_for(voting=voting, peers=4000, voters=2**31 - 1, delta=DELTA)
        assert few.event.epsilon < many.event.epsilon < 2 * few.event.epsilon


class TestRunParameters:
    def test_more_peers_cost_less_and_the_fewest_are_found(self) -> None:
        voting = VotingParameters(objects=10, rounds=1000)
        found = parameters_within(voting=voting, epsilon=1.0, voters=100_000, delta=DELTA)
        assert 0.99 < found.event.epsilon <= 1.0
        fewer = parameters_for(voting=voting, peers=found.peers - 20, voters=100_000, delta=DELTA)
        assert fewer.event.epsilon > 1.0
        more = parameters_for(voting=voting, peers=2 * found.peers, voters=100_000, delta=DELTA)
        assert more.event.epsilon < 0.6

    def test_a_run_is_a_third_of_the_published_price_without_its_promise(self) -> None:
        voting = VotingParameters(objects=10, rounds=1000)
        found = parameters_within(voting=voting, epsilon=1.0, voters=100_000, delta=DELTA)
        assert voting.published_epsilon(found.peers) > 3 * found.event.epsilon

    def test_the_line_keeps_its_distances(self) -> None:
        voting = VotingParameters(objects=3, rounds=300, radius=1, diversity=2)
        run = parameters_for(voting=voting, peers=3000, voters=20_000, delta=DELTA)
        # A run that has the promised peers is ended wrongly once in 2T, all rounds together.
        promised = run.peers * voting.peer_credit
        wrongly = tail(promised - run.threshold + 1, run.scale)
        assert wrongly * voting.rounds <= 0.5 / voting.rounds * (1 + 1e-6)
        # Credit below the floor in either world passes with at most delta.
        passes = tail(run.threshold - (run.floor + voting.credit - 1), run.scale)
        assert passes <= DELTA
        assert run.floor == (run.survivors + 1) * voting.credit

    def test_rho_is_far_below_that_of_a_pure_release(self) -> None:
        voting = VotingParameters(objects=10, rounds=1000)
        run = parameters_for(voting=voting, peers=4000, voters=100_000, delta=DELTA)
        assert run.event.rho < run.event.epsilon**2 / 2 / 10
        assert run.event.rho >= run.test_epsilon**2 / 2
        rule = ZCDPAccountant(None, 1e-7)
        assert rule.price(run.event).rho == pytest.approx(run.event.rho)

    def test_the_test_was_chosen_well(self) -> None:
        voting = VotingParameters(objects=4, rounds=500)
        run = parameters_for(voting=voting, peers=2000, voters=50_000, delta=DELTA)
        for factor in (0.5, 2.0):
            other = parameters_at(
                voting=voting,
                peers=2000,
                voters=50_000,
                delta=DELTA,
                scale=run.scale * factor,
            )
            assert other.event.epsilon > run.event.epsilon

    def test_the_loss_bound_adds_what_a_wrong_end_may_cost(self) -> None:
        voting = VotingParameters(objects=4, rounds=500)
        run = parameters_for(voting=voting, peers=2000, voters=50_000, delta=DELTA)
        assert run.loss_bound == voting.loss_bound(peers=2000, voters=50_000) + 0.5


class TestRefusals:
    @pytest.mark.parametrize(
        ("argument", "change"),
        [
            ("objects", {"objects": 1}),
            ("objects", {"objects": 201}),
            ("horizon", {"rounds": 0}),
            ("horizon", {"rounds": 6}),
            ("horizon", {"rounds": 30, "radius": 12}),
            ("horizon", {"objects": 2, "rounds": 1}),
            ("radius", {"radius": -1}),
            ("diversity", {"diversity": -1}),
            ("diversity", {"diversity": 40_000}),
            ("sharpness", {"objects": 200, "rounds": 10**6}),
        ],
    )
    def test_unusable_parameters(self, argument: str, change: dict[str, int]) -> None:
        with pytest.raises(InvalidArgument) as refusal:
            VotingParameters(**{"objects": 10, "rounds": 1000, **change})
        assert refusal.value.argument == argument

    @pytest.mark.parametrize(
        ("argument", "change"),
        [
            ("peers", {"peers": 59}),
            ("peers", {"peers": 101_000}),
            ("run_delta", {"delta": 0.0}),
            ("run_delta", {"delta": 0.5}),
            ("voters", {"voters": 2**31}),
        ],
    )
    def test_unusable_runs(self, argument: str, change: dict[str, float]) -> None:
        usable = {"peers": 4000, "voters": 100_000, "delta": DELTA}
        with pytest.raises(InvalidArgument) as refusal:
            parameters_for(voting=VotingParameters(objects=10, rounds=1000), **{**usable, **change})
        assert refusal.value.argument == argument

    def test_an_epsilon_that_cannot_be_had(self) -> None:
        voting = VotingParameters(objects=10, rounds=1000)
        for epsilon in (0.01, 0.0, math.inf):
            with pytest.raises(InvalidArgument) as refusal:
                parameters_within(voting=voting, epsilon=epsilon, voters=10_000, delta=DELTA)
            assert refusal.value.argument == "epsilon"
