"""Guarantee cards are data."""

import json

from discreet.families.cards import GuaranteeCard, PriceCard


def test_a_card_is_json_as_it_stands() -> None:
    price = PriceCard("a context", "a draw", 1.0, budget_epsilon=5.0)
    card = GuaranteeCard(
        "x", "somebody", "everybody", "any two", "a client", True, price, price, ("timing",), 3
    )
    shown = json.loads(json.dumps(card.as_json()))
    assert shown["answers"]["epsilon"] == 1.0
    assert shown["not_covered"] == ["timing"]
    assert shown["release"] == 3
