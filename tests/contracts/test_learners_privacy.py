"""The privacy of served answers, exactly: every pair of cells, in rationals, on a small state.

The audit makes the same comparison through the shipped draw (`discreet.audit.families.p_dap`). Here it
is made again with other arithmetic, from the integers that are drawn from, over more settings; and
it must say no to learners that are wrong in the ways that are easiest to be wrong in.
"""

import itertools
import math
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest

from discreet.families.p_dap.adaptive_partition import AdaptivePartition, Found
from discreet.audit.families.p_dap import changed
from discreet.families.p_dap.contract import Address, Choice, Decision, Deeper, Plan, Request
from discreet.families.p_dap.mixture import Mixture
from discreet.privacy.events import PrivacyEvent, RandomisedResponse, Repeated
from discreet.research.noise import SeededNoise
from tests.families.p_dap.many import ask_all
from tests.families.p_dap.playing import Played

ARMS = 5
Mode = Literal["uniform", "geometric"]
MODES = pytest.mark.parametrize("mode", ["uniform", "geometric"])


def find(played: Played, request: Request) -> tuple[Plan, Found]:
    """Return the cell of a request and the law of its answer."""
    assert isinstance(played.learner, AdaptivePartition)
    first: Plan = played.learner.plan(request=request)
    plan = first
    while isinstance(
        step := played.learner.find(state=played.read(plan), plan=plan, request=request), Deeper
    ):
        plan = step.plan
    return first, step


def taught(mode: Mode, **changes: Any) -> Played:
    """Return a learner whose quarters each have a favourite arm; one of them is split further."""
    parameters: dict[str, Any] = {"epsilon": 2.0, "exploration_rate": 0.3} | changes
    learner = AdaptivePartition(
        generation=b"g", dimensions=2, arms=ARMS, base=12.0, mode=mode, **parameters
    )
    played = Played(learner)
    rng = np.random.default_rng(5)
    for step in range(150):
        x, y = rng.uniform(0.5, 1.0, 2) if step % 5 == 0 else rng.uniform(0.0, 1.0, 2)
        request = Request(np.array([x, y]), np.arange(ARMS))
        address = find(played, request)[1].address
        favourite = int(2 * x) + 2 * int(2 * y)
        for arm in range(ARMS):
            decision = Decision(choices=(Choice(arm, 1.0),), address=address)
            played.learn(decision, float(arm == favourite))
    played.survey()
    return played


def exp_below(exponent: Fraction) -> Fraction:
    """Return a little less than e^exponent: a partial sum of its series of positive terms."""
    term = total = Fraction(1)
    for index in range(1, 80):
        term = term * exponent / index
        total += term
    return total


def charged(events: tuple[PrivacyEvent, ...]) -> Fraction:
    """Return the epsilon of a served plan, read without the accountants."""
    [event] = events
    times = 1
    if isinstance(event, Repeated):
        event, times = event.event, event.times
    assert isinstance(event, RandomisedResponse)
    return times * Fraction(event.epsilon)


Law = dict[tuple[int, ...], Fraction]


def law_of(mixture: Mixture, limit: int) -> Law:
    """Return the probability of every list, exactly."""
    laws: Law = {(): Fraction(1)}
    rest = {(): mixture}
    for _ in range(limit):
        longer: Law = {}
        for chosen, mass in laws.items():
            for slot, share in rest[chosen].law().items():
                if share:
                    longer[(*chosen, slot)] = mass * share
                    rest[(*chosen, slot)] = rest[chosen].without(slot)
        laws = longer
    return laws


def worst_ratio(laws: list[Law]) -> Fraction:
    """Return the largest ratio of one answer's probabilities, over all pairs of places."""
    answers = {answer for law in laws for answer in law}
    assert all(answers == law.keys() for law in laws), "an answer possible from one place only"
    return max(one[a] / two[a] for one in laws for two in laws for a in answers)


def mixtures(played: Played, limit: int = 1) -> tuple[list[Mixture], Fraction]:
    """Return the law of every cell that a grid of contexts lies in, and what all of them pay."""
    found: dict[Address, Mixture] = {}
    prices = set()
    for place in itertools.product(np.linspace(0.02, 0.98, 13), repeat=2):
        plan, cell = find(played, Request(np.array(place), np.arange(ARMS), limit))
        prices.add(plan.events)
        found[cell.address] = cell.mixture
    [events] = prices
    # Otherwise there would be nothing to tell apart.
    assert len({address.level for address in found}) > 1
    assert len({int(one.odds.ranking[one.best]) for one in found.values()}) > 2
    return list(found.values()), charged(events)


