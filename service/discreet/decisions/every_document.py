"""Every kind of recommender that can be asked for, told apart by `algorithm`."""

from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from discreet.families.fclub.document import FederatedClustersDocument
from discreet.families.collaborative.document import CollaborativeDocument
from discreet.families.documents import RecommenderDocument
from discreet.families.mirror_descent.document import MirrorDescentDocument
from discreet.families.p_dap.document import AdaptivePartitionDocument
from discreet.families.p_rec.document import VotersDocument

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
