"""The guarantee card of federated clusters."""

from discreet.families.cards import GuaranteeCard, PriceCard, unit_of
from discreet.families.documents import AnswersPrivacyDocument, FeedbackPrivacyDocument
from discreet.families.fclub.document import ClusterPrivacyDocument, FederatedClustersDocument

_ALWAYS = (
    "whoever runs the service or reads its store",
    "the calling application, which knows what was shown and how it was received",
    "when a client asks, and which items it may be shown",
    "one person who uses several client ids",
)


def card(document: FederatedClustersDocument, *, release: int) -> GuaranteeCard:
    """Return the card of a document at the release that answers are made from."""
    if document.role == "global":
        return _merging(document, release)
    privacy = document.privacy
    if isinstance(privacy.feedback, FeedbackPrivacyDocument) and privacy.protects == "person":
        return _by_person(document, privacy.feedback, release)
    return _by_observation(document, release)


def _by_person(
    document: FederatedClustersDocument, feedback: FeedbackPrivacyDocument, release: int
) -> GuaranteeCard:
    answers = document.privacy.answers
    private = answers != "exact"
    own = ("whoever sees this client's own answers: they are made from the client's own sums",)
    return GuaranteeCard(
        algorithm=document.algorithm,
        protected="a client: everything that was shown to them, and how it was received",
        against=(
            "everybody who sees answers, the client's own and others', and every released model, "
            "here and on other servers"
            if private
            else "everybody who sees answers to others and every released model, here and on other "
            "servers"
        ),
        neighbours=(
            "all of the client's feedback replaced, added or removed; everybody else's arbitrary"
        ),
        unit=unit_of(
            document.ledger,
            None if isinstance(answers, str) else answers.budget,
            feedback.budget,
        ),
        closed_loop=True,
        answers=_answers(document.privacy),
        feedback=PriceCard(
            protects="all that the client put into a release",
            mechanism=(
                "discrete Gaussian noise on sums over people, in which a person counts as a fixed "
                "number of observations; drawn anew for every release; nobody else is served from "
                "the client's own sums"
            ),
            epsilon=feedback.epsilon,
            delta=feedback.delta,
            unit="one release that the client takes part in",
        ).within(feedback.budget, covers="what is released, about earlier feedback too,"),
        not_covered=(*_ALWAYS, *(() if private else own)),
        release=release,
    )


def _by_observation(document: FederatedClustersDocument, release: int) -> GuaranteeCard:
    feedback = document.privacy.feedback
    noisy = isinstance(feedback, FeedbackPrivacyDocument)
    shared = PriceCard(
        protects="nothing: updates to other servers are exact sums",
        mechanism="exact, as the document says; booked as unlimited",
        epsilon=None,
        unit="one observation",
    )
    if isinstance(feedback, FeedbackPrivacyDocument):
        shared = PriceCard(
            protects="one observation, against everybody outside this server",
            mechanism=(
                "discrete Gaussian noise on updates to other servers; each observation is in "
                "exactly one. On this server other users are served from exact sums, which is "
                "booked as unlimited"
            ),
            epsilon=feedback.epsilon,
            delta=feedback.delta,
            unit="one observation, for ever, with all other observations held fixed",
        )
    return GuaranteeCard(
        algorithm=document.algorithm,
        protected=(
            "one observation: an item that was shown and its reward"
            if noisy
            else "nobody: the document turns protection off"
        ),
        against=(
            "everybody outside this server: the global server, other servers, and their users"
            if noisy
            else "nobody"
        ),
        neighbours=(
            "one observation replaced by another, all others held fixed; who gives feedback, when "
            "and how often is public"
        ),
        unit="one observation",
        closed_loop=False,
        answers=_answers(document.privacy),
        feedback=shared,
        not_covered=(
            *_ALWAYS,
            "other users of this server: they are served from exact sums",
            "a person's observations together: no budget bounds them",
            "what an observation changes in what is shown later, and in later observations",
        ),
        release=release,
    )


def _answers(privacy: ClusterPrivacyDocument) -> PriceCard:
    answers = privacy.answers
    if isinstance(answers, AnswersPrivacyDocument):
        return PriceCard(
            protects="the client's own feedback, in answers to the client",
            mechanism="exponential mechanism over the items' estimated rewards",
            epsilon=answers.epsilon,
            unit="each personal item; the rest of a list comes from the model and is free",
            personal_slots=answers.personal_slots,
        ).within(answers.budget, covers="what answers tell, about earlier feedback too,")
    return PriceCard(
        protects="nothing: the best items by the client's own sums are answered",
        mechanism="exact, as the document says; booked as unlimited",
        epsilon=None,
        unit="one answer",
    )


def _merging(document: FederatedClustersDocument, release: int) -> GuaranteeCard:
    nothing = PriceCard(
        protects="nothing here: there are no clients",
        mechanism="post-processing of noisy updates, which local servers protect",
        epsilon=0.0,
        unit="one merged model",
    )
    return GuaranteeCard(
        algorithm=document.algorithm,
        protected="whoever the local servers' cards say",
        against="everybody who sees merged models",
        neighbours="as the local servers' cards say",
        unit="as the local servers' cards say",
        closed_loop=False,
        answers=nothing,
        feedback=nothing,
        not_covered=("local servers that send exact updates",),
        release=release,
    )
