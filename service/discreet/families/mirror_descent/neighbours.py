"""Mixing rounds: ask every neighbour what it knows, and move towards it.

Each node asks; nobody has to be told anything. A neighbour that does not answer has no voice in
the round, and its weight stays with us. One that has nothing new says so in a few bytes and is
mixed in as it was. Mixing costs no privacy: all of it was released before.
"""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
from pydantic_core import to_json

from discreet.families.mirror_descent.mixing import mixed, own_weights
from discreet.families.mirror_descent.broadcasts import Known, announce, load_known, save_known
from discreet.families.mirror_descent.document import NeighbourDocument
from discreet.families.mirror_descent.letters import Letter, read_letter
from discreet.families.mirror_descent.recommender import MirrorRecommender
from discreet.families.observer import Count, Figure
from discreet.errors import InvalidArgument, PeerUnavailable

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

MODELS = "models"
_STILL = 1e-4
_EXACT = 1e-6
"""A round changes nothing if it moves no coordinate by more than this share of the noise, or of
the largest coordinate: letters are written in 32 bits."""


def letter_of(recommender: MirrorRecommender, known: Known) -> Letter:
    """Return what we tell a neighbour."""
    return Letter(
        revision=recommender.generation + known.version.to_bytes(8, "little"),
        dimension=recommender.learner.dimension,
        degree=len(recommender.document.neighbours),
        count=known.count,
        theta=known.theta,
    )


async def mix(runtime: "Runtime", recommender: MirrorRecommender) -> bool:
    """Do one round; tell whether it changed anything."""
    neighbours = recommender.document.neighbours
    answers = await asyncio.gather(*(_ask(runtime, recommender, one) for one in neighbours))
    letters: dict[str, Letter] = {}
    states = {"fresh": 0, "stale": 0, "missing": 0}
    for neighbour, answer in zip(neighbours, answers, strict=True):
        before = recommender.heard.get(neighbour.name)
        if answer is not None and answer.theta is None and before is not None:
            answer = replace(before, degree=answer.degree)
            states["stale"] += 1
        elif answer is None or answer.theta is None:
            states["missing"] += 1
            continue
        else:
            states["fresh"] += 1
        letters[neighbour.name] = recommender.heard[neighbour.name] = answer
    for state, value in states.items():
        runtime.observer.figure(
            recommender=recommender.name, what=Figure.NEIGHBOURS, value=value, label=state
        )
    known = await load_known(runtime, recommender)
    changed = await asyncio.to_thread(_mixed, recommender, known, letters)
    version = known.version
    if changed is not None:
        saved = await save_known(runtime, recommender, changed)
        if saved is None:
            return False  # a broadcast came in between: the next round will see it
        version = saved
        runtime.observer.count(recommender=recommender.name, what=Count.MIXING_ROUNDS)
    await announce(
        runtime,
        recommender,
        version=version,
        counted=known.counted,
        broadcast_at=recommender.broadcast_at,
        mixed_at=runtime.clock(),
    )
    return changed is not None


def _mixed(
    recommender: MirrorRecommender, known: Known, letters: dict[str, Letter]
) -> Known | None:
    """Return what we know after hearing these neighbours; None if it is what we knew."""
    degrees = {
        one.name: letters[one.name].degree if one.name in letters else 0
        for one in recommender.document.neighbours
    }
    weights = own_weights(degrees, list(letters))
    told = [(weights[name], letter) for name, letter in letters.items()]
    theta = mixed(
        known.theta,
        [(weight, letter.theta) for weight, letter in told if letter.theta is not None],
    )
    count = known.count + sum(weight * (letter.count - known.count) for weight, letter in told)
    moved = float(np.abs(theta - known.theta).max(initial=0.0))
    still = _STILL * float(np.median(np.abs(theta))) + _EXACT * float(np.abs(theta).max(initial=0))
    if moved <= still and abs(count - known.count) <= 0.5:
        return None
    return replace(known, theta=theta, count=count)


async def _ask(
    runtime: "Runtime", recommender: MirrorRecommender, neighbour: NeighbourDocument
) -> Letter | None:
    """Return a neighbour's letter, or None if there is none that can be used."""
    if not runtime.peers.reachable(neighbour.name):
        return None
    before = recommender.heard.get(neighbour.name)
    content = to_json({"seen": "" if before is None else before.revision.hex()})
    name = quote(neighbour.recommender or recommender.name, safe="")
    outcome, letter = "refused", None
    try:
        status, body = await runtime.peers.post(
            peer=neighbour.name,
            url=f"{neighbour.url}/peers/recommenders/{name}/{MODELS}",
            content=content,
        )
        if status == 200:
            letter = await asyncio.to_thread(
                read_letter, body, dimension=recommender.learner.dimension
            )
            outcome = "answered"
        else:
            runtime.peers.distrust(peer=neighbour.name)
    except PeerUnavailable as failure:
        outcome = failure.reason
    except InvalidArgument:
        outcome = "malformed"
        runtime.peers.distrust(peer=neighbour.name)
    runtime.observer.exchanged(
        recommender=recommender.name,
        peer=neighbour.name,
        direction="sent",
        outcome=outcome,
        size=len(content),
    )
    return letter
