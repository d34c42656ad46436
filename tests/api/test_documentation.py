"""docs/api.md tells what the code does: every problem, every series, every address."""

import re
from pathlib import Path

import pytest

from discreet.api import problems
from discreet.api.problems import KINDS, ProblemKind
from discreet.metrics import Metrics
from tests.api.conftest import Caller

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()


def test_every_problem_has_a_section_with_its_status() -> None:
    kinds = {kind for kind in vars(problems).values() if isinstance(kind, ProblemKind)}
    documented = dict(re.findall(r"^### ([a-z-]+)\n(\d+)", PAGE, re.MULTILINE))
    assert documented == {kind.slug: str(kind.status) for kind in kinds | set(KINDS.values())}


def test_every_series_is_listed() -> None:
    metrics = Metrics(version="1")
    declared = {
        line.split()[2] for line in metrics.render().decode().splitlines() if "# TYPE" in line
    }
    listed = set(re.findall(r"`(discreet_[a-z_]+)", PAGE))
    assert declared == listed


@pytest.mark.anyio
async def test_every_address_is_mentioned(caller: Caller) -> None:
    paths = (await caller.get("/openapi.json")).json()["paths"]
    for path in paths:
        shown = path.replace("{client}", "{id}").replace("{item}", "{id}")
        assert shown in PAGE, shown
