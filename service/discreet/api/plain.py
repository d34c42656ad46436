"""The short way to read bodies: plain ones, which most are.

A plain question names a recommender and a client, and may give a context, sparse features or a
round; a plain piece of feedback gives an id and a reward. Parsing such a body and looking at its
few values costs a fifth of validating a model with a dozen fields. Whatever is not plain, or not
sound, is left to the models (`schemas`, `bodies`), which take it or say what is wrong with it. So
nothing is accepted here that they would refuse, and nothing is read in another way; tests hold the
two together.

A name that stands twice in an object shows by its quotation marks: there are more of them than what
was read has strings.
"""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, TypeGuard, TypeVar

from pydantic_core import from_json

from discreet.api.schemas import LONGEST_TOKEN, MOST_BATCH
from discreet.families.contexts import MOST_FIELDS
from discreet.families.items import LONGEST_IDENTIFIER, MOST_FEATURES, MOST_NONZEROS
from discreet.families.questions import Ask, Feedback, Sparse

T = TypeVar("T")
_MOST_NUMBERS = 1_000
_SCALARS = (float, int, bool, type(None))
_LARGEST = 2.0**53
"""Of a reward that is read here: also as an integer it is exact."""


Take = Callable[[Any], tuple[T, int] | None]
"""Returns what a parsed value means if it is plain and sound, and how many quotation marks it is
written with."""


def read_one(take: Take[T], body: bytes) -> T | None:
    """Return what a plain body holds, None if it is not plain."""
    found = take(_parsed(body))
    return None if found is None or found[1] != body.count(b'"') else found[0]


def read_many(take: Take[T], name: str, body: bytes) -> Sequence[T] | None:
    """Return the entries of a batch of which every one is plain."""
    batch = _parsed(body)
    if type(batch) is not dict or len(batch) != 1 or type(entries := batch.get(name)) is not list:
        return None
    if len(entries) > MOST_BATCH:
        return None
    values, marks = [], 2
    for entry in entries:
        found = take(entry)
        if found is None:
            return None
        values.append(found[0])
        marks += found[1]
    return values if marks == body.count(b'"') else None


def _parsed(body: bytes) -> Any:
    if b"\\" in body:
        return None  # a quotation mark in a string is no mark of one
    try:
        return from_json(body)
    except ValueError:
        return None


def plain_ask(fields: Any) -> tuple[Ask, int] | None:
    """Return a question with a recommender and a client, and at most one of a context, sparse
    features and a round."""
    if type(fields) is not dict or not 2 <= len(fields) <= 3:
        return None
    recommender, client = fields.get("recommender"), fields.get("client")
    if not (_is_identifier(recommender) and _is_identifier(client)):
        return None
    if len(fields) == 2:
        return Ask(recommender, client, []), 8
    context = fields.get("context")
    if context is not None:
        marks = _context_marks(context)
        return None if marks is None else (Ask(recommender, client, context), 10 + marks)
    if "features" in fields:
        features = _sparse(fields["features"])
        if features is None:
            return None
        return Ask(recommender, client, [], features=features), 14
    round_ = fields.get("round")
    if not _is_identifier(round_):
        return None
    return Ask(recommender, client, [], round=round_), 12


def _is_identifier(value: Any) -> TypeGuard[str]:
    return type(value) is str and 0 < len(value) <= LONGEST_IDENTIFIER and value.isprintable()


def _context_marks(context: Any) -> int | None:
    """Return how many quotation marks a plain context is written with."""
    if type(context) is list:
        if not 0 < len(context) <= _MOST_NUMBERS:
            return None
        for value in context:
            if type(value) is not float or not 0.0 <= value <= 1.0:
                return None
        return 0
    if type(context) is not dict or len(context) > MOST_FIELDS:
        return None
    marks = 0
    for value in context.values():
        if type(value) is str:
            marks += 4
        elif type(value) in _SCALARS:
            marks += 2
        else:
            return None
    return marks


def _sparse(features: Any) -> Sparse | None:
    """Return a vector of ascending positions and finite numbers."""
    if type(features) is not dict or len(features) != 2:
        return None
    indices, values = features.get("indices"), features.get("values")
    if type(indices) is not list or type(values) is not list:
        return None
    if not len(indices) == len(values) <= MOST_NONZEROS:
        return None
    last = -1
    for index, value in zip(indices, values, strict=True):
        if type(index) is not int or not last < index < MOST_FEATURES:
            return None
        if type(value) is not float or not isfinite(value):
            return None
        last = index
    return Sparse(indices, values)


def plain_feedback(fields: Any) -> tuple[Feedback, int] | None:
    """Return feedback with a recommendation id and a reward, and nothing else."""
    if type(fields) is not dict or len(fields) != 2:
        return None
    reward, token = fields.get("reward"), fields.get("recommendation_id")
    if type(reward) is int:
        reward = float(reward) if -_LARGEST <= reward <= _LARGEST else None
    if type(reward) is not float or not -_LARGEST <= reward <= _LARGEST:
        return None
    if type(token) is not str or not 0 < len(token) <= LONGEST_TOKEN:
        return None
    return Feedback(reward, token), 6
