"""The guarantee card of the contextual learner."""

from discreet.families.cards import GuaranteeCard, PriceCard
from discreet.families.contextual.document import ContextualDocument
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
        unit="one client id, for ever",
        closed_loop=answers != "exact" and feedback != "exact",
        answers=PriceCard(
            protects="the context of a question",
            mechanism="randomised response over a shortlist that comes from the released model",
            epsilon=answers.epsilon,
            budget_epsilon=answers.budget.epsilon,
            budget_delta=answers.budget.delta,
            unit="one recommended item",
        )
        if isinstance(answers, AnswersPrivacyDocument)
        else exact_answers,
        feedback=PriceCard(
            protects="which item was shown in which context, and how it was received",
            mechanism="discrete Gaussian noise, drawn anew for what each release adds",
            epsilon=feedback.epsilon,
            delta=feedback.delta,
            budget_epsilon=feedback.budget.epsilon,
            budget_delta=feedback.budget.delta,
            unit="a client's first piece of feedback in a release; the n-th costs 2n - 1 times",
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
