"""p-dap's card says what the document says."""

from discreet.families.p_dap.guarantee import card
from tests.families.p_dap.places import document


def test_prices_and_budgets_are_the_documents() -> None:
    described = document(
        privacy={"answers": {"epsilon": 0.5, "budget": {"epsilon": 7}}, "feedback": {"epsilon": 2}}
    )
    found = card(described, epsilon=0.5, release=4)
    assert (found.answers.epsilon, found.answers.budget_epsilon) == (0.5, 7)
    assert (found.feedback.epsilon, found.feedback.delta) == (2, 1e-6)
    assert found.closed_loop
    assert found.release == 4


def test_an_exact_dial_opens_the_loop_and_is_said() -> None:
    for dial in ("answers", "feedback"):
        found = card(document(privacy={dial: "exact"}), epsilon=None, release=0)
        assert not found.closed_loop
        price = found.answers if dial == "answers" else found.feedback
        assert price.epsilon is None
        assert "nothing" in price.protects


def test_vendors_are_named_among_what_is_not_covered() -> None:
    vendors = [{"name": "v", "url": "http://v"}]
    found = card(document(vendors=vendors), epsilon=1.0, release=0)
    assert [line for line in found.not_covered if "learns the cell" in line]
    assert [line for line in found.not_covered if "learns from it for others" in line]
    assert not found.closed_loop, "what the vendor learns is in no budget here"
