"""Every kind of recommender that can be asked for, told apart by `algorithm`."""

from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from service.decisions.clusters.document import FederatedClustersDocument
from service.decisions.collaborative.document import CollaborativeDocument
from service.decisions.documents import RecommenderDocument
from service.decisions.mirror.document import MirrorDescentDocument
from service.decisions.partition.document import AdaptivePartitionDocument
from service.decisions.voters.document import VotersDocument

EveryDocument = Annotated[
    AdaptivePartitionDocument
    | FederatedClustersDocument
    | CollaborativeDocument
    | MirrorDescentDocument
    | VotersDocument,
    Field(discriminator="algorithm"),
]
"""A recommender: its algorithm decides which fields there are."""

ALGORITHMS = ("p-dap", "fclub", "collaborative", "mirror-descent", "p-rec")

_ADAPTER: TypeAdapter[RecommenderDocument] = TypeAdapter(EveryDocument)


def read_document(fields: Any) -> RecommenderDocument:
    """Return the document that these fields make, or raise pydantic's `ValidationError`."""
    return _ADAPTER.validate_python(fields)


def read_document_json(content: bytes | str) -> RecommenderDocument:
    """Return the document in this JSON."""
    return _ADAPTER.validate_json(content)
