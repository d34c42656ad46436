"""A small recommender of every family, with questions that differ in private data only.

A family without a sample here fails `test_families`: its promises have to be tried somewhere.
"""

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.families.collaborative.profiles import Profiles
from discreet.families.contract import Recommender, Resources
from discreet.families.observer import NullObserver
from discreet.families.p_rec.votes import Vote, Votes
from discreet.families.peering import NoPeers
from discreet.families.questions import (
    Ask,
    Feedback,
    PendingDecision,
    PendingFeedback,
    Receipt,
    Sparse,
)
from discreet.families.registration import FAMILIES, read_document
from discreet.families.stored import StoredDocument
from discreet.privacy.noise import NoiseSource
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from discreet.state.principals import Principals
from discreet.state.stores import Store

NOW = 1_800_000_000.0


async def _nothing(recommender: Recommender[Any]) -> None:
    """Most families need nothing but their document."""


async def _profiles(recommender: Recommender[Any]) -> None:
    profiles = recommender.part(Profiles)
    for place in range(12):
        items = [f"i{n}" for n in range(6) if (n + place) % 3]
        await profiles.keep(client=f"client {place}", items=items)


async def _rounds(recommender: Recommender[Any]) -> None:
    votes = recommender.part(Votes)
    for number in range(40):
        await votes.rounds.make(round_id=f"round {number}", objects=["yes", "no"])
        cast = [
            Vote(f"round {number}", f"voter {place}", "yes" if place % 2 else "no")
            for place in range(300)
        ]
        await votes.cast(cast)


@dataclass(frozen=True)
class Sample:
    """`asks` have the same public facts and different private ones."""

    document: Mapping[str, Any]
    asks: tuple[Mapping[str, Any], ...]
    prepare: Callable[[Recommender[Any]], Awaitable[None]] = field(default=_nothing)
    releases: bool = True


_FEATURES = [[0.6, 0.0, 0.8], [0.0, 1.0, 0.0], [0.9, 0.1, 0.2], [0.1, 0.2, 0.9]]

SAMPLES: dict[str, Sample] = {
    "contextual": Sample(
        {"items": [f"i{n}" for n in range(6)], "context": {"dimensions": 5}},
        ({"context": (0.1, 0.2, 0.9, 0.5, 0.3)}, {"context": (0.9, 0.8, 0.1, 0.0, 1.0)}),
    ),
    "p-dap": Sample(
        {"items": [f"i{n}" for n in range(6)], "context": {"dimensions": 2}},
        ({"context": (0.1, 0.2)}, {"context": (0.9, 0.8)}),
    ),
    "fclub": Sample(
        {
            "role": "local",
            "dimensions": 3,
            "items": [
                {"id": f"i{n}", "features": features} for n, features in enumerate(_FEATURES)
            ],
            "norms": "scale",
        },
        ({}, {}),
    ),
    "mirror-descent": Sample(
        {
            "features": {"clients": 10, "items": 10},
            "items": [
                {"id": f"i{n}", "features": {"indices": [n], "values": [1.0]}} for n in range(6)
            ],
        },
        (
            {"features": Sparse((1,), (1.0,))},
            {"features": Sparse((2,), (0.5,))},
        ),
    ),
    "collaborative": Sample(
        {"items": [f"i{n}" for n in range(6)]},
        ({}, {}),
        prepare=_profiles,
    ),
    "p-rec": Sample(
        {
            "objects": 2,
            "horizon": 60,
            "peers": 150,
            "voters": 1_000,
            "privacy": {"budget": {"epsilon": 20.0, "delta": 1e-6}},
        },
        ({}, {}),
        prepare=_rounds,
        releases=False,
    ),
}


def build(
    algorithm: str,
    *,
    store: Store | None = None,
    noise: NoiseSource | None = None,
    generation: bytes = b"generate",
    **changes: Any,
) -> Recommender[Any]:
    """Return the sample's recommender; `changes` replace whole fields of its document."""
    fields = {"algorithm": algorithm, **SAMPLES[algorithm].document, **changes}
    document = read_document(fields)
    stored = StoredDocument(document, generation, NOW - 1_000, {}, 0).with_document(document)
    return FAMILIES[algorithm](
        name="sample",
        stored=stored,
        resources=Resources(
            store=store or MemoryStore(),
            noise=noise or SeededNoise(0),
            observer=NullObserver(),
            principals=Principals(bytes(32)),
            peers=NoPeers(),
            clock=lambda: NOW,
        ),
    )


class OftenAsked:
    """Counts what a store is asked for, as /metrics does (`discreet.store_metrics`)."""

    def __init__(self) -> None:
        self.operations = Counter[str]()

    def stored(self, operation: str, seconds: float) -> None:
        self.operations[operation] += 1

    def store_failed(self, operation: str) -> None:
        raise AssertionError(operation)


def asks(algorithm: str, client: str = "someone") -> list[Ask]:
    """Return the sample's questions of a client."""
    return [Ask("sample", client, **fields) for fields in SAMPLES[algorithm].asks]


async def play(recommender: Recommender[Any], algorithm: str, *, rounds: int, seed: int) -> None:
    """Let some people ask and give feedback."""
    for place in range(rounds):
        client = f"person {(place + seed) % 7}"
        ask = asks(algorithm, client)[place % 2]
        question = recommender.question(ask)
        (answered,) = await recommender.answer([question], [None])
        decision = answered.decision  # type: ignore[union-attr]
        if not decision.choices:
            continue
        pending = PendingDecision(
            recommender.generation,
            decision.decision_id or os.urandom(12),
            int(NOW) + 1_000,
            question.client,
            decision.personalised,
            decision.choices,
            decision.note,
        )
        feedback = Feedback(reward=float((place + seed) % 2), item=decision.items[0])
        (receipt,) = await recommender.record_feedback([PendingFeedback(pending, feedback, 100)])
        assert isinstance(receipt, Receipt), receipt


async def release(recommender: Recommender[Any], noise: NoiseSource) -> None:
    """Make the next model and answer from it."""
    number = recommender.current.number + 1
    gathered = await recommender.gather(number)
    model = recommender.release(recommender.current.model, gathered, noise)
    recommender.adopt(number=number, released_at=NOW, model=model)
    await recommender.clean_up(number)
