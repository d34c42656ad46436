"""docs/privacy.md shows the cards that the code makes; `make cards` writes them anew."""

from tests import cards


def test_the_page_shows_every_card_as_the_code_makes_it() -> None:
    assert cards.on_page() == cards.rendered()
