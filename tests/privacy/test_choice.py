import gc
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.audit.enclosures import exceeds_exp
from discreet.audit.examine_samples import entropy_evidence
from discreet.audit.scripted_noise import distribution
from discreet.errors import InvalidArgument
from discreet.privacy.charges import decimal
from discreet.privacy.choice import Exact, ExponentialMechanism, ShortlistResponse
from discreet.privacy.events import (
    ExactRelease,
    ExponentialChoice,
    RandomisedResponse,
    Repeated,
)
from discreet.privacy.noise import SystemNoise
from discreet.research.noise import SeededNoise
from tests.privacy.shapes import ALARM

NOISE = SystemNoise()


def spread(first: Any, second: Any) -> Fraction:
    """Return exp of the length of the interval over which the privacy loss ranges."""
    ratios = [Fraction(int(p), int(q)) for p, q in zip(first, second, strict=True) if p or q]
    return max(ratios) / min(ratios)


class TestExact:
    def test_the_best_arm_is_chosen_and_costs_everything(self) -> None:
        released = Exact().choose(utilities=np.array([0.1, 0.9, 0.3]))
        assert (released.value, released.event) == (1, ExactRelease())

    def test_the_lowest_slot_wins_ties(self) -> None:
        utilities = np.array([0.1, 0.9, 0.9])
        assert Exact().choose(utilities=utilities, noise=NOISE).value == 1
        assert Exact().weights(utilities).tolist() == [0, 1, 0]
        assert Exact().choose_several(utilities=utilities, count=3).value == (1, 2, 0)

    def test_a_base_of_zero_rules_an_arm_out(self) -> None:
        utilities = np.array([0.1, 0.9, 0.3])
        assert Exact().choose(utilities=utilities, base=[1, 0, 1]).value == 2
        with pytest.raises(InvalidArgument) as refusal:
            Exact().choose_several(utilities=utilities, count=3, base=[1, 0, 1])
        assert refusal.value.argument == "count"

    def test_utilities_that_are_not_numbers_are_refused(self) -> None:
        with pytest.raises(InvalidArgument) as refusal:
            Exact().choose(utilities=np.array([0.1, np.nan]))
        assert refusal.value.argument == "utilities"
        with pytest.raises(InvalidArgument) as refusal:
            Exact().choose(utilities=np.array([0.1, np.inf]))
        assert refusal.value.argument == "utilities"


EPSILONS = [1e-9, 1e-6, 0.1, 1.0, 3.3, 50.0, 200.0]


