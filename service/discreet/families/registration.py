"""Every family, by the `algorithm` of its documents: the one list of them.

A further family is its package and one line here (or one call of `register`, before the server is
imported).
"""

from functools import lru_cache
from typing import Annotated, Any, Union

from pydantic import Field, TypeAdapter
from pydantic_core import to_json

from discreet.families.collaborative.recommender import CollaborativeRecommender
from discreet.families.contextual.recommender import ContextualRecommender
from discreet.families.contract import Recommender
from discreet.families.documents import RecommenderDocument
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.mirror_descent.recommender import MirrorDescentRecommender
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.p_rec.recommender import VotersRecommender
from discreet.families.stored import StoredDocument, decode

FAMILIES: dict[str, type[Recommender[Any]]] = {}


def register(family: type[Recommender[Any]]) -> None:
    """Add a family."""
    FAMILIES[family.algorithm] = family
    _adapter.cache_clear()


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[RecommenderDocument]:
    return TypeAdapter(every_document())


def every_document() -> Any:
    """Return the type of every recommender's document; `algorithm` tells them apart."""
    documents = tuple(family.document_class for family in FAMILIES.values())
    return Annotated[Union[documents], Field(discriminator="algorithm")]  # noqa: UP007


def read_document(fields: Any) -> RecommenderDocument:
    """Return the document that these fields make, or raise pydantic's `ValidationError`."""
    return _adapter().validate_python(fields)


def read_stored(content: bytes) -> StoredDocument:
    """Return the record that `StoredDocument.encode` wrote, or raise `UnreadableRecord`."""
    return decode(content, lambda fields: _adapter().validate_json(to_json(fields)))


for each in (
    ContextualRecommender,
    PartitionRecommender,
    ClusterRecommender,
    MirrorDescentRecommender,
    VotersRecommender,
    CollaborativeRecommender,
):
    register(each)
