"""Worlds of a mechanism: right losses for honest ones, and no way to underpay."""

import math
from fractions import Fraction

from discreet.audit.claims import AuditRun
from discreet.audit.examine_worlds import (
    World,
    enumerate_pairs,
    exact_claims,
    examine_choice_by_sampling,
    examine_epsilon,
    examine_frequencies,
    examine_rho,
)
from discreet.privacy.choice import ShortlistResponse
from discreet.privacy.draw import draw_index
from discreet.privacy.events import ExponentialChoice, PrivacyEvent, RandomisedResponse, Released
from discreet.privacy.noise import NoiseSource
from discreet.research.noise import SeededNoise


def _world(weights: list[int], event: PrivacyEvent) -> World:
    def release(noise: NoiseSource) -> Released[int]:
        return Released(draw_index(weights, noise), event)

    return release


def _pair(event: PrivacyEvent) -> dict[str, World]:
    """Two worlds whose loss is log 3 in one direction and log 3 in the other."""
    return {"a": _world([3, 1], event), "b": _world([1, 3], event)}


def test_a_charge_above_the_loss_holds_and_one_below_does_not() -> None:
    enough = enumerate_pairs(_pair(RandomisedResponse(1.1)))
    found = examine_epsilon(enough)
    assert found.holds
    assert abs(found.measured - math.log(3)) < 1e-12
    assert not examine_epsilon(enumerate_pairs(_pair(RandomisedResponse(1.09)))).holds


def test_the_same_release_holds_as_pure_and_not_as_bounded_range() -> None:
    assert examine_rho(enumerate_pairs(_pair(RandomisedResponse(1.1)))).holds
    assert not examine_rho(enumerate_pairs(_pair(ExponentialChoice(1.1)))).holds


def test_a_price_that_depends_on_the_data_never_holds() -> None:
    worlds = {
        "a": _world([1, 1], RandomisedResponse(5.0)),
        "b": _world([1, 1], RandomisedResponse(6.0)),
    }
    found = examine_epsilon(enumerate_pairs(worlds))
    assert not found.holds
    assert found.measured == math.inf


def test_only_neighbours_are_compared() -> None:
    event = RandomisedResponse(1.1)
    worlds = {0: _world([3, 1], event), 1: _world([1, 1], event), 2: _world([1, 3], event)}
    _, pairs = enumerate_pairs(worlds, lambda a, b: abs(hash(a) - hash(b)) == 1)
    assert len(pairs) == 2
    assert all(Fraction(1, 2) in (*p.values(), *q.values()) for p, q in pairs)


def test_both_columns_are_claimed_and_the_worlds_are_enumerated_once() -> None:
    calls = []

    def worlds() -> dict[str, World]:
        calls.append(1)
        return _pair(RandomisedResponse(1.1))

    claims = list(exact_claims("pair", worlds))
    assert [claim.name for claim in claims] == ["pair: epsilon", "pair: rho"]
    assert all(claim.examine(AuditRun(quick=True)).holds for claim in claims)
    assert calls == [1]


def test_sampled_frequencies_are_those_of_the_script() -> None:
    run = AuditRun(quick=True, noise=SeededNoise(1))
    honest = ShortlistResponse(epsilon=1.0)
    assert examine_frequencies(
        run, lambda noise: honest.choose(best=2, size=4, noise=noise), size=5_000
    ).holds


def test_an_outcome_that_the_script_never_showed_is_evidence_enough() -> None:
    run = AuditRun(quick=True, noise=SeededNoise(1))

    def world(noise: NoiseSource) -> Released[int]:
        return Released(draw_index([1, 1], noise) + 2 * isinstance(noise, SeededNoise), None)

    found = examine_frequencies(run, world, size=10)
    assert found.measured == math.inf
    assert not found.holds


def test_sampling_bounds_the_loss_from_below() -> None:
    run = AuditRun(quick=True, noise=SeededNoise(2))
    found = examine_choice_by_sampling(run, *_pair(RandomisedResponse(1.1)).values(), size=10_000)
    assert found.holds
    assert 0.8 < found.measured < math.log(3)
