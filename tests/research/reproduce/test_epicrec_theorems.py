"""Theorems 2 to 5 and the noise, judged on numbers that are known."""

import pytest

from discreet.research.reproduce.epicrec_theorems import (
    BEYOND,
    EXAMPLE,
    LeakRuns,
    beyond_claim,
    calibration_claims,
    privacy_claims,
    theorem_claim,
)
from discreet.research.reproduce.epicrec_trials import PUBLISHED
from tests.research.reproduce.epicrec_found import invented, public


@pytest.mark.parametrize(("system", "where"), [("single", "theorem 3"), ("category", "theorem 5")])
def test_an_error_within_its_bound_holds(system: str, where: str) -> None:
    claim = theorem_claim("films", invented(), system)
    assert claim.verdict == "holds"
    assert claim.where == f"{where}, films"
    assert claim.published == "at most 6 at epsilon 1"
    assert claim.ours.startswith(("1.9", "2.0"))


def test_one_epsilon_beyond_the_bound_fails() -> None:
    found = invented(lambda system, method, epsilon: {"aggregate": 31.0} if epsilon == 0.2 else {})
    assert theorem_claim("films", found, "single").verdict == "fails"


def test_either_solution_beyond_the_bound_fails() -> None:
    assert beyond_claim("films", invented(), "single").verdict == "holds"
    scattered = invented(
        lambda system, method, epsilon: (
            {"aggregate": 2.0} if method == PUBLISHED and epsilon == BEYOND else {}
        )
    )
    claim = beyond_claim("films", scattered, "single")
    assert claim.verdict == "fails"
    assert "with an even solution, 0.10 with a sparse one" in claim.ours


def test_privacy_is_what_was_computed_and_what_was_sent() -> None:
    good, leaking = privacy_claims({"films": public()}, LeakRuns(40, 40, 0))
    assert (good.verdict, leaking.verdict) == ("holds", "fails")
    bad, closed = privacy_claims({"films": public(exact_loss=1.01)}, LeakRuns(40, 23, 19))
    assert (bad.verdict, closed.verdict) == ("fails", "holds")


def test_the_noise_is_the_papers_and_its_sum_is_not_bounded_as_it_says() -> None:
    same, less, total = calibration_claims({"films": public()}, EXAMPLE)
    assert [one.verdict for one in (same, less, total)] == ["holds", "holds", "fails"]
    other, more, small = calibration_claims(
        {"films": public(mean_magnitude=6.5)}, (0.5, 0.5, 0.5, 0.5, 0.5)
    )
    assert [one.verdict for one in (other, more, small)] == ["fails", "fails", "holds"]


def test_public_facts_have_every_epsilon_in_their_detail() -> None:
    detail = public().detail()
    assert set(detail["quantified_epsilon"]) == {
        "single",
        "category",
        "category_published",
        "line_7",
    }
    assert detail["expected_error_below_laplace"] == 0.25
