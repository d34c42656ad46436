"""Algorithm 1 as published, line by line."""

import math
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest

from discreet.research.published.p_dap import PublishedAdaptivePartition
from discreet.families.p_dap.cell import REWARD_STEPS
from discreet.families.p_dap.contract import Address, Decision, Deeper, Request, Vector, merge
from discreet.errors import InvalidArgument
from discreet.privacy.events import ExactRelease
from discreet.research.noise import SeededNoise

OWN, VENDORS = 3, 2
ARMS = OWN + 2 * VENDORS
HORIZON = 100
G1 = math.ceil(math.log(HORIZON))  # at level 0


def learner(**changes: object) -> PublishedAdaptivePartition:
    parameters: dict[str, object] = {
        "generation": b"g",
        "dimensions": 1,
        "arms": ARMS,
        "vendors": VENDORS,
        "base": 1_000.0,
        "horizon": HORIZON,
        "mode": "none",
    }
    return PublishedAdaptivePartition(**(parameters | changes))  # type: ignore[arg-type]


def cell(counts: Sequence[int], means: Sequence[float], arrivals: int | None = None) -> Vector:
    vector = np.zeros(1 + 2 * len(counts), dtype=np.int64)
    vector[0] = sum(counts) if arrivals is None else arrivals
    vector[1::2] = counts
    vector[2::2] = [round(n * mean * REWARD_STEPS) for n, mean in zip(counts, means, strict=True)]
    return vector


def decide(
    one: PublishedAdaptivePartition,
    vector: Vector,
    *,
    seed: int = 0,
    limit: int = 1,
    x: float = 0.3,
) -> Decision:
    request = Request(np.array([x]), np.arange(one.arms), limit)
    plan = one.plan(request=request)
    decision = one.decide(
        state={plan.reads[0]: vector}, plan=plan, request=request, noise=SeededNoise(seed)
    )
    assert isinstance(decision, Decision)
    return decision


def slot(one: PublishedAdaptivePartition, vector: Vector) -> int:
    return decide(one, vector).choices[0].slot


def test_exploration_goes_through_own_items_then_training_then_evaluation() -> None:
    one = learner()
    counts = [0] * ARMS
    order = []
    for _ in range(ARMS * G1):
        chosen = slot(one, cell(counts, [0.0] * ARMS))
        order.append(chosen)
        counts[chosen] += 1
    # Lines 4 and 5; 6 and 7 (the training slots are the last); 8 and 9.
    wanted = [0, 1, 2, 5, 6, 3, 4]
    assert order == [each for each in wanted for _ in range(G1)]


@pytest.mark.parametrize(
    ("means", "chosen"),
    [
        ([0.2, 0.9, 0.1, 0.5, 0.8, 0, 0], 1),  # an own item is best
        ([0.2, 0.7, 0.1, 0.5, 0.8, 0, 0], 4),  # the second vendor is
        ([0.2, 0.8, 0.1, 0.5, 0.8, 0, 0], 1),  # a tie stays at home
        ([0.2, 0.7, 0.1, -30.0, 40.0, 0, 0], 4),  # noise may take a mean anywhere
        ([0.2, 0.7, 0.1, 0.5, 0.6, 9.0, 9.0], 1),  # training does not count in lines 15 and 16
    ],
)
def test_the_best_of_own_items_and_vendors_is_called(means: list[float], chosen: int) -> None:
    assert slot(learner(), cell([G1] * ARMS, means)) == chosen


def test_the_exponential_mechanism_is_the_papers() -> None:
    epsilon, similarity = 3.0, 0.5
    one = learner(mode="uniform", epsilon=epsilon, similarity=similarity, vendors=0, arms=3)
    means = np.array([0.1, 0.5, 0.9])
    vector = cell([50] * 3, means.tolist())
    sensitivity = 2**-similarity
    expected = np.exp(epsilon * means / (2 * sensitivity))
    expected /= expected.sum()
    found = {}
    for seed in range(60):
        choice = decide(one, vector, seed=seed).choices[0]
        found[choice.slot] = choice.propensity
    assert sorted(found) == [0, 1, 2]
    # The tables round utilities to a 4,096th and pay a little for it.
    assert [found[each] for each in range(3)] == pytest.approx(expected, rel=2e-3)


def test_a_vendors_propensity_is_that_of_drawing_an_own_item_that_it_beats() -> None:
    one = learner(mode="uniform", epsilon=1.0)
    means = [0.1, 0.5, 0.9, 0.6, 0.2, 0, 0]
    probabilities = {}
    for seed in range(60):
        choice = decide(one, cell([50] * ARMS, means), seed=seed).choices[0]
        probabilities[choice.slot] = choice.propensity
    assert sorted(probabilities) == [2, 3]  # own item 2 beats the best vendor, items 0 and 1 do not
    assert sum(probabilities.values()) == pytest.approx(1.0)


