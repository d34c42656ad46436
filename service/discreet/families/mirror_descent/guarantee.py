"""The guarantee card of sparse mirror descent."""

from discreet.families.cards import GuaranteeCard, PriceCard, unit_of
from discreet.families.mirror_descent.document import MirrorDescentDocument

_OWN_FEATURES = "the features in a client's own question, from whoever sees its answer"
_NOT_COVERED: tuple[str, ...] = (
    "whoever reads the node's store or runs the node",
    "several ids of one person; each node has its own ledger, so a client of three nodes has three",
    "which items a caller offers as candidates, and whether features were given at all",
    "how long an answer takes",
    "deletion: released sums keep what they learned",
)


_DRAWS = {
    "weighted": "exponential mechanism on the candidates' margins",
    "best": "randomised response over the candidates: the best one, or any other",
}


def guarantee_card(document: MirrorDescentDocument, release: int) -> GuaranteeCard:
    """Return the card of a document, for the model of this release."""
    answers, feedback, privacy = _answers(document), _feedback(document), document.privacy
    not_covered = _NOT_COVERED
    if answers.epsilon is None:
        not_covered = (_OWN_FEATURES, *_NOT_COVERED)
    return GuaranteeCard(
        algorithm=document.algorithm,
        protected="a client: the features in questions, and all feedback (what was recommended to "
        "whom, described by features, and whether it was liked)",
        against="everybody who sees answers, models and messages between nodes, of any node, "
        "together and for ever; except whoever sends the client's requests",
        neighbours="any of a client's questions has other features; any of a client's records is "
        "replaced, added or removed",
        unit="at one node, "
        + unit_of(
            document.ledger,
            None if isinstance(privacy.answers, str) else privacy.answers.budget,
            None if isinstance(privacy.feedback, str) else privacy.feedback.budget,
        ),
        closed_loop=answers.epsilon is not None and feedback.epsilon is not None,
        answers=answers,
        feedback=feedback,
        not_covered=not_covered,
        release=release,
    )


def _answers(document: MirrorDescentDocument) -> PriceCard:
    protects = "the client's features, and the features of candidates that a request brings"
    answers = document.privacy.answers
    if isinstance(answers, str):
        mechanism = "none: the visitor's features are ranked without noise"
        return PriceCard(protects, mechanism, epsilon=None)
    return PriceCard(
        protects,
        f"{_DRAWS[answers.draw]}; answers without any features are free",
        epsilon=answers.epsilon,
        unit="each personal item; the rest of a list comes from the model and is free",
        personal_slots=answers.personal_slots,
    ).within(answers.budget, covers="the features in questions asked")


def _feedback(document: MirrorDescentDocument) -> PriceCard:
    protects = "the features of a recommended item (crossed with the client's), and the reward"
    feedback = document.privacy.feedback
    if isinstance(feedback, str):
        return PriceCard(protects, "none: sums are released without noise", epsilon=None)
    return PriceCard(
        protects,
        "sums of gradients clipped in L2, with fresh discrete Gaussian noise in every release; "
        "n records of a client between two releases cost n^2 times the rho of one",
        epsilon=feedback.epsilon,
        delta=feedback.delta,
        unit="one record between two releases",
    ).within(feedback.budget, covers="feedback given")
