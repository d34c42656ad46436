"""The guarantee card of the adaptive partition."""

from discreet.families.cards import GuaranteeCard, PriceCard, unit_of
from discreet.families.documents import AnswersPrivacyDocument, FeedbackPrivacyDocument
from discreet.families.p_dap.document import AdaptivePartitionDocument


def card(
    document: AdaptivePartitionDocument, *, epsilon: float | None, release: int
) -> GuaranteeCard:
    """Return the card; `epsilon` is the price of one item, at the model's deepest level."""
    privacy = document.privacy
    answers, feedback = privacy.answers, privacy.feedback
    closed = answers != "exact" and feedback != "exact" and not document.vendors
    exact_answers = PriceCard(
        protects="nothing: the best item for the context is answered",
        mechanism="exact, as the document says; booked as unlimited",
        epsilon=None,
        unit="one answer",
    )
    exact_feedback = PriceCard(
        protects="nothing: models are made from exact sums",
        mechanism="exact, as the document says; booked as unlimited",
        epsilon=None,
        unit="one piece of feedback",
    )
    vendors: tuple[str, ...] = ()
    if document.vendors:
        vendors = (
            "a vendor that is asked for an item learns the cell that the context lies in",
            "a vendor whose item was shown is told how it was received, once that is paid for "
            "here, and learns from it for others: its own noise bounds what a reward tells, and no "
            "budget of the client's what several do",
        )
    return GuaranteeCard(
        algorithm=document.algorithm,
        protected="a client: the contexts of their questions, and their feedback",
        against="everybody who sees answers, their own and others', and every released model",
        neighbours=(
            "all contexts of the client replaced by others; any of the client's feedback replaced, "
            "added or removed; everybody else's arbitrary"
        ),
        unit=unit_of(
            document.ledger,
            None if isinstance(answers, str) else answers.budget,
            None if isinstance(feedback, str) else feedback.budget,
        ),
        closed_loop=closed,
        answers=PriceCard(
            protects="the context of a question",
            mechanism="randomised response over a shortlist that comes from the released model",
            epsilon=epsilon,
            unit="each personal item; the rest of a list comes from the model and is free",
            personal_slots=answers.personal_slots,
        ).within(answers.budget, covers="the contexts of questions asked")
        if isinstance(answers, AnswersPrivacyDocument)
        else exact_answers,
        feedback=PriceCard(
            protects="which item was shown in which cell, and how it was received",
            mechanism="discrete Gaussian noise, drawn anew for what each release adds",
            epsilon=feedback.epsilon,
            delta=feedback.delta,
            unit="a client's first piece of feedback in a release; the n-th costs 2n - 1 times",
        ).within(feedback.budget, covers="feedback given")
        if isinstance(feedback, FeedbackPrivacyDocument)
        else exact_feedback,
        not_covered=(
            "whoever runs the service or reads its store",
            "the calling application, which knows the context and the reward",
            "when a client asks, and which items it may be shown",
            "one person who uses several client ids",
            *vendors,
        ),
        release=release,
    )
