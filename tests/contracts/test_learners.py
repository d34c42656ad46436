"""Promises that every learner keeps, whichever family it is of.

Learners are found by looking through `discreet.families`: a class that can plan, decide, learn and
survey is one, and must have examples below before these tests pass.
"""

import importlib
import inspect
import math
import pickle
import pkgutil
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import discreet.families
from discreet.families.p_dap.adaptive_partition import AdaptivePartition
from discreet.research.published.p_dap import PublishedAdaptivePartition
from discreet.research.published.p_dap_others import PublishedForOthers
from discreet.families.p_dap.contract import (
    Address,
    Decision,
    Learner,
    Request,
    Update,
    merge,
)
from discreet.errors import InvalidArgument, NothingToRecommend
from discreet.privacy.accountants import BasicAccountant
from discreet.privacy.charges import UNLIMITED
from discreet.privacy.events import Composed
from discreet.research.noise import SeededNoise
from tests.families.p_dap.playing import NOTHING, Played

ARMS = 5
METHODS = ("plan", "decide", "decide_without", "learn", "survey")
COMMON: dict[str, Any] = {"generation": b"contract", "dimensions": 2, "arms": ARMS, "base": 12.0}

Make = Callable[..., Learner]


def _of(family: type, **parameters: Any) -> Make:
    def make(**changes: Any) -> Learner:
        learner: Learner = family(**(COMMON | parameters | changes))
        return learner

    return make


EXAMPLES: dict[type, dict[str, Make]] = {
    AdaptivePartition: {
        mode: _of(AdaptivePartition, mode=mode, exploration_rate=0.3)
        for mode in ("uniform", "geometric", "none")
    },
    PublishedAdaptivePartition: {
        mode: _of(PublishedAdaptivePartition, mode=mode, horizon=3)
        for mode in ("uniform", "geometric", "none")
    },
    PublishedForOthers: {"for-others": _of(PublishedForOthers, horizon=3)},
}
MAKERS = {
    f"{family.__name__}-{name}": make
    for family, examples in EXAMPLES.items()
    for name, make in examples.items()
}
EXACT = {name: make for name, make in MAKERS.items() if "ForOthers" not in name}
"""Algorithm 2 learns rewards that had noise added to them; all others learn exact ones."""
EVERY = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
SERVED = pytest.mark.parametrize("mode", ["uniform", "geometric"])


def found_by_reflection() -> set[type]:
    """Return every concrete class in the package that speaks the contract."""
    learners = set()
    for module in pkgutil.iter_modules(discreet.families.__path__):
        name = f"{discreet.families.__name__}.{module.name}"
        for _, thing in inspect.getmembers(importlib.import_module(name), inspect.isclass):
            spoken = all(callable(getattr(thing, method, None)) for method in METHODS)
            if spoken and thing is not Learner and thing.__module__.startswith(name):
                learners.add(thing)
    return learners


def ask(*context: float, arms: int = ARMS, limit: int = 1) -> Request:
    return Request(np.array(context or (0.3, 0.8)), np.arange(arms), limit)


PLACES = ((0.1, 0.1), (0.1, 0.9), (0.9, 0.1), (0.95, 0.95), (0.6, 0.6), (1.0, 0.0), (0.3, 0.8))


def taught(make: Make, *, steps: int = 240, seed: int = 5) -> Played:
    """Return a learner whose cells have split unevenly and disagree about the best arm."""
    played: Played = pickle.loads(_lesson(make, steps, seed))
    return played


@cache
def _lesson(make: Make, steps: int, seed: int) -> bytes:
    return pickle.dumps(teach(make(), steps=steps, seed=seed))


def teach(learner: Learner, *, steps: int, seed: int) -> Played:
    played = Played(learner)
    rng = np.random.default_rng(seed)
    noise = SeededNoise(seed)
    for step in range(steps):
        # The corner near (1, 1) gets most of the traffic, and so the deepest cells.
        x, y = rng.uniform(0.75, 1.0, 2) if step % 3 else rng.uniform(0.0, 1.0, 2)
        _, decision = played.decide(ask(float(x), float(y)), noise)
        favourite = int(2 * x) + 2 * int(2 * y)
        played.learn(decision, 0.9 if decision.choices[0].slot == favourite else 0.1)
        if step % 40 == 39:
            played.survey()
    return played


