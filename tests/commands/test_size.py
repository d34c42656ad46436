"""`discreet size`: a formula that grows as it should, and the example of the page."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from discreet.cli import main
from discreet.commands.size import Load, ledger_bytes, needs
from discreet.families.contextual.cells import CellSpace
from discreet.families.contextual.spaces import LinearSpace
from tests.house import ROOT

LOAD = Load(requests=500, people=1_000_000, items=1_000)
ASKED = ["size", "--requests", "500", "--people", "1000000", "--items", "1000"]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*ASKED, *arguments, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_parts_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys)
    parts = (found[f"{name}_bytes"] for name in ("ledger", "claim", "sums", "model"))
    assert found["store_bytes"] == pytest.approx(sum(parts), abs=4)
    assert found["disk_bytes"] == pytest.approx(4 * found["store_bytes"], abs=4)


@pytest.mark.parametrize(
    ("changed", "grows"),
    [
        ({"requests": 5_000}, {"workers", "masters", "log_bytes_per_second"}),
        ({"people": 10**7}, {"ledger_bytes", "disk_bytes"}),
        ({"items": 10_000}, {"sums_bytes", "model_bytes", "worker_bytes"}),
        ({"feedback": 1.0}, {"claim_bytes", "store_cpu", "network_bytes_per_second"}),
        ({"dimensions": 64}, {"sums_bytes", "store_cpu", "log_bytes_per_second"}),
        ({"peak": 30.0}, {"workers", "masters", "network_bytes_per_second"}),
        ({"ttl": 10**6}, {"claim_bytes"}),
        ({"answer_us": 800.0}, {"workers", "worker_cpu"}),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_more_needs_more(changed: dict[str, Any], grows: set[str]) -> None:
    before, after = needs(LOAD), needs(replace(LOAD, **changed))
    for name in grows:
        assert getattr(after, name) > getattr(before, name), name
    for name in before.__dataclass_fields__:
        assert getattr(after, name) >= getattr(before, name) or name == "ledger_bytes"


def test_a_ledger_grows_with_the_days_on_which_somebody_comes() -> None:
    """As it was measured: 159, 229 and 3,101 bytes with 1, 2 and 70 days' entries."""
    seldom = Load(requests=0.01, people=10**6, items=10, feedback=0.0)
    assert ledger_bytes(seldom) == pytest.approx(159, rel=0.05)
    daily = Load(requests=1_000, people=10**5, items=10, feedback=1.0)
    assert ledger_bytes(replace(daily, days=1)) == pytest.approx(229, rel=0.02)
    assert ledger_bytes(daily) == pytest.approx(3_101, rel=0.02)
    assert ledger_bytes(replace(daily, days=1_000)) == ledger_bytes(daily)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 64, 500])
def test_numbers_are_those_of_the_family(dimensions: int) -> None:
    space = CellSpace(dimensions) if dimensions <= 3 else LinearSpace(dimensions)
    one = Load(requests=0, people=1, items=1, dimensions=dimensions)
    model = 16 * space.kept + 8 * space.products
    assert needs(one).model_bytes == model


@pytest.mark.parametrize("wrong", [("--people", "0"), ("--peak", "0.5"), ("--feedback", "-1")])
def test_what_makes_no_sense_is_refused(
    wrong: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*ASKED, *wrong]) == 2
    assert wrong[0] in capsys.readouterr().err


def test_the_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs/operations.md").read_text()
    (shown,) = re.findall(r"```\n\$ discreet (size [^\n]*)\n(.*?)```", text, re.DOTALL)
    assert main(shown[0].split()) == 0
    out = capsys.readouterr().out
    assert [line.split() for line in shown[1].splitlines()] == [
        line.split() for line in out.splitlines()
    ]
