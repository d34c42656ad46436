"""The papers by name."""

import pytest

from discreet.errors import InvalidArgument
from discreet.research.reproduce.papers import PAPERS, reproduction_of


@pytest.mark.parametrize("name", PAPERS)
def test_every_listed_paper_can_be_reproduced(name: str) -> None:
    assert callable(reproduction_of(name))


def test_an_unknown_paper_lists_the_known_ones() -> None:
    with pytest.raises(InvalidArgument, match="p-dap") as refused:
        reproduction_of("p-rap")
    assert refused.value.argument == "NAME"