class TestExponential:
    @pytest.mark.parametrize("epsilon", EPSILONS)
    def test_the_loss_ranges_over_at_most_epsilon(self, epsilon: float) -> None:
        # Sensitivity is the whole range, so any two vectors are neighbours.
        mechanism = ExponentialMechanism(epsilon=epsilon, steps=8)
        vectors = [mechanism.weights(np.array(u)) for u in product((0.0, 0.07, 0.51, 1), repeat=3)]
        worst = max(spread(first, second) for first in vectors for second in vectors)
        assert not exceeds_exp(worst, decimal(epsilon))
        # ... and the bound is reached, up to what the table's steps and the draw keep back.
        assert exceeds_exp(worst, decimal(epsilon) * Fraction(999, 1000))

    @pytest.mark.parametrize("epsilon", [0.1, 2.0, 40.0])
    @pytest.mark.parametrize("sensitivity", [0.1, 0.25])
    def test_a_smaller_sensitivity_counts_for_neighbours_only(
        self, epsilon: float, sensitivity: float
    ) -> None:
        mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity, steps=40)
        # On the grid, between its points, and where rounding goes up for one and down for another.
        levels = [0.0, 0.0124, 0.0126, 0.1, 0.1124, 0.1126, 0.25, 0.2625, 0.5, 0.75, 1.0]
        pairs = [(a, b) for a, b in product(levels, levels) if abs(a - b) <= sensitivity]
        worst = Fraction(1)
        for (a, b), (c, d) in product(pairs, pairs):
            first, second = mechanism.weights(np.array([a, c])), mechanism.weights(np.array([b, d]))
            worst = max(worst, spread(first, second))
        assert not exceeds_exp(worst, decimal(epsilon))

    def test_the_roundings_of_doubles_are_paid_for(self) -> None:
        # A quarter apart, hence ten of forty steps, and yet eleven once doubles have rounded.
        near, far = 0.16249999999999998, 0.4125
        assert Fraction(far) - Fraction(near) <= Fraction(1, 4)
        assert int(far * 40 + 0.5) - int(near * 40 + 0.5) == 11
        mechanism = ExponentialMechanism(epsilon=2.0, sensitivity=0.25, steps=40)
        first = mechanism.weights(np.array([near, far]))
        second = mechanism.weights(np.array([far, near]))
        assert not exceeds_exp(spread(first, second), Fraction(2))

    def test_half_the_sensitivity_would_be_noticed(self) -> None:
        # The planted fault: the same neighbours, a mechanism that was told half of it.
        mechanism = ExponentialMechanism(epsilon=1.0, sensitivity=0.5)
        first, second = mechanism.weights(np.array([0.0, 1.0])), mechanism.weights(np.array([1, 0]))
        assert exceeds_exp(spread(first, second), Fraction(13, 10))

    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(data=st.data())
    def test_any_neighbours_keep_the_range(self, data: st.DataObject) -> None:
        sensitivity = data.draw(st.sampled_from([0.001, 0.03, 0.5, 2.0]), "sensitivity")
        lower = data.draw(st.sampled_from([-1.0, 0.0, 1e9]), "lower")
        mechanism = ExponentialMechanism(
            epsilon=0.7, sensitivity=sensitivity, lower=lower, upper=lower + 1, steps=128
        )
        arms = st.integers(1, 6)
        unit = st.floats(0, 1, allow_nan=False)
        size = data.draw(arms, "arms")
        first = np.array(data.draw(st.lists(unit, min_size=size, max_size=size), "first")) + lower
        moves = np.array(data.draw(st.lists(unit, min_size=size, max_size=size), "moves")) * 2 - 1
        second = np.clip(first + moves * sensitivity * (1 - 2**-40), lower, lower + 1)
        within = np.abs(second - first) <= sensitivity
        second = np.where(within, second, first)
        worst = spread(mechanism.weights(first), mechanism.weights(second))
        assert not exceeds_exp(worst, decimal(0.7))

    @pytest.mark.parametrize("epsilon", [0.1, 60.0])
    def test_what_is_drawn_is_what_is_weighed(self, epsilon: float) -> None:
        # The shipped draw, followed through every number it could be given, in either table.
        mechanism = ExponentialMechanism(epsilon=epsilon, steps=16)
        utilities, base = np.array([0.2, 0.9, 1.0, 0.4]), [3, 1, 0, 2]
        seen = distribution(
            lambda noise: mechanism.choose(utilities=utilities, noise=noise, base=base).value
        )
        weights = mechanism.weights(utilities, base)
        total = sum(int(weight) for weight in weights)
        assert set(seen) == {0, 1, 3}
        for index, probability in seen.items():
            expected = Fraction(int(weights[index]), total)
            assert abs(probability / expected - 1) <= Fraction(1, 2**65)

    def test_probabilities_follow_the_exponential(self) -> None:
        mechanism = ExponentialMechanism(epsilon=2.0, sensitivity=0.5, lower=-1.0, upper=1.0)
        utilities = np.array([-1.0, 0.0, 0.25, 1.0])
        ideal = np.exp(utilities * 2.0 / (2 * 0.5))
        # One more grid step than the sensitivity has costs 1/1024 of the exponent.
        shares = mechanism.probabilities(utilities)
        np.testing.assert_allclose(shares, ideal / ideal.sum(), rtol=5e-3)
        assert shares.sum() == pytest.approx(1.0)

    @pytest.mark.parametrize("epsilon", [1.0, 80.0])
    def test_frequencies_follow_the_probabilities(self, epsilon: float) -> None:
        # False alarm below 1e-9; rejects the probabilities at another epsilon.
        mechanism = ExponentialMechanism(epsilon=epsilon, steps=1024)
        utilities = 1 - np.array([0.0, 0.5, 1.0]) / max(1, epsilon / 4)
        drawn = [mechanism.choose(utilities=utilities, noise=NOISE).value for _ in range(6_000)]
        counts = np.bincount(drawn, minlength=3)
        assert entropy_evidence(counts, mechanism.probabilities(utilities)) < ALARM
        other = ExponentialMechanism(epsilon=epsilon * 1.7, steps=1024)
        assert entropy_evidence(counts, other.probabilities(utilities)) > ALARM

    def test_a_base_multiplies_and_cancels(self) -> None:
        mechanism = ExponentialMechanism(epsilon=1.0)
        first, second = np.array([0.1, 0.5, 0.9]), np.array([1.0, 0.0, 0.3])
        base = np.array([1, 20_000, 0])
        with_base = mechanism.weights(first, base)
        assert with_base.tolist() == (mechanism.weights(first) * base).tolist()
        loss = spread(with_base[:2], mechanism.weights(second, base)[:2])
        assert loss == spread(mechanism.weights(first)[:2], mechanism.weights(second)[:2])

    def test_several_are_drawn_without_replacement(self) -> None:
        mechanism = ExponentialMechanism(epsilon=1.0, steps=16)
        utilities = np.array([0.0, 1.0, 0.5])
        released = mechanism.choose_several(utilities=utilities, count=2, noise=NOISE)
        assert released.event == Repeated(ExponentialChoice(1.0), 2)
        seen = distribution(
            lambda noise: mechanism.choose_several(utilities=utilities, count=2, noise=noise).value
        )
        weights = [int(weight) for weight in mechanism.weights(utilities)]
        assert set(seen) == set(permutations(range(3), 2))
        for (one, two), probability in seen.items():
            left = sum(weights) - weights[one]
            expected = Fraction(weights[one], sum(weights)) * Fraction(weights[two], left)
            assert abs(probability / expected - 1) <= Fraction(1, 2**63)

    def test_several_respects_a_base_and_leaves_it_alone(self) -> None:
        mechanism = ExponentialMechanism(epsilon=1.0)
        base = np.array([1, 0, 1])
        utilities = np.array([0.0, 1.0, 0.5])
        chosen = mechanism.choose_several(utilities=utilities, count=2, noise=NOISE, base=base)
        assert set(chosen.value) == {0, 2}
        assert base.tolist() == [1, 0, 1]
        assert utilities.tolist() == [0.0, 1.0, 0.5]

    def test_the_event_names_epsilon(self) -> None:
        released = ExponentialMechanism(epsilon=0.3).choose(utilities=np.array([0.5]), noise=NOISE)
        assert (released.value, released.event) == (0, ExponentialChoice(0.3))

    @pytest.mark.parametrize("epsilon", [1.0, 80.0])
    def test_as_much_is_done_whatever_the_data(self, epsilon: float) -> None:
        mechanism = ExponentialMechanism(epsilon=epsilon)
        rng = np.random.default_rng(5)
        peak = np.zeros(1000)
        peak[999] = 1.0
        inputs = [np.zeros(1000), np.ones(1000), peak, 1 - peak, rng.random(1000)]
        works = {steps_of(lambda u=u: mechanism.choose(utilities=u, noise=NOISE)) for u in inputs}
        assert len(works) == 1

    def test_many_arms(self) -> None:
        mechanism = ExponentialMechanism(epsilon=1.0)
        utilities = np.ones(2**21)
        with pytest.raises(InvalidArgument) as refusal:
            mechanism.choose(utilities=utilities, noise=NOISE)
        assert refusal.value.argument == "utilities"
        # All of the top weight, the largest sum there can be: it must not wrap.
        chosen = mechanism.choose(utilities=utilities[1:], noise=SeededNoise(1)).value
        assert 0 <= chosen < 2**21 - 1
        assert int(mechanism.weights(utilities[1:]).sum()) == (2**21 - 1) * 2**42

    @pytest.mark.parametrize(
        "utilities",
        [[], [[0.5]], [0.5, 1.1], [-0.1], [np.nan, 0.5], [np.inf], [-np.inf], ["x"], [None], [1j]],
    )
    def test_unusable_utilities_are_refused(self, utilities: list[Any]) -> None:
        mechanism = ExponentialMechanism(epsilon=1.0)
        for call in (
            lambda: mechanism.choose(utilities=utilities, noise=NOISE),
            lambda: mechanism.weights(utilities),
            lambda: mechanism.choose_several(utilities=utilities, count=1, noise=NOISE),
        ):
            with pytest.raises(InvalidArgument) as refusal:
                call()
            assert refusal.value.argument == "utilities"

    @pytest.mark.parametrize(
        "base",
        [[1], [1, 2, 3], [1, -1], [0, 0], [0.5, 0.5], [2**21, 1], [2**63, 2**63], [2**70, 1]],
    )
    def test_unusable_bases_are_refused(self, base: list[Any]) -> None:
        with pytest.raises(InvalidArgument) as refusal:
            ExponentialMechanism(epsilon=1.0).choose(
                utilities=np.array([0.1, 0.2]), noise=NOISE, base=base
            )
        assert refusal.value.argument == "base"

    @pytest.mark.parametrize("count", [-1, 0, 3])
    def test_unusable_counts_are_refused(self, count: int) -> None:
        with pytest.raises(InvalidArgument) as refusal:
            ExponentialMechanism(epsilon=1.0).choose_several(
                utilities=np.array([0.1, 0.2]), count=count, noise=NOISE
            )
        assert refusal.value.argument == "count"

    @pytest.mark.parametrize(
        ("argument", "values"),
        [
            ("epsilon", [0.0, -1.0, 1e-10, np.nan, np.inf, 2000.0]),
            ("sensitivity", [0.0, -1.0, np.nan, np.inf]),
            ("lower", [np.nan, -np.inf]),
            ("upper", [0.0, -1.0, np.nan, np.inf, 5e-324]),
            ("steps", [0, -1, 2**20 + 1]),
        ],
    )
    def test_unusable_parameters_are_refused(self, argument: str, values: list[float]) -> None:
        for value in values:
            with pytest.raises(InvalidArgument) as refusal:
                ExponentialMechanism(**{"epsilon": 1.0, argument: value})
            assert refusal.value.argument == argument


