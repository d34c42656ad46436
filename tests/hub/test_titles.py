"""Titles find their items as whole titles, in any usual spelling, and nothing else does."""

import pytest

from discreet.hub.titles import NoMatch, TitleIndex, normalise

CATALOGUE = [
    ("1", "The Lantern Room (1998)"),
    ("2", "Soufflé, Amour & Co. (2003)"),
    ("3", "It (1990)"),
    ("4", "Twins (1988)"),
    ("5", "Twins (2011)"),
    ("6", "Harbour"),
    ("7", "Salt, A"),
    ("8", "日曜日 (2001)"),
]


@pytest.fixture
def index() -> TitleIndex:
    return TitleIndex(CATALOGUE)


@pytest.mark.parametrize(
    ("title", "item"),
    [
        ("The Lantern Room (1998)", "1"),
        ("the lantern room", "1"),
        ("Lantern Room, The (1998)", "1"),
        ("  LANTERN ROOM, The  ", "1"),
        ("The Lantern Room [1998]", "1"),
        ("souffle amour and co", "2"),
        ("It", "3"),
        ("Twins (2011)", "5"),
        ("Harbour (1984)", "6"),
        ("A Salt", "7"),
        ("日曜日", "8"),
        ("6", "6"),
        ("The Lantern Room (1999)", NoMatch.UNKNOWN),
        ("Lantern", NoMatch.UNKNOWN),
        ("Twins", NoMatch.AMBIGUOUS),
        ("Twins (1999)", NoMatch.UNKNOWN),
        ("", NoMatch.UNKNOWN),
        ("(1998)", NoMatch.UNKNOWN),
    ],
)
def test_a_persons_list(index: TitleIndex, title: str, item: str | NoMatch) -> None:
    assert index.find(title) == item


@pytest.mark.parametrize(
    ("page", "item"),
    [
        ("The Lantern Room (1998) - Filmhouse", "1"),
        ("Watch online | The Lantern Room | Filmhouse", "1"),
        ("The Lantern Room", "1"),
        ("Reviews: The Lantern Room", NoMatch.UNKNOWN),
        ("I saw The Lantern Room yesterday - a diary", NoMatch.UNKNOWN),
        ("It - Filmhouse", NoMatch.UNKNOWN),
        ("It (1990) - Filmhouse", "3"),
        ("Harbour - Filmhouse", "6"),
        ("Filmhouse - Harbour", NoMatch.UNKNOWN),
        ("Twins - Filmhouse", NoMatch.AMBIGUOUS),
        ("1", NoMatch.UNKNOWN),
    ],
)
def test_a_browsers_page(index: TitleIndex, page: str, item: str | NoMatch) -> None:
    assert index.find_page(page) == item


def test_a_year_is_read_only_at_the_end() -> None:
    assert normalise("1984 (1956)").year == "1956"
    assert normalise("(1956) Nights").year == ""
    assert normalise("Nineteen (84)").year == ""
