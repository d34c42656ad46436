"""Small recommenders by adaptive partition, for tests."""

import os
from typing import Any

from discreet.families.contract import Resources
from discreet.families.observer import NullObserver
from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.peering import NoPeers, PeerGateway
from discreet.families.stored import StoredDocument
from discreet.privacy.noise import NoiseSource
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from discreet.state.principals import Principals


def document(**changes: Any) -> AdaptivePartitionDocument:
    """Four items in two dimensions; `changes` replace whole top-level fields."""
    fields: dict[str, Any] = {
        "algorithm": "p-dap",
        "items": ["a", "b", "c", "d"],
        "context": {"dimensions": 2},
        **changes,
    }
    return AdaptivePartitionDocument.model_validate(fields)


def recommender(
    *,
    noise: NoiseSource | None = None,
    peers: PeerGateway | None = None,
    store: MemoryStore | None = None,
    **changes: Any,
) -> PartitionRecommender:
    """A recommender of that document, with noise that a test can repeat."""
    described = document(**changes)
    stored = StoredDocument(described, os.urandom(8), 0.0, {}, 0).with_document(described)
    return PartitionRecommender(
        name="films",
        stored=stored,
        resources=Resources(
            store=store or MemoryStore(),
            noise=noise or SeededNoise(1),
            observer=NullObserver(),
            principals=Principals(bytes(32)),
            peers=peers or NoPeers(),
            clock=lambda: 1_000.0,
        ),
    )