def test_every_learner_has_examples() -> None:
    assert found_by_reflection() == set(EXAMPLES)


@EVERY
class TestEveryLearner:
    def test_the_same_seed_gives_the_same_run(self, make: Make) -> None:
        one, other = (teach(make(), steps=120, seed=5) for _ in range(2))
        assert one.state.keys() == other.state.keys()
        assert all(np.array_equal(one.state[key], other.state[key]) for key in one.state)
        if isinstance(one.learner, AdaptivePartition):
            # And another seed another one, where there is chance at all.
            third = teach(make(), steps=120, seed=6)
            assert any(
                not np.array_equal(one.state[key], third.state.get(key, NOTHING))
                for key in one.state
            )

    def test_nothing_that_is_passed_in_is_changed(self, make: Make) -> None:
        played = taught(make)
        for vector in played.state.values():
            vector.setflags(write=False)
        request = ask(limit=2)
        request.context.setflags(write=False)
        request.available.setflags(write=False)
        before = {address: vector.copy() for address, vector in played.state.items()}
        plan, decision = played.decide(request, SeededNoise(1))
        played.learner.decide_without(plan=plan, request=request, noise=SeededNoise(1))
        update = played.learner.learn(decision=decision, choice=0, reward=1.0)
        merge(state=played.state.get(update.address, NOTHING), update=update)
        played.survey()
        assert all(np.array_equal(before[key], played.state[key]) for key in before)

    def test_it_pays_what_was_planned_whatever_the_context(self, make: Make) -> None:
        played = taught(make)
        for limit in (1, 2, ARMS, ARMS + 3):
            seen = set()
            levels = set()
            for place in PLACES:
                plan, decision = played.decide(ask(*place, limit=limit), SeededNoise(limit))
                assert decision.events == plan.events
                assert decision.personalised == bool(decision.events)
                seen.add(plan.events)
                levels.add(decision.address.level)
            assert len(seen) == 1
            assert len(levels) > 1, "contexts in cells of one depth would prove nothing"

    def test_one_arm_costs_nothing_and_none_cannot_be_answered(self, make: Make) -> None:
        played = taught(make)
        request = Request(np.array([0.3, 0.8]), np.array([3]))
        plan, decision = played.decide(request, SeededNoise(1))
        assert plan.events == decision.events == ()
        assert decision.choices[0].slot == 3
        assert decision.choices[0].propensity == 1.0
        assert not decision.personalised
        with pytest.raises(NothingToRecommend):
            played.learner.plan(request=Request(np.array([0.3, 0.8]), np.array([], dtype=np.intp)))

    def test_an_empty_catalogue_can_be_held(self, make: Make) -> None:
        learner = make(arms=0)
        learner.survey(cells={})
        with pytest.raises(NothingToRecommend):
            learner.plan(request=ask(arms=0))

    @settings(max_examples=40)
    @given(data=st.data())
    def test_answers_are_available_different_and_no_more_than_asked_for(
        self, make: Make, data: st.DataObject
    ) -> None:
        played = taught(make, steps=data.draw(st.sampled_from([0, 30, 90])))
        slots = sorted(data.draw(st.sets(st.integers(0, ARMS - 1), min_size=1)))
        limit = data.draw(st.integers(1, ARMS + 2))
        context = data.draw(st.tuples(st.floats(0, 1), st.floats(0, 1)))
        request = Request(np.array(context), np.array(slots, dtype=np.intp), limit)
        noise = SeededNoise(data.draw(st.integers(0, 99)))
        plan, decision = played.decide(request, noise)
        degraded = played.learner.decide_without(plan=plan, request=request, noise=noise)
        for answer in (decision, degraded):
            chosen = [choice.slot for choice in answer.choices]
            assert len(chosen) == len(set(chosen)) == min(limit, len(slots))
            assert set(chosen) <= set(slots)
            assert all(0 < choice.propensity <= 1 for choice in answer.choices)

    def test_propensities_are_the_frequencies_and_sum_to_one(self, make: Make) -> None:
        """Chi-square at false alarm 1e-6 over 3,000 draws; it sees a 30% error in any share."""
        played = taught(make)
        draws = 3_000
        for place in ((0.3, 0.8), (0.95, 0.95)):
            counted: Counter[int] = Counter()
            propensity: dict[int, float] = {}
            noise = SeededNoise(17)
            for _ in range(draws):
                _, decision = played.decide(ask(*place), noise)
                [choice] = decision.choices
                counted[choice.slot] += 1
                told = propensity.setdefault(choice.slot, choice.propensity)
                assert told == choice.propensity
            assert math.isclose(sum(propensity.values()), 1.0, rel_tol=1e-9)

            def statistic(shares: dict[int, float], counted: Counter[int] = counted) -> float:
                return sum(
                    (counted[slot] - draws * share) ** 2 / (draws * share)
                    for slot, share in shares.items()
                )

            limit = float(chi2.isf(1e-6, ARMS - 1))
            assert statistic(propensity) < limit
            if len(propensity) > 1:
                wrong = dict(propensity)
                top = max(wrong, key=lambda slot: wrong[slot])
                wrong[top] *= 0.7
                assert statistic(wrong) > limit

    def test_degraded_answers_ignore_the_client_and_cost_nothing(self, make: Make) -> None:
        played = taught(make)
        for limit in (1, 3):
            answers = set()
            for place in PLACES:
                request = ask(*place, limit=limit)
                plan = played.learner.plan(request=request)
                # Also under a plan that has gone all the way to its cell.
                played.decide(request, SeededNoise(0))
                for one in (plan, played.learner.plan(request=request)):
                    decision = played.learner.decide_without(
                        plan=one, request=request, noise=SeededNoise(23)
                    )
                    assert decision.events == ()
                    assert not decision.personalised
                    answers.add(decision.choices)
            assert len(answers) == 1

    def test_it_answers_the_same_after_pickling_and_without_its_memory(self, make: Make) -> None:
        played = taught(make)
        fresh = make()
        fresh.survey(cells=played.state)
        played.survey()
        for other in (pickle.loads(pickle.dumps(played.learner)), fresh):
            for place in PLACES:
                for seed in range(6):
                    one = played.decide(ask(*place, limit=2), SeededNoise(seed))
                    two = Played(other, played.state).decide(
                        ask(*place, limit=2), SeededNoise(seed)
                    )
                    assert one[1].choices == two[1].choices
                    assert one[1].address == two[1].address
                    assert one[1].events == two[1].events

    def test_learning_is_one_observation_in_the_cell_of_the_decision(self, make: Make) -> None:
        played = taught(make)
        _, decision = played.decide(ask(limit=3), SeededNoise(2))
        for choice, chosen in enumerate(decision.choices):
            update = played.learner.learn(decision=decision, choice=choice, reward=0.5)
            assert update.address == decision.address
            assert update.increments == (
                (0, 1),
                (1 + 2 * chosen.slot, 1),
                (2 + 2 * chosen.slot, 2**19),
            )

    @pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
    def test_a_reward_that_is_no_number_is_refused(self, make: Make, reward: float) -> None:
        played = Played(make())
        _, decision = played.decide(ask(), SeededNoise(0))
        with pytest.raises(InvalidArgument, match=r"^reward: "):
            played.learner.learn(decision=decision, choice=0, reward=reward)

    @pytest.mark.parametrize("choice", [-1, 1])
    def test_feedback_about_what_was_not_answered_is_refused(self, make: Make, choice: int) -> None:
        played = Played(make())
        _, decision = played.decide(ask(), SeededNoise(0))
        with pytest.raises(InvalidArgument, match=r"^choice: "):
            played.learner.learn(decision=decision, choice=choice, reward=0.5)

    @pytest.mark.parametrize(
        ("context", "available", "limit", "argument"),
        [
            ((0.5,), (0, 1), 1, "context"),
            ((0.5, math.nan), (0, 1), 1, "context"),
            ((0.5, math.inf), (0, 1), 1, "context"),
            ((0.5, -1e-9), (0, 1), 1, "context"),
            ((0.5, 1.0000001), (0, 1), 1, "context"),
            ((0.5, 0.5), (0, ARMS), 1, "available"),
            ((0.5, 0.5), (-1, 2), 1, "available"),
            ((0.5, 0.5), (2, 1), 1, "available"),
            ((0.5, 0.5), (1, 1), 1, "available"),
            ((0.5, 0.5), (0, 1), 0, "limit"),
        ],
    )
    def test_a_question_that_cannot_be_used_names_what_is_wrong(
        self,
        make: Make,
        context: tuple[float, ...],
        available: tuple[int, ...],
        limit: int,
        argument: str,
    ) -> None:
        request = Request(np.array(context), np.array(available, dtype=np.intp), limit)
        with pytest.raises(InvalidArgument) as refused:
            make().plan(request=request)
        assert refused.value.argument == argument

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("generation", b""),
            ("dimensions", 0),
            ("arms", -1),
            ("segments", 1),
            ("base", 0.5),
            ("base", math.nan),
            ("growth", 0.0),
            ("similarity", math.inf),
        ],
    )
    def test_a_parameter_that_cannot_be_used_is_named(
        self, make: Make, name: str, value: object
    ) -> None:
        with pytest.raises(InvalidArgument) as refused:
            make(**{name: value})
        assert refused.value.argument == name

    def test_arms_that_were_added_later_are_just_new(self, make: Make) -> None:
        played = taught(make)
        grown = Played(make(arms=ARMS + 2), played.state)
        grown.survey()
        request = Request(np.array([0.3, 0.8]), np.arange(ARMS + 2))
        _, decision = grown.decide(request, SeededNoise(3))
        grown.learn(decision, 1.0)
        # And a worker that has not heard of them yet can still read what was written.
        played.survey()
        _, decision = played.decide(ask(), SeededNoise(3))
        assert decision.choices[0].slot < ARMS


