"""The card of the best item overall."""

from discreet.families.cards import GuaranteeCard, PriceCard, unit_of
from tests.sixth_family.document import OverallDocument


def card(document: OverallDocument, release: int) -> GuaranteeCard:
    """Return the card of this document."""
    feedback = document.privacy.feedback
    return GuaranteeCard(
        algorithm=document.algorithm,
        protected="a client's feedback",
        against="everybody who sees answers or models",
        neighbours="any of the client's records replaced, added or removed",
        unit=unit_of(document.ledger, feedback.budget),
        closed_loop=True,
        answers=PriceCard("nothing: answers do not depend on who asks", "none needed", 0.0),
        feedback=PriceCard(
            protects="which item was shown, and how it was received",
            mechanism="discrete Gaussian noise, drawn anew for what each release adds",
            epsilon=feedback.epsilon,
            delta=feedback.delta,
        ).within(feedback.budget, covers="feedback given"),
        not_covered=("whoever runs the service or reads its store",),
        release=release,
    )
