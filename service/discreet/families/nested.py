"""Nested features, as Personalizer's callers write them: flattened, crossed, and hashed.

A context is a list of objects, and so is what is known about an action; objects may hold objects.
Every value at the end of such a path is one feature, which a record has or has not:

| value | feature |
|---|---|
| a text, true or false | the path and the value: `user.device=phone` |
| a whole number from -31 to 31 | likewise: hours, weekdays and ratings are words |
| any other number | the path and its size, in steps of 1, 2, 5, 10, 20, …: `user.age` 20 to 50 |
| a list | a feature for each of its elements |
| null | none |

An action has its id as a feature as well. Features of a context cannot tell actions apart by
themselves; `cross` says which of them are multiplied with which features of actions. A feature, or
a product, is a position: its hash modulo `dimension`. Where two meet, they count together. The
hash is a fixed one: it hides nothing, and is the same in every worker, on every day.

A caller's protocol has no client. A header names whose request it is, or features that the
document lists (`client`): they are read and not learned from.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from discreet.errors import InvalidArgument
from discreet.families.documents import Document
from discreet.families.questions import Candidate, Sparse

CONTEXT, ACTION = "context", "action"
"""What `cross` calls all features of the one, and of the other."""
DEEPEST = 20
LONGEST_CLIENT = 200
_WORDS = 31

Name = Annotated[str, Field(strict=True, min_length=1, max_length=200)]
Pair = Annotated[list[Name], Field(min_length=2, max_length=2)]
Hashes = npt.NDArray[np.uint64]


class PersonalizerDocument(Document):
    """This recommender answers at `/personalizer/v1.0`; at most one can."""

    client: list[Name] = Field(
        default=["userId", "user.id"],
        max_length=16,
        description="Features of the context that name the client, by path, if no header does.",
    )
    cross: list[Pair] = Field(
        default=[[CONTEXT, ACTION]],
        max_length=64,
        description="Which features of the context are multiplied with which of an action: each "
        "by its name at the top, or `context` and `action` for all of them.",
    )


class NestedReader:
    """Reads one document's requests. `most` bounds the positions that an action may take."""

    PURPOSE: ClassVar[str] = "Personalizer's calls"
    ALONE: ClassVar[str] = "personalizer"
    """The calls name no recommender."""

    def __init__(self, document: PersonalizerDocument, *, dimension: int, most: int) -> None:
        self.client_names = tuple(document.client)
        self._hidden = frozenset(document.client)
        self._cross = document.cross
        self._dimension = np.uint64(dimension)
        self._most = most

    def client(self, context: Sequence[Any]) -> str | None:
        """Return who is named in the context, if anybody is."""
        named = {name: value for name, value in _leaves(context) if name in self._hidden}
        for name in self.client_names:
            value = named.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
            if value is not None:
                if not isinstance(value, str):
                    raise InvalidArgument(name, "names the client: it must be a text")
                return value
        return None

    def candidates(
        self, context: Sequence[Any], actions: Sequence[tuple[str, Sequence[Any]]]
    ) -> list[Candidate]:
        """Return the actions with all their features and products, each by its place."""
        known = self._features(context, "contextFeatures")
        found = []
        for place, (action, features) in enumerate(actions):
            where = f"actions[{place}].features"
            own = self._features(features, where)
            own.setdefault(ACTION, {})[f"\0{action}"] = None
            parts = [_hashes("action", own[ACTION])]
            for left, right in self._cross:
                first, second = known.get(left, {}), own.get(right, {})
                if len(first) * len(second) <= self._most:
                    one, other = _hashes("context", first), _hashes("action", second)
                    parts.append(_mixed(one[:, None] * _ODD ^ other[None, :]).reshape(-1))
                else:
                    raise _too_many(where, self._most)
            positions, counts = np.unique(
                np.concatenate(parts) % self._dimension, return_counts=True
            )
            if len(positions) > self._most:
                raise _too_many(where, self._most)
            values = counts.astype(np.float64)
            found.append(Candidate(action, Sparse(positions.tolist(), values.tolist())))
        return found

    def _features(self, given: Sequence[Any], where: str) -> dict[str, dict[str, None]]:
        """Return the names of features: by name at the top, and all of them together."""
        whole = CONTEXT if where == "contextFeatures" else ACTION
        names: dict[str, dict[str, None]] = {whole: {}}
        for path, value in _leaves(given):
            if path in self._hidden and whole == CONTEXT:
                continue
            name = f"{path}={_word(value, where)}"
            names[whole][name] = None
            names.setdefault(path.partition(".")[0], {})[name] = None
            if len(names[whole]) > self._most:
                raise _too_many(where, self._most)
        return names


def _too_many(where: str, most: int) -> InvalidArgument:
    return InvalidArgument(
        where,
        f"are too many: with those of the context, and multiplied as the document says, there may "
        f"be at most {most} (features.most_nonzeros)",
    )


def _leaves(given: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the values at the ends of all paths, with their paths."""
    if depth > DEEPEST:
        raise InvalidArgument("features", f"must not be nested more than {DEEPEST} deep")
    if isinstance(given, Mapping):
        for name, value in given.items():
            yield from _leaves(value, f"{path}.{name}" if path else name, depth + 1)
    elif isinstance(given, Sequence) and not isinstance(given, str):
        for value in given:
            yield from _leaves(value, path, depth + 1)
    elif given is not None:
        yield path, given


def _word(value: Any, where: str) -> str:
    """Return what stands for a value in the name of its feature."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidArgument(where, "must be texts, numbers that are finite, true, false or null")
    if number.is_integer() and abs(number) <= _WORDS:
        return str(int(number))
    digits, exponent = f"{abs(number):e}".split("e")
    step = max(each for each in (1, 2, 5) if float(digits) >= each)
    return f"{'-' if number < 0 else ''}{step}e{int(exponent)}"


_ODD = np.uint64(0x9E3779B97F4A7C15)


def _hashes(kind: str, names: Mapping[str, None]) -> Hashes:
    return np.array(
        [
            int.from_bytes(
                blake2b(
                    f"{kind}\0{name}".encode(errors="surrogatepass"),
                    digest_size=8,
                    person=b"nested feature",
                ).digest(),
                "little",
            )
            for name in names
        ],
        dtype=np.uint64,
    )


def _mixed(value: Hashes) -> Hashes:
    """Return numbers as good as random: the finalising steps of SplitMix64."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = value ^ (value >> np.uint64(31))
    return mixed