@pytest.mark.parametrize("reward", [-0.1, 1.1])
@pytest.mark.parametrize("make", EXACT.values(), ids=EXACT.keys())
def test_an_exact_reward_lies_between_0_and_1(make: Make, reward: float) -> None:
    played = Played(make())
    _, decision = played.decide(ask(), SeededNoise(0))
    with pytest.raises(InvalidArgument, match=r"^reward: "):
        played.learner.learn(decision=decision, choice=0, reward=reward)


updates = st.lists(
    st.builds(
        lambda pairs: Update(Address(b"a"), tuple(pairs)),
        st.lists(st.tuples(st.integers(0, 12), st.integers(-(2**40), 2**40)), max_size=4),
    ),
    max_size=8,
)


class TestMerging:
    @given(updates=updates, seed=st.integers(0, 2**32 - 1))
    def test_any_order_gives_the_same_sums(self, updates: list[Update], seed: int) -> None:
        shuffled = [updates[i] for i in np.random.default_rng(seed).permutation(len(updates))]
        one = two = NOTHING
        for update in updates:
            one = merge(state=one, update=update)
        for update in shuffled:
            two = merge(state=two, update=update)
        assert np.array_equal(one, two)

    @given(updates=updates, cut=st.integers(0, 8))
    def test_any_grouping_gives_the_same_sums(self, updates: list[Update], cut: int) -> None:
        whole = NOTHING
        for update in updates:
            whole = merge(state=whole, update=update)
        left = right = NOTHING
        for update in updates[:cut]:
            left = merge(state=left, update=update)
        for update in updates[cut:]:
            right = merge(state=right, update=update)
        joined = merge(
            state=left,
            update=Update(Address(b"a"), tuple((i, int(v)) for i, v in enumerate(right))),
        )
        assert np.array_equal(joined, whole)


class TestWhatCanBePaidFor:
    @SERVED
    @pytest.mark.parametrize("limit", [1, 2, ARMS])
    def test_the_served_modes_have_a_finite_price(self, mode: str, limit: int) -> None:
        played = taught(MAKERS[f"AdaptivePartition-{mode}"])
        plan = played.learner.plan(request=ask(limit=limit))
        charge = BasicAccountant().charge(Composed(plan.events))
        assert 0 < charge.nano_epsilon < UNLIMITED

    @pytest.mark.parametrize(
        "name", sorted(set(MAKERS) - {"AdaptivePartition-uniform", "AdaptivePartition-geometric"})
    )
    def test_nothing_else_can_be_paid_for(self, name: str) -> None:
        plan = MAKERS[name]().plan(request=ask())
        assert BasicAccountant().charge(Composed(plan.events)).nano_epsilon == UNLIMITED


def test_decisions_are_told_apart_from_degraded_ones() -> None:
    """A guard on the fixtures above: the served learner does personalise."""
    played = taught(MAKERS["AdaptivePartition-uniform"])
    decisions: list[Decision] = [played.decide(ask(*place), SeededNoise(1))[1] for place in PLACES]
    assert all(decision.personalised for decision in decisions)
