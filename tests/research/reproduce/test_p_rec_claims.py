"""The claims of the paper on p-REC, judged on numbers that are known."""

from math import e, log

import pytest

from discreet.families.p_rec.run_parameters import VotingParameters
from discreet.research.reproduce.p_rec_claims import MeasuredRun, claims_of
from discreet.research.reproduce.p_rec_trials import VotersCase


def measured(*, disliked: float, revealed: float, radius: int = 0) -> MeasuredRun:
    voting = VotingParameters(objects=2, rounds=400, radius=radius, diversity=0)
    case = VotersCase("published", voting, peers=80, voters=400)
    return MeasuredRun(case, disliked, revealed, every_run=True)


def verdicts(*runs: MeasuredRun) -> dict[str, str]:
    return {claim.where: claim.verdict for claim in claims_of(runs)}


def test_numbers_within_their_bounds_hold() -> None:
    found = verdicts(
        measured(disliked=1.0, revealed=0.5), measured(disliked=1.0, revealed=0.5, radius=2)
    )
    assert found == {
        "theorems 9 and 10": "holds",
        "theorems 2 and 16": "holds",
        "theorems 9 and 11": "holds",
        "theorems 2 and 17": "holds",
        "theorem 6": "holds",
        "lemma 8, theorem 7": "holds",
        "theorems 1 and 15": "not testable",
        "section 4": "not testable",
    }


def test_numbers_beyond_a_bound_fail() -> None:
    found = verdicts(
        measured(disliked=500.0, revealed=500.0),
        measured(disliked=5_000.0, revealed=5_000.0, radius=2),
    )
    assert [found[where] for where in ("theorems 9 and 10", "theorems 2 and 16")] == ["fails"] * 2
    assert [found[where] for where in ("theorems 9 and 11", "theorems 2 and 17")] == ["fails"] * 2


def test_an_epsilon_below_lemma_8_fails() -> None:
    # Nobody who guarantees so little loss can reveal so little: the measurement would be wrong.
    impossible = measured(disliked=1.0, revealed=1e-6)
    found = verdicts(impossible, measured(disliked=1.0, revealed=0.5, radius=2))
    assert found["lemma 8, theorem 7"] == "fails"


def test_lemma_8_is_solved_for_epsilon() -> None:
    run = measured(disliked=1.0, revealed=0.5)
    least = run.least_epsilon
    assert 400 / 2 * e ** (-80 * least) == pytest.approx(run.case.loss_bound)


def test_theorem_6_has_the_constants_of_its_proof() -> None:
    assert measured(disliked=1.0, revealed=0.5).least_loss == 0.5 * int(log(400 / 80) / log(2))
    assert measured(disliked=1.0, revealed=0.5, radius=8).least_loss == 4.0
