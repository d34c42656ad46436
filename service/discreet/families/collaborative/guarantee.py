"""The card of a collaborative recommender.

Two things of a person are here: the profile, and feedback. The profile is protected before it is
sent, by the client's device, or not at all: the server cannot add what was not added there. What
the server makes of it (similarities, answers) is a function of what was sent, so that it costs
nothing beyond what the device paid. Feedback is protected here: released with noise, at a price
(`learning`). The guarantee for feedback holds in a closed loop and for all records of a person
together; that for profiles, on the device, is for one item of the history at a time with the rest
held fixed, and so the card as a whole claims no more than that.
"""

from discreet.families.cards import GuaranteeCard, PriceCard, unit_of
from discreet.families.collaborative.document import CollaborativeDocument
from discreet.families.documents import FeedbackPrivacyDocument

REASON_EXACT = "the profile is used as it was sent"
REASON_ON_DEVICE = "the profile was made private on the client's device"
REASON_NO_PROFILE = "the client has no profile"


def card(document: CollaborativeDocument, *, release: int) -> GuaranteeCard:
    """Return what this document promises."""
    on_device, feedback = document.privacy.answers == "on-device", document.privacy.feedback
    return GuaranteeCard(
        algorithm=document.algorithm,
        protected="clients' feedback"
        + (", and their histories by their own devices" if on_device else ""),
        against="everybody who sees answers or released models"
        + (", and the server itself for histories" if on_device else ""),
        neighbours="any of a client's feedback replaced, added or removed"
        + ("; two histories that differ in one item" if on_device else ""),
        unit="all feedback of "
        + unit_of(document.ledger, None if isinstance(feedback, str) else feedback.budget)
        + ("; one item of a history" if on_device else ""),
        closed_loop=False,
        answers=PriceCard(
            protects="the client's profile",
            mechanism=(
                "noise on the client's device before the profile is sent; the device keeps the "
                "account, and answers cost nothing more"
                if on_device
                else "none: answers follow the profile as it was sent; booked as unlimited"
            ),
            epsilon=None,
            unit="one answer",
        ),
        feedback=_feedback(feedback),
        not_covered=_not_covered(document, on_device=on_device),
        release=release,
    )


def _feedback(privacy: FeedbackPrivacyDocument | str) -> PriceCard:
    if not isinstance(privacy, FeedbackPrivacyDocument):
        return PriceCard(
            protects="which items a client gave feedback on, and how",
            mechanism="none: rewards are added to popularity without noise; booked as unlimited",
            epsilon=None,
            unit="one record",
        )
    return PriceCard(
        protects="which items a client gave feedback on, and how",
        mechanism="Gaussian noise on every item's rewards at each release, in a closed loop",
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        unit="a client's first record in a release; the n-th costs 2n - 1 times",
    ).within(privacy.budget, covers="feedback given")


def _not_covered(document: CollaborativeDocument, *, on_device: bool) -> tuple[str, ...]:
    missing = [
        "whoever runs the service or reads its store, about feedback",
        "one person who uses several client ids",
    ]
    if on_device:
        missing += [
            "profiles that were sent as they are: the server cannot tell",
            "several items of one history together: k items are protected k times less",
            "when a profile is sent, and that there is one",
        ]
    else:
        missing += [
            "profiles: answers to others show which items go together in them, and with few "
            "profiles that is close to the profiles themselves"
        ]
    if not isinstance(document.privacy.feedback, FeedbackPrivacyDocument):
        missing.append("feedback: rewards change what is popular, exactly")
    return tuple(missing)
