"""docs/privacy.md: its examples run, and its numbers are the code's."""

import re
from pathlib import Path

import pytest

from discreet.audit.claims import FALSE_ALARM, SHARES
from discreet.audit.discovery import all_faults
from discreet.audit.mechanisms.ledgers import count_decisions
from discreet.privacy import events
from discreet.privacy.accountants import BasicAccountant, Budget, ZCDPAccountant
from discreet.privacy.conversions import zcdp_rho

PAGE = (Path(__file__).parents[1] / "docs" / "privacy.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 3
    assert all("assert" in example for example in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(example: str) -> None:
    exec(compile(example, "docs/privacy.md", "exec"), {})


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 8.0, 20.0])
def test_the_table_of_decisions_is_what_the_ledger_admits(epsilon: float) -> None:
    budget = Budget(epsilon, 1e-6)
    choice, answer = events.ExponentialChoice(0.1), events.RandomisedResponse(0.1)
    numbers = (
        f"{zcdp_rho(epsilon=epsilon, delta=1e-6):.5f}",
        count_decisions(BasicAccountant(), answer, budget),
        count_decisions(ZCDPAccountant(), choice, budget),
        count_decisions(ZCDPAccountant(), answer, budget),
    )
    assert f"| {epsilon:g} | " + " | ".join(map(str, numbers)) + " |" in PAGE


def test_what_is_said_about_the_audit_is_so() -> None:
    assert FALSE_ALARM == 1e-6
    assert SHARES == 512
    assert "10^−6/512" in PAGE
    assert len(list(all_faults())) >= 39  # nine by name, "and some thirty more"


def test_every_event_is_in_the_table_of_prices() -> None:
    for kind in vars(events).values():
        if (
            isinstance(kind, type)
            and issubclass(kind, events.PrivacyEvent)
            and kind is not events.PrivacyEvent
        ):
            assert f"`{kind.__name__}" in PAGE
