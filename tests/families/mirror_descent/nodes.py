"""A node of sparse mirror descent, and what tests do with it."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.errors import DiscreetError
from discreet.families.mirror_descent.document import MirrorDescentDocument
from discreet.families.mirror_descent.recommender import MirrorDescentRecommender
from discreet.families.observer import NullObserver, Observer
from discreet.families.peering import NoPeers, PeerGateway
from discreet.families.questions import (
    Answered,
    Ask,
    Candidate,
    Feedback,
    PendingDecision,
    PendingFeedback,
    Receipt,
    Sparse,
)
from discreet.families.resources import Resources
from discreet.families.stored import StoredDocument
from discreet.privacy.noise import NoiseSource, SystemNoise
from discreet.state.memory import MemoryStore
from discreet.state.principals import Principals
from discreet.state.stores import Store

DIMENSION = 10_000
MODEL = b"model"


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def node(**changes: Any) -> MirrorDescentDocument:
    """A document whose answers are exact, so that a test knows what comes first."""
    privacy = {"answers": "exact", **changes.pop("privacy", {})}
    fields: dict[str, Any] = {
        "algorithm": "mirror-descent",
        "features": {"dimension": DIMENSION},
        "exploration": {"rate": 0.0},
        "privacy": privacy,
        **changes,
    }
    return MirrorDescentDocument.model_validate(fields)


def built(
    document: MirrorDescentDocument | None = None,
    *,
    store: Store | None = None,
    noise: NoiseSource | None = None,
    observer: Observer | None = None,
    peers: PeerGateway | None = None,
    clock: Clock | None = None,
    like: MirrorDescentRecommender | None = None,
) -> MirrorDescentRecommender:
    """Build a recommender; `like` another one, it is that one in another worker."""
    document = document or node()
    clock = clock or Clock()
    stored = (
        StoredDocument(document, os.urandom(8), clock(), {}, 0) if like is None else like.stored
    )
    if like is not None:
        store = like.store
    return MirrorDescentRecommender(
        name="feed",
        stored=stored.with_document(document),
        resources=Resources(
            store=store or MemoryStore(clock=clock),
            noise=noise or SystemNoise(),
            observer=observer or NullObserver(),
            principals=Principals(b"p" * 32),
            peers=peers or NoPeers(),
            clock=clock,
        ),
    )


def candidate(item: str, *features: tuple[int, float]) -> Candidate:
    return Candidate(item, Sparse([i for i, _ in features], [v for _, v in features]))


PAIR = [candidate("tea", (7, 1.0), (5_000, 0.5)), candidate("milk", (8, 1.0), (9_999, 0.5))]
SMALL = [candidate("tea", (7, 1.0)), candidate("milk", (8, 1.0))]
"""For nodes of few features, whose noise is drawn faster."""


def ask(**changes: Any) -> Ask:
    return Ask(**{"recommender": "feed", "client": "ada", "candidates": PAIR, **changes})


async def answer(recommender: MirrorDescentRecommender, **changes: Any) -> Answered:
    """Ask one question, and raise what went wrong."""
    (answered,) = await recommender.answer([recommender.question(ask(**changes))], [None])
    if isinstance(answered, DiscreetError):
        raise answered
    return answered


def pending(
    recommender: MirrorDescentRecommender, answered: Answered, client: str = "ada"
) -> PendingDecision:
    """What the recommendation id of an answer carries."""
    decision = answered.decision
    return PendingDecision(
        generation=recommender.generation,
        decision_id=os.urandom(12),
        expires_at=2**31,
        principal=recommender.principal(client),
        personalised=decision.personalised,
        choices=decision.choices,
        note=decision.note,
    )


async def give_feedback(
    recommender: MirrorDescentRecommender,
    decision: PendingDecision,
    reward: float,
    item: str | None = None,
) -> Receipt:
    """Give feedback, and raise what went wrong."""
    feedback = Feedback(reward=reward, item=item)
    (receipt,) = await recommender.record_feedback([PendingFeedback(decision, feedback, 60)])
    if isinstance(receipt, DiscreetError):
        raise receipt
    return receipt


async def teach(
    recommender: MirrorDescentRecommender,
    records: int,
    *,
    client: str = "{}",
    pair: Sequence[Candidate] = PAIR,
) -> list[Receipt]:
    """Tea is liked, milk is not."""
    receipts = []
    for number in range(records):
        chosen, who = pair[number % 2], client.format(number)
        answered = await answer(recommender, client=who, candidates=[chosen])
        reward = 1.0 if chosen.id == "tea" else 0.0
        receipts.append(
            await give_feedback(recommender, pending(recommender, answered, who), reward)
        )
    return receipts


async def gathered(recommender: MirrorDescentRecommender) -> np.ndarray[Any, Any]:
    """What waits for the next release: the number of records, then gradients by feature.

    Reading it freezes it under the number of that release, as the releaser would.
    """
    blocks = await recommender.gather(recommender.current.number + 1)
    total = recommender.learner.summed(blocks).astype(np.float64)
    return np.concatenate([total[:1] / recommender.learner.count_steps, total[1:] / 2**20])


async def release(recommender: MirrorDescentRecommender, noise: NoiseSource | None = None) -> bool:
    """Do what the releaser does; tell whether the model was stored."""
    current = recommender.current
    number = current.number + 1
    blocks = await recommender.gather(number)
    model = recommender.release(current.model, blocks, noise or recommender.noise)
    saved = await recommender.store.save(
        key=recommender.key(MODEL), content=recommender.encode(model), expected=current.number
    )
    if saved is None:
        return False
    recommender.adopt(number=number, released_at=recommender.clock(), model=model)
    await recommender.clean_up(number)
    return True


async def load(recommender: MirrorDescentRecommender) -> None:
    """Do what every worker does when there is a newer model."""
    (blob,) = await recommender.store.load(keys=[recommender.key(MODEL)])
    if blob is not None and blob.version > recommender.current.number:
        recommender.adopt(
            number=blob.version,
            released_at=recommender.clock(),
            model=recommender.decode(blob.content),
        )
