"""One answer by a local server: read the client's own sums, add what others taught, choose.

Nothing is debited here. What the client's observation will cost, it costs once, when a letter
covers it (`desk`); the answer itself stays with the local server and its user, whom the guarantee
does not protect from each other.
"""

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.families.p_dap.contract import Address, Choice, Decision, Vector
from discreet.families.fclub.evidence import Knowledge
from discreet.families.fclub.letters import Sums
from discreet.families.fclub.linear import upper_bounds
from discreet.families.questions import Ask, Recommendation
from discreet.families.fclub.recommender import ClusterRecommender, Offer, digest_of
from discreet.families.fclub.vectors import filled
from discreet.families.observer import Answer
from discreet.families.budgets import FREE
from discreet.decisions.tokens import Pending, new_decision_id, seal_decision
from discreet.privacy.charges import Charge, Limit
from discreet.state.stores import Account

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime


def begin(
    runtime: "Runtime", recommender: ClusterRecommender, ask: Ask, marker: bytes | None
) -> Awaitable[Recommendation]:
    """Check the question and issue what it reads; the rest happens when it is awaited."""
    offer = recommender.offer(ask)
    recommender.touched = True
    client = runtime.principals.client(recommender.name, ask.client)
    address = recommender.user(client)
    read = runtime.store.read(addresses=[address])
    noted: Awaitable[Account] | None = None
    if marker is not None:
        # Free, but kept: it is how a client's stored answers are found when they are erased.
        noted = runtime.store.spend(
            principal=client,
            charge=Charge(),
            limit=Limit(),
            marker=marker,
            marker_ttl=recommender.ttl,
        )
    return _finish(runtime, recommender, offer, ask.limit, address, read, noted)


async def _finish(
    runtime: "Runtime",
    recommender: ClusterRecommender,
    offer: Offer,
    limit: int,
    address: bytes,
    read: Awaitable[Sequence[Vector]],
    noted: Awaitable[Account] | None,
) -> Recommendation:
    (own,) = await read
    if noted is not None:
        await noted
    privatizer = recommender.privatizer
    sums = privatizer.sums(filled(own, privatizer.fields))
    chosen, regret = ranked(recommender, address, sums, offer, limit)
    personalised = sums.count > 0 and len(chosen) > 0
    outcome = Answer.UNPROTECTED if recommender.exact_letters else Answer.PERSONALISED
    runtime.observer.recommendation(
        recommender=recommender.name,
        algorithm=recommender.algorithm,
        outcome=outcome if chosen else Answer.EMPTY,
        charge=FREE,
        items=len(chosen),
        estimated_regret=regret,
    )
    expires_at = int(runtime.clock()) + recommender.ttl
    pending = Pending(
        generation=recommender.generation,
        decision_id=new_decision_id(),
        expires_at=expires_at,
        decision=Decision(
            choices=tuple(Choice(slot=place, propensity=1.0) for place in range(len(chosen))),
            address=Address(key=address),
            personalised=personalised,
        ),
        note=b"".join(
            digest_of(offer.ids[row]) + offer.steps[row].astype("<i2").tobytes() for row in chosen
        ),
    )
    return Recommendation(
        recommendation_id=seal_decision(runtime.sealer, pending),
        items=tuple(offer.ids[row] for row in chosen),
        personalised=personalised,
        privacy=recommender.report,
        expires_at=expires_at,
    )


def ranked(
    recommender: ClusterRecommender, address: bytes, own: Sums, offer: Offer, limit: int
) -> tuple[list[int], float]:
    """Return the rows to show, best first, and how much the first is estimated to fall short."""
    if not offer.ids:
        return [], 0.0
    learner = recommender.learner
    known = learner.knowledge(grams=own.gram, moments=own.moment)
    others = _others(recommender, address, known)
    estimate, covariance = learner.posterior(own=known, others=others)
    bounds = upper_bounds(
        items=offer.features, estimate=estimate, inverse=covariance, width=learner.exploration
    )
    best = np.argsort(-bounds, kind="stable")[:limit].tolist()
    means = offer.features @ estimate
    return best, float(means.max() - means[best[0]])


def _others(recommender: ClusterRecommender, address: bytes, own: Knowledge) -> Knowledge:
    """Return what everybody but the client herself tells about her.

    Who came since the last look is compared with the clusters that stood then.
    """
    belief = recommender.belief
    nothing = Knowledge.nothing(dimensions=recommender.dimensions)
    if belief is None:
        return nothing
    place = belief.places.get(address)
    if place is not None:
        return belief.outlook.others[place]
    total = belief.outlook.total
    if not (len(total) and own.matrix.any()):
        return nothing
    clustering = recommender.learner.clustering
    users = Knowledge(own.matrix[None], own.vector[None])
    factors = clustering.factors(users=users, clusters=total)[0]
    best = int(factors.argmax())
    return total[best] if factors[best] > clustering.margin else nothing
