"""A recommender of every family, filled so that it answers for real, and what callers send it.

Each has items, people who like some of them, and a released model that was learned from what they
said. p-rec has rounds with votes, collaborative has profiles.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from callers import MOST, Caller, batch_body, chunks, ids_of
from drive import recommend_bodies
from growth import wait_for_release
from mixed import sparse
from stage import PATIENCE, PLENTY, PRIVATE, Target, document

OFTEN, SELDOM = {"seconds": 0.2, "growth": 0.0}, {"seconds": 86_400.0}
"""Releases while a recommender is being filled, and afterwards."""
PEOPLE = 1_000
ITEMS, OBJECTS, VOTERS, ROUNDS, GUESTS = 100, 5, 3_000, 60, 4_000


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One recommender, what a question to it says, and what people like.

    `told` is how much feedback comes before anything is measured. `once` says that the same
    question again would be answered with the same, from what is kept.
    """

    name: str
    document: Mapping[str, Any]
    asks: Callable[[int], Mapping[str, Any]]
    likes: Callable[[int, str], bool] = lambda number, item: int(item[-1]) % 2 == number % 2
    people: int = PEOPLE
    told: int = 4_000
    once: bool = False

    @property
    def recommender(self) -> str:
        """Its name at the server."""
        return "kind-" + self.name.replace(",", "").replace(" ", "-")

    def bodies(self, count: int, *, start: int = 0) -> list[str]:
        """Return questions, the `start`-th and on, of one person after the other."""
        return [
            self._body(f"client-{number % self.people}", number)
            for number in range(start, start + count)
        ]

    def strangers(self, count: int, *, start: int) -> list[str]:
        """Return first questions, each of somebody else."""
        return [self._body(f"stranger-{start + number}", 0) for number in range(count)]

    def _body(self, client: str, number: int) -> str:
        asked = {"recommender": self.recommender, "client": client, **self.asks(number)}
        return json.dumps(asked)


def kinds() -> list[Kind]:
    """Return all that can be served here."""
    found = [
        Kind(name="p-dap, 20 dimensions", document=document(dimensions=20), asks=_context(20)),
        Kind(name="p-dap, 1,000 items", document=document(items=1_000), asks=_context(2)),
        Kind(
            name="contextual",
            document=document(algorithm="contextual"),
            asks=_context(2),
        ),
        _clusters(10),
        _clusters(40),
        _mirror_descent(),
        _voters(),
    ]
    return [*found, _collaborative()] if find_spec("implicit") else found


def _context(dimensions: int) -> Callable[[int], Mapping[str, Any]]:
    def asks(number: int) -> Mapping[str, Any]:
        (body,) = recommend_bodies(1, start=number, dimensions=dimensions)
        return {"context": json.loads(body)["context"]}

    return asks


def _clusters(dimensions: int) -> Kind:
    """Four kinds of people, each of whom looks at another coordinate of what is shown."""
    drawn = np.random.default_rng(0).normal(size=(ITEMS, dimensions))
    rows = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).round(4).tolist()
    items = [{"id": f"item-{at}", "features": row} for at, row in enumerate(rows)]
    return Kind(
        name=f"fclub, {dimensions} dimensions",
        document={
            "algorithm": "fclub",
            "role": "local",
            "dimensions": dimensions,
            "norms": "scale",
            "items": items,
            "privacy": PRIVATE,
        },
        asks=lambda number: {},
        likes=lambda number, item: rows[int(item.removeprefix("item-"))][number % 4] > 0,
        told=12 * PEOPLE,
    )


def _mirror_descent() -> Kind:
    """People, who have three features each, like items with an even first feature."""
    items = [{"id": f"item-{at}", "features": sparse(at)} for at in range(ITEMS)]
    return Kind(
        name="mirror-descent",
        document={
            "algorithm": "mirror-descent",
            "features": {"clients": 100, "items": 100},
            "items": items,
            "privacy": PRIVATE,
        },
        asks=lambda number: {"features": sparse(number % PEOPLE)},
        likes=lambda number, item: int(item[-1]) % 2 == 0,
        told=12_000,
    )