class TestShortlist:
    @pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 0.1, 1.0, 7.0, 50.0, 100.0])
    @pytest.mark.parametrize("size", [1, 2, 3, 20])
    def test_the_ratio_is_at_most_epsilon_and_nearly_it(self, epsilon: float, size: int) -> None:
        mechanism = ShortlistResponse(epsilon=epsilon)
        rows = [mechanism.weights(best=best, size=size) for best in range(size)]
        assert len({sum(row) for row in rows}) == 1
        worst = max(
            Fraction(first[arm], second[arm]) for first in rows for second in rows for arm in [0]
        )
        assert not exceeds_exp(worst, decimal(epsilon))
        if size > 1:
            assert exceeds_exp(worst, decimal(epsilon) * Fraction(999_999, 1_000_000))

    @pytest.mark.parametrize("epsilon", [1e-6, 1.0, 60.0])
    @pytest.mark.parametrize("best", [0, 1, 3])
    def test_what_is_drawn_is_what_is_weighed(self, epsilon: float, best: int) -> None:
        mechanism = ShortlistResponse(epsilon=epsilon)
        seen = distribution(lambda noise: mechanism.choose(best=best, size=4, noise=noise).value)
        weights = mechanism.weights(best=best, size=4)
        assert set(seen) == {0, 1, 2, 3}
        for index, probability in seen.items():
            expected = Fraction(weights[index], sum(weights))
            assert abs(probability / expected - 1) <= Fraction(1, 2**65)
            stated = mechanism.probability(is_best=index == best, size=4)
            assert stated == pytest.approx(float(expected), rel=1e-15)

    def test_probabilities_are_the_textbook_ones(self) -> None:
        mechanism = ShortlistResponse(epsilon=np.log(3.0))
        assert mechanism.probability(is_best=True, size=4) == pytest.approx(0.5)
        assert mechanism.probability(is_best=False, size=4) == pytest.approx(1 / 6)

    def test_a_shortlist_of_one_is_answered_and_charged(self) -> None:
        released = ShortlistResponse(epsilon=0.5).choose(best=0, size=1, noise=NOISE)
        assert (released.value, released.event) == (0, RandomisedResponse(0.5))
        assert ShortlistResponse(epsilon=0.5).probability(is_best=True, size=1) == 1.0

    def test_frequencies_follow_the_probabilities(self) -> None:
        # False alarm below 1e-9; rejects an epsilon 30% off.
        mechanism = ShortlistResponse(epsilon=1.0)
        drawn = [mechanism.choose(best=2, size=5, noise=NOISE).value for _ in range(10_000)]
        counts = np.bincount(drawn, minlength=5)
        for factor, fits in ((1.0, True), (1.3, False), (0.7, False)):
            weights = ShortlistResponse(epsilon=factor).weights(best=2, size=5)
            shares = np.array([weight / sum(weights) for weight in weights])
            assert (entropy_evidence(counts, shares) < ALARM) is fits

    def test_a_list_is_composed_of_single_answers(self) -> None:
        mechanism = ShortlistResponse(epsilon=1.0)
        ranking = (2, 0, 1)
        released = mechanism.choose_several(ranking=ranking, count=2, noise=NOISE)
        assert released.event == Repeated(RandomisedResponse(1.0), 2)
        seen = distribution(
            lambda noise: mechanism.choose_several(ranking=ranking, count=2, noise=noise).value
        )
        assert set(seen) == set(permutations(range(3), 2))
        for chosen, probability in seen.items():
            shares = mechanism.propensities(ranking=ranking, chosen=chosen)
            assert float(probability) == pytest.approx(shares[0] * shares[1], rel=1e-14)

    def test_a_list_loses_at_most_what_its_draws_lose(self) -> None:
        mechanism = ShortlistResponse(epsilon=0.7)

        def lists(ranking: tuple[int, ...]) -> dict[Any, Fraction]:
            return distribution(
                lambda noise: mechanism.choose_several(ranking=ranking, count=2, noise=noise).value
            )

        rows = [lists(ranking) for ranking in permutations(range(3))]
        worst = max(p[chosen] / q[chosen] for p in rows for q in rows for chosen in p)
        assert not exceeds_exp(worst, 2 * decimal(0.7))
        # Charging for one draw only would be noticed.
        assert exceeds_exp(worst, decimal(0.7) * Fraction(13, 10))

    def test_a_whole_list_is_a_permutation(self) -> None:
        mechanism = ShortlistResponse(epsilon=30.0)
        ranking = (3, 1, 0, 2)
        # At this epsilon the ranking itself comes out, but for one in 10**12.
        assert mechanism.choose_several(ranking=ranking, count=4, noise=NOISE).value == ranking

    @pytest.mark.parametrize(
        ("argument", "call"),
        [
            ("best", lambda m: m.choose(best=3, size=3, noise=NOISE)),
            ("best", lambda m: m.choose(best=-1, size=3, noise=NOISE)),
            ("best", lambda m: m.weights(best=3, size=3)),
            ("size", lambda m: m.choose(best=0, size=0, noise=NOISE)),
            ("size", lambda m: m.choose(best=0, size=2**31, noise=NOISE)),
            ("size", lambda m: m.probability(is_best=True, size=0)),
            ("ranking", lambda m: m.choose_several(ranking=[], count=1, noise=NOISE)),
            ("ranking", lambda m: m.choose_several(ranking=[0, 0], count=1, noise=NOISE)),
            ("ranking", lambda m: m.choose_several(ranking=[1, 2], count=1, noise=NOISE)),
            ("count", lambda m: m.choose_several(ranking=[0, 1], count=0, noise=NOISE)),
            ("count", lambda m: m.choose_several(ranking=[0, 1], count=3, noise=NOISE)),
            ("chosen", lambda m: m.propensities(ranking=[0, 1], chosen=[1, 1])),
        ],
    )
    def test_bad_arguments_are_named(
        self, argument: str, call: Callable[[ShortlistResponse], object]
    ) -> None:
        with pytest.raises(InvalidArgument) as refusal:
            call(ShortlistResponse(epsilon=1.0))
        assert refusal.value.argument == argument

    @pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-10, np.nan, np.inf, 101.0])
    def test_unusable_epsilons_are_refused(self, epsilon: float) -> None:
        with pytest.raises(InvalidArgument) as refusal:
            ShortlistResponse(epsilon=epsilon)
        assert refusal.value.argument == "epsilon"

    def test_as_much_is_done_for_the_best_as_for_another(self) -> None:
        mechanism = ShortlistResponse(epsilon=0.1)
        works = {
            steps_of(lambda best=best: mechanism.choose(best=best, size=10, noise=NOISE))
            for best in [*range(10)] * 20
        }
        assert len(works) == 1


def steps_of(call: Callable[[], object]) -> tuple[str, ...]:
    """Return every function entered, in Python and in C, while `call` runs: work, not time.

    Garbage is collected at any time, with callbacks of whoever wants to know: not meanwhile.
    """
    call()  # caches of imports and of numpy's dispatch fill here
    seen: list[str] = []

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            seen.append(frame.f_code.co_qualname)
        elif event == "c_call":
            seen.append(argument.__qualname__)

    before = sys.getprofile()
    gc.disable()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
        gc.enable()
    return tuple(seen)
