"""Many questions at once: what each row is answered is what it would be alone."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet.families.p_dap import memory as remembering
from discreet.families.p_dap.adaptive_partition import AdaptivePartition, CellPlan
from discreet.families.p_dap.adaptive_partition_many import plan_many
from discreet.families.p_dap.cell import REWARD_STEPS
from discreet.families.p_dap.contract import Decision, Deeper, Request
from discreet.research.noise import SeededNoise
from tests.families.p_dap.many import (
    ARMS,
    EVERY,
    Best,
    ask_all,
    clustered,
    decide_rows,
    learner,
    learner_of,
    taught,
)
from tests.families.p_dap.playing import Played

MODES = pytest.mark.parametrize("mode", ["uniform", "geometric"])


@MODES
@pytest.mark.parametrize("survey", [False, True], ids=["cold", "surveyed"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("available", [EVERY, np.array([0, 2, 3])], ids=["all", "some"])
def test_a_row_is_decided_as_it_would_be_alone(
    mode: Any, survey: bool, seed: int, available: Any
) -> None:
    """The same cell, the same best arm, and the same shortfall; or the same step further down."""
    many, single = (taught(seed, survey=survey, mode=mode) for _ in range(2))
    rounds = 0
    contexts = np.concatenate([clustered(seed, 40, 2), np.zeros((1, 2)), np.ones((1, 2))])
    for _ in range(12):
        requests = [Request(context, available) for context in contexts]
        plans = [learner_of(single).plan(request=request) for request in requests]
        _, decided = ask_all(many, contexts, available, Best())
        rounds += 1
        for one, plan, request in zip(decided, plans, requests, strict=True):
            alone = single.learner.decide(
                state=single.read(plan), plan=plan, request=request, noise=Best()
            )
            if isinstance(one, Deeper):
                assert isinstance(alone, Deeper)
                assert (one.plan.reads, one.plan.events) == (alone.plan.reads, alone.plan.events)
                assert isinstance(one.plan, CellPlan)
                assert isinstance(alone.plan, CellPlan)
                assert np.array_equal(one.plan.prior, alone.plan.prior)
                continue
            assert isinstance(alone, Decision)
            assert one.address == alone.address
            assert [choice.slot for choice in one.choices] == [alone.choices[0].slot]
            assert one.choices[0].propensity == pytest.approx(alone.choices[0].propensity, 1e-12)
            assert one.estimated_regret == pytest.approx(alone.estimated_regret, abs=1e-12)
            assert (one.events, one.personalised) == (alone.events, alone.personalised)
        noted, noted_alone = learner_of(many).memory, learner_of(single).memory
        assert noted.whole.keys() == noted_alone.whole.keys()
        assert noted.split.keys() == noted_alone.split.keys()
        if not any(isinstance(one, Deeper) for one in decided):
            break
    assert rounds <= 2 if survey else rounds > 2
    assert len({one.address.level for one in decided if isinstance(one, Decision)}) > 2
    slots = {one.choices[0].slot for one in decided if isinstance(one, Decision)}
    assert len(slots) > 1  # otherwise there would be nothing to mix up


def test_whatever_a_cell_has_seen_its_best_arm_is_the_same() -> None:
    """Cells whose arms are close: how much each is flattered decides between them."""
    rng = np.random.default_rng(8)
    one, context = learner(dimensions=1, base=1e6), np.array([0.3])
    root = one.partition.route(context).address(0)
    best = set()
    for _ in range(400):
        counts = rng.integers(0, 30, ARMS)
        sums = (counts * rng.uniform(0.4, 0.6, ARMS) * REWARD_STEPS).astype(np.int64)
        vector = np.column_stack([counts, sums]).ravel()
        played = Played(one, {root: np.concatenate([rng.integers(0, 4, 1), vector])})
        _, [many] = ask_all(played, context[np.newaxis], EVERY, Best())
        _, alone = played.decide(Request(context, EVERY), Best())
        assert isinstance(many, Decision)
        assert many.choices[0].slot == alone.choices[0].slot
        assert many.estimated_regret == pytest.approx(alone.estimated_regret, abs=1e-12)
        best.add(alone.choices[0].slot)
    assert best == set(range(ARMS))


def test_vectors_of_fewer_and_of_more_arms_are_read_as_they_are_alone() -> None:
    """Items are added while other workers still write, or already do."""
    grown = taught(2, arms=6)
    for arms in (4, 9):
        many, single = (Played(learner(arms=arms), dict(grown.state)) for _ in range(2))
        many.survey()
        single.survey()
        every, contexts = np.arange(arms), clustered(2, 30, 2)
        _, decided = ask_all(many, contexts, every, Best())
        for one, context in zip(decided, contexts, strict=True):
            if isinstance(one, Deeper):
                continue
            _, alone = single.decide(Request(context, every), Best())
            assert (one.address, one.choices[0].slot) == (alone.address, alone.choices[0].slot)


def test_rows_are_answered_in_the_order_in_which_they_are_named_and_no_others() -> None:
    played = taught(3)
    contexts = clustered(3, 12, 2)
    plan, decided = ask_all(played, contexts, EVERY, Best())
    some = decide_rows(played, plan, Best(), rows=[7, 2, 11])
    assert some == [decided[row] for row in (7, 2, 11)]
    assert decide_rows(played, plan, Best(), rows=[]) == []


def test_a_survey_between_plan_and_decision_changes_neither_price_nor_draw() -> None:
    played = taught(3, mode="geometric")
    learner_ = learner_of(played)
    contexts = clustered(3, 20, 2)
    plan, before = ask_all(played, contexts, EVERY, SeededNoise(1))
    learner_.survey(cells={})
    assert learner_.memory.outlook is not plan.outlook
    assert decide_rows(played, plan, SeededNoise(1)) == before


def test_as_many_bits_are_asked_for_wherever_the_rows_lie() -> None:
    """Rows of one level share their requests, but never their bits."""
    played = taught(4)
    contexts = clustered(4, 30, 2)
    ask_all(played, contexts, EVERY, Best())
    together = np.repeat(contexts[:1], 30, axis=0)
    for some in (contexts, together):
        noise = Best()
        _, decided = ask_all(played, some, EVERY, noise)
        assert not any(isinstance(one, Deeper) for one in decided)
        assert sum(noise.asked) == 30 * (32 + 320)


def test_what_is_remembered_stays_bounded_whoever_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembering, "MOST_WHOLE", 16)
    played = taught(5, lessons=600)
    memory = learner_of(played).memory
    memory.most_split = 8
    for seed in range(6):
        ask_all(played, clustered(seed, 80, 2), EVERY, SeededNoise(seed))
        assert len(memory.split) <= 8
        assert len(memory.whole) <= 16
    assert (len(memory.split), len(memory.whole)) == (8, 16)
    assert set(memory.odds) <= set(range(learner_of(played).partition.deepest + 1))


@MODES
def test_answers_in_a_batch_follow_the_law_of_their_cell(mode: Any) -> None:
    """4 places, 8,000 answers each; a count within 5.5 deviations (false alarm below 1e-5).

    A share of 0.05 or more that is off by 30% would be further off than that.
    """
    played = taught(6, mode=mode, exploration_rate=0.5)
    places = np.array([[0.01, 0.02], [0.3, 0.9], [0.9, 0.1], [0.6, 0.6]])
    laws = []
    for place in places:
        plan = learner_of(played).plan(request=Request(place, EVERY))
        found = learner_of(played).find(
            state=played.read(plan), plan=plan, request=Request(place, EVERY)
        )
        assert not isinstance(found, Deeper)
        laws.append(found.mixture.law())
    counts = np.zeros((len(places), ARMS))
    noise, draws = SeededNoise(7), 8_000
    contexts = np.tile(places, (400, 1))
    for _ in range(draws // 400):
        _, decided = ask_all(played, contexts, EVERY, noise)
        for place, one in zip(itertools.cycle(range(len(places))), decided, strict=False):
            assert isinstance(one, Decision)
            choice = one.choices[0]
            counts[place, choice.slot] += 1
            assert choice.propensity == pytest.approx(float(laws[place][choice.slot]), 1e-12)
    for place, law in enumerate(laws):
        for slot, share in law.items():
            sigma = (draws * float(share) * (1 - float(share))) ** 0.5
            assert abs(counts[place, slot] - draws * float(share)) <= 5.5 * sigma
            assert share < 0.05 or 5.5 * sigma < 0.3 * draws * share
        assert sum(share >= 0.05 for share in law.values()) > 1


def test_a_cell_that_feedback_has_split_is_no_longer_read_alone() -> None:
    learner = AdaptivePartition(generation=b"g", dimensions=1, arms=3, base=5.0)
    root = learner.partition.route(np.array([0.2])).address(0)
    learner.memory.outlook = replace(learner.memory.outlook, depth=1)
    learner.memory.note_whole(root.key)
    contexts, offer = np.array([[0.2]]), np.arange(3)
    for seen, reads in ((4, 1), (5, 2)):
        learner.note_arrivals(root, seen)
        [row] = plan_many(learner, contexts=contexts, available=offer).reads
        assert len(row) == reads
