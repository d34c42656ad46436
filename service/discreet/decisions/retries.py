"""Answers under a caller's event id: a retry gets the stored answer, unchanged and free.

Three steps, each of which may be repeated after a crash without paying or answering twice. The
event is claimed first, so that an id used for two different questions is told apart before either
pays. The debit is made once, under the event's mark in the client's ledger. The first answer to be
stored is the answer for everybody; a draw that came second is thrown away unseen.

What is stored is sealed: the store sees neither the items nor the ledger's standing.
"""

import json

from discreet.families.questions import Ask, Candidate, Recommendation, Sparse, Vector
from discreet.families.observer import Answer
from discreet.decisions.recommender import Recommender
from discreet.decisions.runtime import Runtime
from discreet.families.budgets import FREE, PrivacyReport
from discreet.errors import EventReused
from discreet.privacy.accountants import Budget
from discreet.privacy.charges import Limit

_ANSWER = b"discreet answer"


async def recommend_once(runtime: Runtime, recommender: Recommender, ask: Ask) -> Recommendation:
    """Answer under an event id: the same question again gets the same answer and pays nothing."""
    assert ask.event_id is not None
    store, event = runtime.store, runtime.principals.event(ask.event_id)
    fingerprint = _fingerprint(runtime, ask)
    found = await store.claim_event(event=event, fingerprint=fingerprint, ttl=recommender.ttl)
    if found.fingerprint != fingerprint:
        raise EventReused("event_id already names a different request; use a new one")
    if found.answer is None:
        # Listed with the client, in the same round trip, whoever pays: erasing the client finds it.
        listed = store.spend(
            principal=runtime.principals.client(recommender.name, ask.client),
            charge=FREE,
            limit=Limit(),
            marker=event,
            marker_ttl=recommender.ttl,
        )
        family = runtime.families[recommender.algorithm]
        fresh = await family.answer(runtime, recommender, ask, marker=event)
        await listed
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
    wanted = None if ask.candidates is None else [_plain(one) for one in ask.candidates]
    parts = [json.dumps([*question, wanted]).encode(), json.dumps(list(ask.context)).encode()]
    if not (ask.features is None and ask.category is None and ask.round is None):
        features = None if ask.features is None else _numbers(ask.features)
        parts.append(json.dumps([features, ask.category, ask.round]).encode())
    return runtime.principals.request(parts)


def _plain(candidate: str | Candidate) -> object:
    if isinstance(candidate, str):
        return candidate
    return [candidate.id, _numbers(candidate.features)]


def _numbers(features: Vector) -> object:
    if isinstance(features, Sparse):
        return [list(features.indices), list(features.values)]
    return list(features)


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
            answer.round,
        ]
    ).encode()


def _decode(content: bytes) -> Recommendation:
    # An answer stored by a version that knew no rounds, or no vendors, ends earlier.
    fields = (*json.loads(content), None, None)
    recommendation_id, items, personalised, epsilon, spent, remaining, expires_at = fields[:7]
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
        vendor=fields[7],
        round=fields[8],
    )
