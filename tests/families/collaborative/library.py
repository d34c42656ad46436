"""A small library: two tastes, and readers of each."""

from typing import Any

from discreet.families.collaborative.document import CollaborativeDocument
from discreet.families.collaborative.family import CollaborativeFamily
from discreet.families.collaborative.profiles import keep_profile
from discreet.families.collaborative.recommender import CollaborativeRecommender
from discreet.decisions.recommend import Ask, Recommendation, recommend
from discreet.decisions.runtime import Runtime

CRIME = ("knife", "alibi", "motive", "clue")
SPACE = ("comet", "rocket", "orbit", "crater")


def document(**changes: Any) -> CollaborativeDocument:
    """Eight books in two categories, one of them in both."""
    fields: dict[str, Any] = {
        "algorithm": "collaborative",
        "items": [
            *({"id": id_, "title": id_.title(), "categories": ["crime"]} for id_ in CRIME[:-1]),
            {"id": "clue", "categories": ["crime", "space"]},
            *({"id": id_, "categories": ["space"]} for id_ in SPACE),
        ],
        **changes,
    }
    return CollaborativeDocument.model_validate(fields)


async def found(runtime: Runtime) -> CollaborativeRecommender:
    """Return the recommender called books."""
    one = await runtime.registry.find("books")
    assert isinstance(one, CollaborativeRecommender)
    return one


async def send(runtime: Runtime, client: str, *items: str, replace: bool = True) -> int:
    """Send a profile."""
    books = await found(runtime)
    slots = books.slots_of(items)
    return await keep_profile(runtime, books, client=client, slots=slots, replace=replace)


async def read_by_others(runtime: Runtime) -> None:
    """Have some read crime, and fewer read of space."""
    for reader in range(4):
        await send(runtime, f"crime {reader}", *CRIME[: 3 + reader % 2])
    for reader in range(3):
        await send(runtime, f"space {reader}", *SPACE)


def family(runtime: Runtime) -> CollaborativeFamily:
    """Return the worker's family."""
    one = runtime.families["collaborative"]
    assert isinstance(one, CollaborativeFamily)
    return one


async def train(runtime: Runtime) -> bool:
    """Train now, if that is due."""
    return await family(runtime).train(runtime, await found(runtime))


async def ask(runtime: Runtime, client: str, **more: Any) -> Recommendation:
    """Ask for as many books as there are, unless told otherwise."""
    return await recommend(
        runtime, Ask(**{"recommender": "books", "client": client, "limit": 8, **more})
    )
