"""What a local server of federated clusters takes: answers, feedback, a look at all users.

    python loadtests/bench_federation.py [--users 1000] [--dimensions 10] [--items 100]

Users have 40 observations each; the store is in memory, so what is measured is our own work. Prints
one JSON object; times are of one core's time.
"""

import argparse
import asyncio
import json
import math
import resource
import time

import numpy as np
import numpy.typing as npt

from discreet.families.questions import Ask, Feedback
from discreet.families.fclub.document import FederatedClustersDocument
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.fclub.users import believe, read_users
from discreet.decisions.feedback import give_feedback
from discreet.decisions.recommend import recommend
from discreet.decisions.runtime import Runtime
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore

OBSERVATIONS = 40
KINDS = 20
CALLS = 2_000
NAME = "bench"

Floats = npt.NDArray[np.float64]


def directions(rng: np.random.Generator, count: int, dimensions: int) -> Floats:
    """Return vectors of norm 0.95."""
    drawn = rng.normal(size=(count, dimensions))
    return np.asarray(0.95 * drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


async def fill(
    runtime: Runtime, recommender: ClusterRecommender, users: int, rng: np.random.Generator
) -> None:
    """Write users' sums straight into the store."""
    dimensions, privatizer = recommender.dimensions, recommender.privatizer
    tastes = directions(rng, KINDS, dimensions) / 2
    for user in range(users):
        address = recommender.user(runtime.principals.client(NAME, f"client-{user}"))
        items = np.trunc(directions(rng, OBSERVATIONS, dimensions) * 1024) / 1024
        chances = privatizer.baseline + items @ tastes[user % KINDS]
        steps = np.zeros(privatizer.fields, dtype=np.int64)
        for x, chance in zip(items, chances, strict=True):
            steps += privatizer.observation(x=x, reward=float(rng.random() < chance))
        await runtime.store.learn(
            address=address,
            increments=list(enumerate(steps.tolist())),
            claim=b"fill",
            reward=0,
            claim_ttl=60,
        )
        await runtime.store.index_cell(index=recommender.generation, address=address, level=0)


async def measure(users: int, dimensions: int, items: int, seed: int) -> dict[str, float]:
    """Return seconds and milliseconds by what was done."""
    rng = np.random.default_rng(seed)
    runtime = await Runtime.open(
        store=MemoryStore(), noise=SystemNoise(), lease_seconds=math.inf, survey_seconds=math.inf
    )
    catalogue = [
        {"id": f"item-{number}", "features": row.tolist()}
        for number, row in enumerate(directions(rng, items, dimensions))
    ]
    document = {
        "algorithm": "fclub",
        "role": "local",
        "dimensions": dimensions,
        "items": catalogue,
    }
    await runtime.registry.put(NAME, FederatedClustersDocument.model_validate(document))
    recommender = await runtime.registry.find(NAME)
    assert isinstance(recommender, ClusterRecommender)
    await fill(runtime, recommender, users, rng)
    began = time.process_time()
    everybody = await read_users(runtime, recommender)
    read = time.process_time()
    recommender.belief = believe(recommender, everybody, None)
    believed = time.process_time()
    tokens = []
    for call in range(CALLS):
        ask = Ask(recommender=NAME, client=f"client-{call % users}")
        tokens.append((await recommend(runtime, ask)).recommendation_id)
    asked = time.process_time()
    for token in tokens:
        await give_feedback(runtime, Feedback(reward=1.0, recommendation_id=token))
    told = time.process_time()
    await runtime.close()
    return {
        "users": users,
        "dimensions": dimensions,
        "items": items,
        "read_seconds": round(read - began, 3),
        "look_seconds": round(believed - read, 3),
        "clusters": recommender.belief.outlook.clusters,
        "answer_ms": round((asked - believed) / CALLS * 1e3, 3),
        "feedback_ms": round((told - asked) / CALLS * 1e3, 3),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def main() -> None:
    """Measure once and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--dimensions", type=int, default=10)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(json.dumps(asyncio.run(measure(args.users, args.dimensions, args.items, args.seed))))


if __name__ == "__main__":
    main()
