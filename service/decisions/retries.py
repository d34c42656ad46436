"""Answers under a caller's event id: a retry gets the stored answer, unchanged and free.

Three steps, each of which may be repeated after a crash without paying or answering twice. The
event is claimed first, so that an id used for two different questions is told apart before either
pays. The debit is made once, under the event's mark in the client's ledger. The first answer to be
stored is the answer for everybody; a draw that came second is thrown away unseen.

What is stored is sealed: the store sees neither the items nor the ledger's standing.
"""

import json

from service.decisions.answering import FREE, Ask, PrivacyReport, Recommendation, begin, finish
from service.decisions.observer import Answer
from service.decisions.recommender import Recommender
from service.decisions.runtime import Runtime
from service.errors import EventReused
from service.privacy.accountants import Budget

_ANSWER = b"discreet answer"


async def recommend_once(runtime: Runtime, recommender: Recommender, ask: Ask) -> Recommendation:
    """Answer under an event id: the same question again gets the same answer and pays nothing."""
    assert ask.event_id is not None
    store, event = runtime.store, runtime.principals.event(ask.event_id)
    fingerprint = _fingerprint(runtime, ask)
    # Checked before the claim: a question that cannot be asked must not occupy its event id.
    recommender.request(
        context=ask.context, limit=ask.limit, exclude=ask.exclude, candidates=ask.candidates
    )
    found = await store.claim_event(event=event, fingerprint=fingerprint, ttl=recommender.ttl)
    if found.fingerprint != fingerprint:
        raise EventReused("event_id already names a different request; use a new one")
    if found.answer is None:
        fresh = await finish(runtime, begin(runtime, recommender, ask, marker=event))
        sealed = runtime.sealer.seal(_encode(fresh), purpose=_ANSWER)
        standing = await store.answer_event(event=event, answer=sealed, ttl=recommender.ttl)
        if standing == sealed:
            return fresh
    else:
        standing = found.answer
    answer = _decode(runtime.sealer.open(standing, purpose=_ANSWER))
    runtime.observer.recommendation(
        recommender=recommender.name,
        algorithm=recommender.algorithm,
        outcome=Answer.REPEATED,
        charge=FREE,
        items=len(answer.items),
        estimated_regret=0.0,
    )
    return answer


def answered_id(runtime: Runtime, sealed: bytes) -> str:
    """Return the `recommendation_id` inside a stored answer."""
    return _decode(runtime.sealer.open(sealed, purpose=_ANSWER)).recommendation_id


def _fingerprint(runtime: Runtime, ask: Ask) -> bytes:
    question = [ask.recommender, ask.client, ask.limit, list(ask.exclude)]
    wanted = None if ask.candidates is None else list(ask.candidates)
    return runtime.principals.request(
        (json.dumps([*question, wanted]).encode(), json.dumps(list(ask.context)).encode())
    )


def _encode(answer: Recommendation) -> bytes:
    privacy = answer.privacy
    return json.dumps(
        [
            answer.recommendation_id,
            answer.items,
            answer.personalised,
            privacy.epsilon,
            privacy.spent and [privacy.spent.epsilon, privacy.spent.delta],
            privacy.remaining and [privacy.remaining.epsilon, privacy.remaining.delta],
            answer.expires_at,
            answer.vendor,
        ]
    ).encode()


def _decode(content: bytes) -> Recommendation:
    # An answer stored by a version that knew no vendors ends one field earlier.
    (recommendation_id, items, personalised, epsilon, spent, remaining, expires_at, vendor) = (
        *json.loads(content),
        None,
    )[:8]
    return Recommendation(
        recommendation_id=recommendation_id,
        items=tuple(items),
        personalised=personalised,
        privacy=PrivacyReport(
            epsilon=epsilon,
            spent=spent and Budget(epsilon=spent[0], delta=spent[1]),
            remaining=remaining and Budget(epsilon=remaining[0], delta=remaining[1]),
        ),
        expires_at=expires_at,
        vendor=vendor,
    )