def laws(of: list[Mixture], limit: int = 1) -> list[Law]:
    return [law_of(mixture, limit) for mixture in of]


@MODES
@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("rate", [0.0, 0.02, 0.3])
def test_no_two_places_differ_by_more_than_the_charge(mode: Mode, limit: int, rate: float) -> None:
    cells, price = mixtures(taught(mode, exploration_rate=rate), limit)
    told = laws(cells, limit)
    assert all(sum(law.values()) == 1 for law in told)
    assert worst_ratio(told) <= exp_below(price)


def test_the_charge_is_the_loss_and_no_more() -> None:
    cells, price = mixtures(taught("uniform", exploration_rate=0.0))
    assert worst_ratio(laws(cells)) >= exp_below(price) * Fraction(999_999, 10**6)


@MODES
def test_a_smaller_catalogue_keeps_the_charge(mode: Mode) -> None:
    """Hidden and excluded arms change the shortlist, the same for everybody."""
    played = taught(mode)
    for available in itertools.combinations(range(ARMS), 3):
        told = []
        for place in itertools.product((0.1, 0.6, 0.9), repeat=2):
            request = Request(np.array(place), np.array(available, dtype=np.intp))
            plan, cell = find(played, request)
            told.append(law_of(cell.mixture, 1))
            assert told[-1].keys() == {(slot,) for slot in available}
        assert worst_ratio(told) <= exp_below(charged(plan.events))


@MODES
def test_propensities_are_the_exact_law(mode: Mode) -> None:
    noise = SeededNoise(31)
    for mixture in mixtures(taught(mode))[0]:
        law = mixture.law()
        for _ in range(40):
            choice = mixture.draw(noise)
            assert math.isclose(choice.propensity, float(law[choice.slot]), rel_tol=1e-12)


@MODES
def test_a_batch_answers_every_place_by_the_exact_law_of_its_cell(mode: Mode) -> None:
    """Whoever else is in the batch, and however many of them lie together."""
    played = taught(mode)
    places = np.array(list(itertools.product(np.linspace(0.02, 0.98, 13), repeat=2)))
    available = np.arange(ARMS)
    contexts = np.concatenate([places, places[::-1], np.repeat(places[:1], 9, axis=0)])
    told = [
        (found.address, found.mixture.law(), plan.events)
        for plan, found in (find(played, Request(place, available)) for place in contexts)
    ]
    noise, seen = SeededNoise(37), set()
    for _ in range(12):
        _, decided = ask_all(played, contexts, available, noise)
        for one, (address, law, events) in zip(decided, told, strict=True):
            assert isinstance(one, Decision)
            [choice] = one.choices
            assert (one.address, one.events) == (address, events)
            assert math.isclose(choice.propensity, float(law[choice.slot]), rel_tol=1e-12)
            seen.add((address, choice.slot))
    # Each of the four favourites was met in every cell, not only the best one.
    assert len(seen) >= 4 * len({address for address, _ in seen})


class TestPlantedFaults:
    """The same comparison, on learners that are wrong."""

    def test_exploration_that_looks_at_the_cell(self) -> None:
        cells, price = mixtures(taught("uniform"))
        planted = []
        for mixture in cells:
            weights = np.ones(ARMS, dtype=np.int64)
            weights[mixture.odds.ranking[mixture.best]] = 10**6
            planted.append(changed(mixture, curiosity=weights))
        assert worst_ratio(laws(planted)) > exp_below(price)

    def test_a_rate_of_exploration_that_looks_at_the_cell(self) -> None:
        cells, price = mixtures(taught("uniform"))
        planted = [changed(one, coin=2**31 if one.best else 2**22) for one in cells]
        assert worst_ratio(laws(planted)) > exp_below(price)

    def test_a_shortlist_that_looks_at_the_cell(self) -> None:
        cells, price = mixtures(taught("uniform"))
        planted = [changed(one, size=1 + one.best) for one in cells]
        assert worst_ratio(laws(planted)) > exp_below(price)

    def test_a_geometric_answer_charged_at_the_first_level(self) -> None:
        played = taught("geometric", exploration_rate=0.0)
        cells, price = mixtures(played)
        assert isinstance(played.learner, AdaptivePartition)
        first = Fraction(played.learner.epsilons[0])
        assert first < price
        assert worst_ratio(laws(cells)) > exp_below(first)

    def test_a_list_charged_as_one_answer(self) -> None:
        cells, price = mixtures(taught("uniform", exploration_rate=0.0), 2)
        assert worst_ratio(laws(cells, 2)) > exp_below(price / 2)
