"""Lists with one personal item: what the audit enumerates, and that it could say no."""

from fractions import Fraction

import pytest

from discreet.audit.families.p_dap import slots
from discreet.audit.families.p_dap.answers import CONTEXTS, shipped, taught


def test_a_list_whose_every_item_is_drawn_is_not_covered_by_the_price_of_one() -> None:
    """The examination has power: with two personal items, the price of one is too little."""
    two = taught("uniform", slots=2)
    assert slots.charged(two, limit=3)[0] == 2 * slots.charged(two)[0]
    assert not slots.examine_price(two).holds


@pytest.mark.parametrize("fill", [0x00, 0xA5])
def test_lists_have_probability_one_and_three_different_items(fill: int) -> None:
    law = slots.list_law(taught("uniform", slots=1), CONTEXTS[0], fill, shipped)
    assert sum(law.values()) == Fraction(1)
    assert len(law) == 3
    assert all(len(set(items)) == 3 for items in law)  # type: ignore[call-overload]
