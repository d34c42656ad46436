"""The claims of the paper on P-DAP, judged on runs that are known."""

import numpy as np

from discreet.research.reproduce.p_dap import AS_PUBLISHED
from discreet.research.reproduce.p_dap_claims import claims_of
from discreet.research.reproduce.p_dap_outcomes import PartitionOutcome
from discreet.research.simulate.runs import WorldRun


def played(regret: float, power: float) -> WorldRun:
    rounds = np.linspace(500.0, 30_000.0, 60)
    return WorldRun(
        rounds=rounds,
        regret=regret * (rounds / 30_000) ** power,
        reward=0.5 * rounds,
        optimal=0.8 * rounds,
        seconds=1.0,
    )


def verdicts(regrets: dict[tuple[str, float | None], float], power: float) -> dict[str, str]:
    outcomes = [
        PartitionOutcome(one, (played(regrets[one.algorithm, one.epsilon], power),) * 2)
        for one in AS_PUBLISHED
    ]
    found = claims_of(outcomes, rounds=30_000, vendors=4, items=5)
    return {f"{claim.paper_says[:38]}, {claim.where}": claim.verdict for claim in found}


GOOD: dict[tuple[str, float | None], float] = {
    ("dap", None): 300.0,
    ("cap", None): 2_000.0,
    ("dup", None): 2_000.0,
    ("dup-larger", None): 2_000.0,
    ("p-dap", 0.01): 900.0,
    ("p-dap", 0.1): 800.0,
    ("p-dap", 1.0): 700.0,
    ("gp-dap", 0.01): 500.0,
    ("gp-dap", 0.1): 500.0,
    ("gp-dap", 1.0): 500.0,
}


def test_a_run_as_the_paper_says_holds() -> None:
    found = verdicts(GOOD, power=0.5)
    assert {where for where, verdict in found.items() if verdict == "fails"} == {
        "geometric privacy has a lower regret b, theorem 6",
        "Algorithm 1 keeps contexts epsilon-dif, theorem 4",
        "Algorithm 2 keeps rewards epsilon-diff, theorem 5",
    }


def test_a_run_of_the_opposite_fails() -> None:
    bad = {key: 20_000.0 - regret for key, regret in GOOD.items()}
    found = verdicts(bad, power=1.2)
    for where in (
        "DAP has less regret than CAP, figure 6, table II",
        "DAP has less regret than DUP, figure 6, table II",
        "the regret of DAP grows sublinearly, figure 6a",
        "the average regret of DAP ends below 0, section VII.B, figure 6b",
        "the regret of P-DAP falls as epsilon g, figure 7, table III",
        "GP-DAP has 32% less regret than P-DAP , figure 8a",
    ):
        assert found[where] == "fails"
