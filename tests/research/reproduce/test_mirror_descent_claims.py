"""The claims of the paper on mirror descent, judged on accuracies that are known."""

from collections.abc import Mapping
from math import sqrt

import pytest

from discreet.research.reproduce.mirror_descent_claims import claims_of, regret_bound

LASSOS, TRUNCATIONS, COUNTS = (0.0, 5.0), (0.0, 2.0), (4, 8)


def verdicts(published: Mapping[object, float], regrets: dict[float | None, float]) -> list[str]:
    def accuracy(reading: str, other: dict[str, object]) -> float:
        value = next(iter(other.values()), None)
        return published.get(value, 0.8) if reading == "published" else 0.8

    found = claims_of(
        accuracy,
        regrets,
        lassos=LASSOS,
        truncations=TRUNCATIONS,
        counts=COUNTS,
        dimension=1_000,
        records=8_000,
        nodes=8,
    )
    return [claim.verdict for claim in found]


REGRETS: dict[float | None, float] = {1.0: 3_000.0, 10.0: 2_000.0, None: 1_000.0}


def test_an_algorithm_as_the_paper_says_holds() -> None:
    found = verdicts({0.0: 0.6, 5.0: 0.8}, REGRETS)
    assert found == ["holds"] * 6 + ["fails"]


def test_an_algorithm_that_learned_nothing_cannot_be_judged() -> None:
    chance = dict.fromkeys([None, 0.0, 5.0, 4, 8, "ring", "grid", "complete", "random"], 0.5)
    found = verdicts(chance, REGRETS)
    assert found[1:4] == ["not testable"] * 3


def test_numbers_against_the_paper_fail() -> None:
    found = verdicts({0.0: 0.8, 5.0: 0.8, 4: 0.8, 8: 0.7}, {1.0: 1.0, 10.0: 2.0, None: 1e9})
    assert [found[at] for at in (0, 2, 3, 5)] == ["fails"] * 4


def test_theorem_2_by_hand() -> None:
    learning, noise = regret_bound(epsilon=2.0, nodes=2, dimension=3, turns=4, lasso=1.0)
    assert learning == pytest.approx(400 * sqrt(2 * 2 * 4))
    assert noise == pytest.approx(2 * sqrt(2) * 4 * 3 * 4 / 2 * 1.5)
    assert regret_bound(epsilon=None, nodes=2, dimension=3, turns=4)[1] == 0
