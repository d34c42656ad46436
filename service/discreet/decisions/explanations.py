"""What the released model thinks of a question: for an administrator, and not protected.

An explanation is made from the released model, which is public, and from what the administrator
says about a visitor. Where that is all, nothing new about anybody is told, and nothing is booked. A
family that looks at a client's own sums (`reads_clients`) tells about that client what no noise
hides: the client has to be named, and is booked with an unlimited release, for good, before the
sums are read.
"""

from dataclasses import dataclass

import numpy as np

from discreet.decisions.registry import RecommenderRegistry
from discreet.errors import DiscreetError, InvalidArgument, UnknownRecommender
from discreet.families.questions import Ask
from discreet.privacy.charges import Charge
from discreet.state.stores import EXACT, NO_LIMIT, Debit, Store


@dataclass(frozen=True, slots=True)
class ExplainedItem:
    """What the model thinks of one item.

    `odds` are those of being answered first, `odds_unpaid` those once the client's budget is spent.
    """

    id: str
    utility: float
    shortlisted: bool | None
    odds: float
    odds_unpaid: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """What an answer would be drawn from, and what it would cost; the likeliest items first."""

    release: int
    price: Charge
    booked: bool
    items: tuple[ExplainedItem, ...]


class Explanations:
    """Explains answers."""

    def __init__(self, *, store: Store, registry: RecommenderRegistry) -> None:
        self._store = store
        self._registry = registry

    async def explain(self, ask: Ask, *, client: str | None, most: int) -> Explanation:
        """Return what the model thinks of this question, `client`'s if one is named.

        Raises `UnknownRecommender` where a family has no such thing to tell.
        """
        recommender = await self._registry.find(ask.recommender)
        if not recommender.explains:
            raise UnknownRecommender(
                f"not supported by {recommender.algorithm}: its answers are not drawn from a "
                "released model's utilities"
            )
        reads = recommender.reads_clients
        if reads and client is None:
            raise InvalidArgument(
                "client", f"is required: {recommender.algorithm} answers from a client's own sums"
            )
        if client is not None and not reads:
            raise InvalidArgument(
                "client",
                f"leave it out: {recommender.algorithm} looks at nothing but what is sent with the "
                "question, so nobody is explained and nobody has to be booked",
            )
        question = recommender.question(ask._replace(client=client or ""))
        current = recommender.current
        if reads:
            debit = Debit(question.client, EXACT, NO_LIMIT, purpose=recommender.purpose)
            for outcome in await self._store.spend([debit]):
                if isinstance(outcome, DiscreetError):
                    raise outcome
        own = await recommender.read_own([question])
        thoughts = recommender.explain(current.model, question, own[0])
        paid, unpaid = (
            recommender.answer_law(current.model, [question], own, paid=each)[0]
            for each in (True, False)
        )
        likely = [int(slot) for slot in np.argsort(-paid, kind="stable")]
        found = [
            ExplainedItem(
                id=recommender.id_of[slot],
                utility=thoughts[slot][0],
                shortlisted=thoughts[slot][1],
                odds=float(paid[slot]),
                odds_unpaid=float(unpaid[slot]),
            )
            for slot in likely
            if slot in thoughts and slot in recommender.id_of
        ]
        return Explanation(current.number, recommender.price(question), reads, tuple(found[:most]))


def as_epsilon(charge: Charge) -> float | None:
    """Return a price as an epsilon; None where nothing is protected."""
    return None if charge == EXACT else charge.nano_epsilon / 1e9
