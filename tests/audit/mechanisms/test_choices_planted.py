"""Broken choices are caught; the shipped ones pass the same examinations on the same inputs."""

from itertools import product
from typing import Any

import pytest

from discreet.audit.claims import AuditRun
from discreet.audit.examine_worlds import (
    enumerate_pairs,
    examine_choice_by_sampling,
    examine_epsilon,
    examine_frequencies,
    examine_rho,
)
from discreet.audit.mechanisms.choices import (
    FULL_RANGE,
    HALF_STEPS,
    LOPSIDED,
    STRADDLING,
    ranked_worlds,
    shortlist_worlds,
    utility_worlds,
    within,
)
from discreet.audit.mechanisms.choices_planted import MispricedPermuteAndFlip
from discreet.audit.mechanisms.votes import one_vote_apart, vote_worlds
from discreet.privacy.choice import ExponentialMechanism, ShortlistResponse
from discreet.privacy.events import PermuteAndFlip, Released
from discreet.privacy.truncated import TruncatedExponential
from discreet.research.noise import SeededNoise

ONE = ShortlistResponse(epsilon=1.0)


@pytest.mark.parametrize(
    ("vectors", "sensitivity", "steps"),
    [(FULL_RANGE, 1.0, 4096), (STRADDLING, 0.25, 10), (HALF_STEPS, 0.25, 4)],
)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_shipped_mechanism_passes_where_the_broken_ones_fail(
    vectors: Any, sensitivity: float, steps: int, epsilon: float
) -> None:
    mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity, steps=steps)
    worlds = utility_worlds(mechanism, vectors, base=LOPSIDED[: len(vectors[0])])
    assert examine_epsilon(enumerate_pairs(worlds, within(sensitivity))).holds


def test_permute_and_flip_is_fine_at_its_own_price() -> None:
    planted = MispricedPermuteAndFlip(1.0)

    class Honest:
        def choose(self, **arguments: Any) -> Released[int]:
            return Released(planted.choose(**arguments).value, PermuteAndFlip(1.0))

    pairs = enumerate_pairs(utility_worlds(Honest(), product((0.0, 1.0), repeat=3)), within(1.0))
    assert examine_epsilon(pairs).holds
    assert examine_rho(pairs).holds


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("size", [2, 3])
def test_the_shipped_shortlist_passes_where_the_broken_ones_fail(epsilon: float, size: int) -> None:
    honest = ShortlistResponse(epsilon=epsilon)
    for worlds in (
        shortlist_worlds(honest, size=size),
        ranked_worlds(honest, size=size, count=2),
    ):
        pairs = enumerate_pairs(worlds)
        assert examine_epsilon(pairs).holds
        assert examine_rho(pairs).holds


def test_as_few_voters_as_were_promised_are_fine() -> None:
    rule = TruncatedExponential(objects=2, sharpness=6.0, uniform_share=0.1, survivors=4)
    worlds = vote_worlds(rule, objects=2, survivors=4)
    assert examine_epsilon(enumerate_pairs(worlds, one_vote_apart)).holds


def test_the_shipped_shortlist_passes_by_sampling() -> None:
    run = AuditRun(quick=True, noise=SeededNoise(9))
    worlds = shortlist_worlds(ONE, size=5)
    assert examine_frequencies(run, worlds[0], size=10_000).holds
    assert examine_choice_by_sampling(run, worlds[0], worlds[1], size=10_000).holds
