"""docs/reproductions.md shows the claims that `discreet reproduce` printed."""

import pytest

from discreet.research.reproduce.papers import PAPERS
from tests import claims


@pytest.mark.parametrize("name", PAPERS)
def test_the_page_shows_what_the_command_printed(name: str) -> None:
    assert claims.on_page(name) == claims.rendered(name)


@pytest.mark.parametrize("name", PAPERS)
def test_every_verdict_has_its_reason(name: str) -> None:
    for claim in claims.kept(name):
        assert claim.keys() == claims.COLUMNS.keys()
        assert all(claim.values()), claim
        assert claim["verdict"] in {"holds", "fails", "not testable"}


@pytest.mark.parametrize("name", PAPERS)
def test_the_table_is_the_first_of_its_section(name: str) -> None:
    section = claims.PAGE.read_text(encoding="utf-8").split(f"\n## {name}\n")[1]
    assert section.index("|") == section.index("| the paper says |")


def test_the_overview_counts_what_the_commands_printed() -> None:
    assert claims.on_page(claims.OVERVIEW) == claims.overview()
    assert set(claims.runs()) == set(PAPERS)