def test_geometric_privacy_grows_with_the_level() -> None:
    one = learner(mode="geometric", epsilon=0.5, similarity=1.0)
    assert [one.epsilon_at(level) for level in range(3)] == [0.5, 1.0, 2.0]
    assert learner(mode="uniform", epsilon=0.5).epsilon_at(2) == 0.5


def test_a_cell_splits_at_the_papers_threshold_and_control_grows_with_depth() -> None:
    one = learner(base=10.0, growth=2.0, similarity=0.5)
    root, below = Address(b"a", 0), Address(b"b", 1)
    assert not one.has_split(root, cell([0] * ARMS, [0] * ARMS, arrivals=9))
    assert one.has_split(root, cell([0] * ARMS, [0] * ARMS, arrivals=10))
    assert not one.has_split(below, cell([0] * ARMS, [0] * ARMS, arrivals=39))
    assert one.has_split(below, cell([0] * ARMS, [0] * ARMS, arrivals=40))
    assert one.control(1) == pytest.approx(2 * math.log(HORIZON))


def test_a_split_cell_is_remembered_and_its_child_read_at_once() -> None:
    one = learner(base=10.0)
    request = Request(np.array([0.3]), np.arange(ARMS))
    plan = one.plan(request=request)
    full = cell([0] * ARMS, [0] * ARMS, arrivals=10)
    step = one.decide(state={plan.reads[0]: full}, plan=plan, request=request, noise=SeededNoise(0))
    assert isinstance(step, Deeper)
    assert step.plan.reads[0].level == 1
    assert one.plan(request=request).reads == step.plan.reads


def test_the_uniform_rival_has_one_size_of_cells_for_ever() -> None:
    one = learner(uniform_level=2, base=1.0)
    full = cell([9] * ARMS, [0.5] * ARMS, arrivals=10**6)
    decision = decide(one, full)
    assert decision.address.level == 2
    assert not one.has_split(decision.address, full)
    places = {one.plan(request=Request(np.array([x]), np.arange(2))).reads for x in (0.1, 0.2, 0.3)}
    assert len(places) == 2


def test_every_answer_is_an_exact_release() -> None:
    for mode in ("uniform", "geometric", "none"):
        assert decide(learner(mode=mode), cell([9] * ARMS, [0.5] * ARMS)).events == (
            ExactRelease(),
        )


def test_only_what_vendors_say_may_be_noisy() -> None:
    one = learner()
    vector = cell([G1] * ARMS, [0.2, 0.3, 0.1, 0.5, 0.8, 0, 0])
    forwarded = decide(one, vector)
    assert forwarded.choices[0].slot == 4
    told = merge(state=vector, update=one.learn(decision=forwarded, choice=0, reward=-12.5))
    assert told[2 + 2 * 4] - vector[2 + 2 * 4] == round(-12.5 * REWARD_STEPS)
    assert told[0] == vector[0] + 1
    own = decide(one, cell([G1] * ARMS, [0.9, 0.3, 0.1, 0.5, 0.8, 0, 0]))
    with pytest.raises(InvalidArgument, match="reward"):
        one.learn(decision=own, choice=0, reward=-12.5)
    with pytest.raises(InvalidArgument, match="reward"):
        one.learn(decision=forwarded, choice=0, reward=math.nan)


def test_a_list_holds_own_items_only() -> None:
    slots = [
        each.slot for each in decide(learner(), cell([9] * ARMS, [0.5] * ARMS), limit=9).choices
    ]
    assert sorted(slots) == [0, 1, 2]


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"vendors": 4}, "vendors"),
        ({"vendors": -1}, "vendors"),
        ({"mode": "some"}, "mode"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"lipschitz": math.inf}, "lipschitz"),
        ({"similarity": -1.0}, "similarity"),
        ({"horizon": 1}, "horizon"),
        ({"uniform_level": 99}, "uniform_level"),
        ({"arms": -1}, "arms"),
    ],
)
def test_parameters_that_cannot_be_are_named(changes: dict[str, object], argument: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        learner(**changes)
    assert refused.value.argument == argument


def test_the_server_cannot_even_import_a_published_reading() -> None:
    code = (
        "import sys, discreet.app, discreet.serving, discreet.preparation; "
        "print([name for name in sys.modules if 'published' in name or 'simulation' in name])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert shown.stdout.strip() == "[]", shown.stderr
