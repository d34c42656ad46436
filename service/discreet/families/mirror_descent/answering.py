"""One answer: rank by the model that this node has published.

The model is public: it was made from noisy sums alone. So ranking by it costs nobody anything, and
an answer is free; what is paid for, later, is learning from the feedback on it.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.families.p_dap.contract import Address, Choice, Decision
from discreet.families.mirror_descent.sparse import Floats
from discreet.families.questions import Ask, Recommendation
from discreet.families.mirror_descent.notes import Note, id_digest, write_note
from discreet.families.mirror_descent.recommender import MirrorRecommender, Question
from discreet.families.observer import Answer
from discreet.families.budgets import FREE, UNPROTECTED
from discreet.decisions.tokens import ADDRESS_BYTES, Pending, new_decision_id, seal_decision
from discreet.privacy.charges import Charge
from discreet.privacy.noise import NoiseSource

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

_NOWHERE = Address(bytes(ADDRESS_BYTES))
_DRAW_BITS = 32


def answer(
    runtime: "Runtime", recommender: MirrorRecommender, ask: Ask
) -> Awaitable[Recommendation]:
    """Rank now, and ask for the ledger's standing, which every answer shows."""
    question = recommender.question(ask)
    recommender.touched = True
    principal = runtime.principals.client(recommender.name, ask.client)
    balance = runtime.store.balance(principal=principal)
    chosen = _ranked(recommender, question, ask.limit, runtime.noise)
    return _sealed(runtime, recommender, question, principal, chosen, balance)


def _ranked(
    recommender: MirrorRecommender, question: Question, limit: int, noise: NoiseSource
) -> npt.NDArray[np.intp]:
    """Return the places of the best. Ties, and the answers that explore, are in random order."""
    explores = noise.bits(_DRAW_BITS) < recommender.document.exploration.rate * 2**_DRAW_BITS
    rng = np.random.default_rng(noise.bits(64))
    if explores or not recommender.model.nonzeros or not len(question):
        return rng.permutation(len(question))[:limit]
    return _best(recommender.scores(question), limit, rng)


def _best(scores: Floats, limit: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    shuffled = rng.permutation(len(scores))
    order = np.argsort(-scores[shuffled], kind="stable")[:limit]
    return shuffled[order]


async def _sealed(
    runtime: "Runtime",
    recommender: MirrorRecommender,
    question: Question,
    principal: bytes,
    chosen: npt.NDArray[np.intp],
    balance: Awaitable[Charge],
) -> Recommendation:
    spent = await balance
    places = chosen.tolist()
    if question.ids is None:
        slots = question.slots[chosen].tolist()
        items = tuple(recommender.id_of[slot] for slot in slots)
        note = Note(principal, question.client, None)
    else:
        slots = list(range(len(places)))
        items = tuple(question.ids[place] for place in places)
        carried = tuple(
            (id_digest(item), question.rows.take([place]))
            for item, place in zip(items, places, strict=True)
        )
        note = Note(principal, question.client, carried)
    outcome = Answer.EMPTY
    if items:
        outcome = Answer.PERSONALISED if recommender.protected else Answer.UNPROTECTED
    # The same list for everybody is nobody's, unless the candidates were chosen for somebody; and
    # a model that knows nothing ranks nothing. Whether this very answer explored, nobody is told.
    about_client = question.ids is not None or len(question.client.indices) > 0
    personalised = bool(items) and bool(recommender.model.nonzeros) and about_client
    expires_at = int(runtime.clock()) + recommender.ttl
    runtime.observer.recommendation(
        recommender=recommender.name,
        algorithm=recommender.algorithm,
        outcome=outcome,
        charge=FREE,
        items=len(items),
        estimated_regret=0.0,
    )
    pending = Pending(
        generation=recommender.generation,
        decision_id=new_decision_id(),
        expires_at=expires_at,
        decision=Decision(
            choices=tuple(Choice(slot, 1.0) for slot in slots),
            address=_NOWHERE,
            personalised=personalised,
        ),
        note=write_note(note),
    )
    return Recommendation(
        recommendation_id=seal_decision(runtime.sealer, pending),
        items=items,
        personalised=personalised,
        privacy=UNPROTECTED if recommender.terms is None else recommender.terms.report(spent=spent),
        expires_at=expires_at,
    )