def _collaborative() -> Kind:
    return Kind(
        name="collaborative",
        document={
            "algorithm": "collaborative",
            "items": [f"item-{number}" for number in range(ITEMS)],
            "privacy": {"answers": "on-device", "feedback": PRIVATE["feedback"]},
        },
        asks=lambda number: {},
    )


def _voters() -> Kind:
    """Rounds that everybody goes through; a third of the voters vote as people like."""
    return Kind(
        name="p-rec",
        document={
            "algorithm": "p-rec",
            "objects": OBJECTS,
            "voters": VOTERS,
            "horizon": 999,
            "peers": 750,
            "privacy": {"budget": PLENTY},
        },
        asks=lambda number: {"round": f"round-{number // GUESTS % ROUNDS}"},
        likes=lambda number, item: item.endswith("0"),
        people=GUESTS,
        told=GUESTS,
        once=True,
    )


def fill(target: Target, kind: Kind) -> float:
    """Give it what it learns from, let it release, and return the share of personal answers."""
    releases = kind.name != "p-rec"  # its answers are the release
    target.put(kind.recommender, {**kind.document, **({"releases": OFTEN} if releases else {})})
    if kind.name == "p-rec":
        _hold_rounds(target, kind)
    if kind.name == "collaborative":
        _send_profiles(target, kind)
    bodies = kind.bodies(kind.told)
    tell(target, kind, bodies)
    if releases:
        wait_for_release(target, kind.recommender, bodies[0])
        target.put(kind.recommender, {**kind.document, "releases": SELDOM})
    last = kind.bodies(MOST, start=kind.told)
    with Caller(target) as caller:
        answer = caller.post_batch("recommend", batch_body("recommend", last), MOST)
    return answer.count(b'"personalised":true') / MOST


def tell(target: Target, kind: Kind, bodies: Sequence[str]) -> None:
    """Ask, and answer with what people like, one batch after the other."""
    with Caller(target) as caller:
        for place, chunk in enumerate(chunks(bodies)):
            asked = caller.post_batch("recommend", batch_body("recommend", chunk), len(chunk))
            shown = [one["items"][0]["id"] for one in json.loads(asked)["results"]]
            told = [
                json.dumps({"recommendation_id": each, "reward": int(kind.likes(number, item))})
                for number, (each, item) in enumerate(
                    zip(ids_of(asked), shown, strict=True), start=MOST * place
                )
            ]
            caller.post_batch("feedback", batch_body("feedback", told), len(chunk))


def _hold_rounds(target: Target, kind: Kind) -> None:
    objects = [f"object-{place}" for place in range(OBJECTS)]
    path = f"/recommenders/{kind.recommender}"
    with Caller(target) as caller:
        for number in range(ROUNDS):
            others = [objects[(voter + number) % OBJECTS] for voter in range(VOTERS)]
            votes = {f"v{at}": objects[0] if at % 3 == 0 else one for at, one in enumerate(others)}
            name = f"round-{number}"
            made = json.dumps({"id": name, "objects": objects})
            caller.post(f"{path}/rounds", made.encode(), fine=(200, 201))
            cast = json.dumps({"round": name, "votes": votes})
            caller.post(f"{path}/votes", cast.encode())


def _send_profiles(target: Target, kind: Kind) -> None:
    with Caller(target) as caller:
        for number in range(PEOPLE):
            items = [f"item-{(number + 13 * step) % ITEMS}" for step in range(10)]
            sent = json.dumps({"client": f"client-{number}", "items": items})
            caller.post(f"/recommenders/{kind.recommender}/profiles", sent.encode())
        deadline = time.monotonic() + PATIENCE
        while target.sample("discreet_profiles", kind.recommender) < PEOPLE:
            # Nothing is released for a recommender that nobody asks.
            caller.post("/recommend", kind.bodies(1)[0].encode())
            if time.monotonic() > deadline:
                raise SystemExit(f"collaborative: no training was done within {PATIENCE:g} s")
            time.sleep(0.1)
