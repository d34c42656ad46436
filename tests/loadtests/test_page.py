"""The page's tables come from a run, and its text stays as it is."""

from typing import Any

import page
import pytest
import report

from tests.house import ROOT
from tests.loadtests import recorded

PAGE = ROOT / "docs" / "performance.md"


@pytest.fixture
def found() -> dict[str, Any]:
    both = {"1": recorded.compared(3.0), "2": recorded.compared(2.8)}
    return {
        "machine": recorded.MACHINE,
        "quick": False,
        "recommend": report.with_summary(both),
        "feedback": report.with_summary(both),
        "batch": recorded.BATCH,
        "families": recorded.FAMILIES,
        "scaling": recorded.scaling(),
        "clients": recorded.CLIENTS,
        "protocol": recorded.PROTOCOL,
        "releases": recorded.RELEASES,
        "memory": recorded.MEMORY,
        "store": recorded.STORE,
        "mixed": recorded.MIXED,
    }


def test_the_page_has_a_place_for_every_table(found: dict[str, Any]) -> None:
    text = PAGE.read_text()
    for name in page._TABLES:
        assert text.count(f"<!-- figures: {name} -->") == 1
    filled = page.filled(text, found)
    for figure in (
        "**3.00** (2.90 to 3.10)",  # requests
        "45,000",  # batch
        "| fclub, 40 dimensions | 2,600 (384 µs), **2.60** (2.50 to 2.70) |",  # families
        "1: 200; 127: 230; 1,023: 260",  # growth
        "| `/feedback` | coredis |",  # clients
        "| spend of 1, fsync always | ours |",  # commands
        "| `/recommend` | uvicorn |",  # protocol
        "166,446",  # releases
        "37.3",  # bytes
        "| answer | always | 8 | 12.5 µs | 144 | 188 |",  # operations
        "33% of the CPU; carries **3.00** times one",  # masters
        "1,000: 17.4; 1,000,000: 24.9",  # flat
        "model bytes 1,031,244",  # scale
        "| 1 | 17% | 1 |",  # contention
        "200 arrivals a second",  # mixed
        "a processor, 2 cores",  # machine
    ):
        assert figure in filled, figure
    assert page.filled(filled, found) == filled


def test_sections_that_were_not_measured_stay(found: dict[str, Any]) -> None:
    text = "before\n<!-- figures: batch -->\nold\n<!-- end of figures -->\nafter\n"
    assert page.filled(text, {"machine": found["machine"]}) == text
    filled = page.filled(text, found)
    assert filled.startswith("before\n<!-- figures: batch -->\n| batches in flight |")
    assert filled.endswith("|\n<!-- end of figures -->\nafter\n")


def test_a_mark_that_is_misspelt_is_found(found: dict[str, Any]) -> None:
    text = "<!-- figures: bacth -->\n<!-- end of figures -->\n"
    with pytest.raises(SystemExit, match="bacth"):
        page.filled(text, found)
