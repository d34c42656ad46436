"""The guarantee card of the contextual learner."""

from discreet.families.cards import GuaranteeCard, PriceCard, unit_of
from discreet.families.contextual.document import ContextualDocument
from discreet.families.contextual.spaces import MOST_CELL_DIMENSIONS
from discreet.families.documents import AnswersPrivacyDocument, FeedbackPrivacyDocument


def card(document: ContextualDocument, *, release: int) -> GuaranteeCard:
    """Return the card."""
    answers, feedback = document.privacy.answers, document.privacy.feedback
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
        closed_loop=answers != "exact" and feedback != "exact",
        answers=PriceCard(
            protects="the context of a question",
            mechanism="randomised response over a shortlist that comes from the released model",
            epsilon=answers.epsilon,
            unit="each personal item; the rest of a list comes from the model and is free",
            personal_slots=answers.personal_slots,
        ).within(answers.budget, covers="the contexts of questions asked")
        if isinstance(answers, AnswersPrivacyDocument)
        else exact_answers,
        feedback=_feedback(document.context.size, feedback).within(
            feedback.budget, covers="feedback given"
        )
        if isinstance(feedback, FeedbackPrivacyDocument)
        else exact_feedback,
        not_covered=(
            "whoever runs the service or reads its store",
            "the calling application, which knows the context and the reward",
            "when a client asks, and which items it may be shown",
            "one person who uses several client ids",
        ),
        release=release,
    )


def _feedback(dimensions: int, feedback: FeedbackPrivacyDocument) -> PriceCard:
    """Return what a piece of feedback costs: the noise depends on the space."""
    protects = "which item was shown in which context, and how it was received"
    if dimensions <= MOST_CELL_DIMENSIONS:
        return PriceCard(
            protects=protects,
            mechanism="discrete Laplace noise, drawn anew for what each release adds",
            epsilon=feedback.epsilon,
            unit="one piece of feedback",
        )
    return PriceCard(
        protects=protects,
        mechanism="discrete Gaussian noise, drawn anew for what each release adds",
        epsilon=feedback.epsilon,
        delta=feedback.delta,
        unit="a client's first piece of feedback in a release; the n-th costs 2n - 1 times",
    )
