"""Everybody's sums, read at one moment, and what a worker makes of them.

Each worker looks for itself, beside the request path: clusters are found in exact sums, serve this
server's own users and are told to nobody, so workers need not agree on them.
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.families.fclub.clusters import Outlook
from discreet.families.fclub.evidence import Knowledge
from discreet.families.fclub.letters import STEPS
from discreet.families.fclub.recommender import Belief, ClusterRecommender
from discreet.families.fclub.view import View, stored_view
from discreet.families.observer import Figure
from discreet.privacy.matrices import half_size

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

MOST_USERS = 50_000
"""Users that are looked at; of more, a uniform sample at every look."""
_AT_ONCE = 200
"""Sums read in one round trip, so that requests need not wait behind thousands."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Users:
    """The addresses of users, ascending, and their sums, a row each."""

    addresses: tuple[bytes, ...]
    steps: Integers


async def read_users(runtime: "Runtime", recommender: ClusterRecommender) -> Users:
    """Return everybody who has given feedback."""
    found = await runtime.store.cells(index=recommender.generation, most=MOST_USERS)
    addresses = sorted(found)
    steps = np.zeros((len(addresses), recommender.privatizer.fields), dtype=np.int64)
    for start in range(0, len(addresses), _AT_ONCE):
        vectors = await runtime.store.read(addresses=addresses[start : start + _AT_ONCE])
        for place, vector in enumerate(vectors):
            steps[start + place, : len(vector)] = vector
    there = steps[:, 0] > 0
    kept = tuple(address for address, real in zip(addresses, there, strict=True) if real)
    return Users(kept, steps[there])


async def look(runtime: "Runtime", recommender: ClusterRecommender) -> None:
    """Bring a worker's belief about its users up to date."""
    view = await stored_view(runtime, recommender)
    users = await read_users(runtime, recommender)
    recommender.belief = await asyncio.to_thread(believe, recommender, users, view)
    runtime.observer.figure(
        recommender=recommender.name,
        what=Figure.CLUSTERS,
        value=recommender.belief.outlook.clusters,
    )


def believe(recommender: ClusterRecommender, users: Users, view: View | None) -> Belief:
    """Return what the users' sums and other servers' letters say together."""
    dimensions, learner = recommender.dimensions, recommender.learner
    if not users.addresses:
        nobody = Knowledge.nothing(dimensions=dimensions, pieces=0)
        known = nobody if view is None else view.foreign
        return Belief({}, Outlook(labels=np.zeros(0, np.int64), others=nobody, total=known))
    half = half_size(dimensions)
    upper = np.triu_indices(dimensions)
    grams = np.zeros((len(users.addresses), dimensions, dimensions))
    grams[:, upper[0], upper[1]] = grams[:, upper[1], upper[0]] = users.steps[:, 1 : 1 + half]
    moments = users.steps[:, 1 + half :] / recommender.privatizer.weight
    outlook = learner.outlook(
        users=learner.knowledge(grams=grams / STEPS, moments=moments / STEPS),
        foreign=None if view is None else view.foreign,
    )
    return Belief({address: place for place, address in enumerate(users.addresses)}, outlook)
