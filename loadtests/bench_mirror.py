"""What sparse mirror descent costs: python loadtests/bench_mirror.py

Two bars: 100,000 records of 10,000 features with 50 non-zeros learned by 8 nodes within 60 seconds
of one core; and a recommendation among 100 candidates with 50 non-zeros each, of 1,000,000
features, within 2 ms of CPU, from the bytes of the request to the bytes of the answer. Feedback
and one broadcast are shown beside them. Run on a quiet machine; the memory store takes the place of
Redis, whose CPU is another process's.
"""

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import numpy as np

from discreet.api.direct import answer_feedback, answer_recommend
from discreet.families.questions import Ask, Candidate, Sparse
from discreet.families.mirror_descent.broadcasts import broadcast, refresh
from discreet.families.mirror_descent.document import MirrorDescentDocument
from discreet.families.mirror_descent.recommender import MirrorRecommender
from discreet.decisions.recommend import recommend
from discreet.decisions.runtime import Runtime
from discreet.privacy.noise import SystemNoise
from discreet.research.reproduce.mirror_descent_trials import MirrorTrial
from discreet.research.worlds.mirror_descent import social
from discreet.state.memory import MemoryStore

CANDIDATES, NONZEROS = 100, 50
ROUNDS = 300
BATCHES = 150


def learning() -> None:
    """Time the served reading, and the non-private one that broadcasts after every record."""
    social(0)
    for reading in ("served", "non-private"):
        began = time.process_time()
        run = MirrorTrial(reading, social, 100_000, 0, epsilon=1.0).run()  # type: ignore[arg-type]
        print(
            f"100,000 records, n=10,000, 50 non-zeros, 8 nodes, {reading}: "
            f"{time.process_time() - began:.1f} s of CPU (bar: 60), "
            f"accuracy {run.late_accuracy:.1%}, {run.releases} releases"
        )


def question(rng: np.random.Generator, dimension: int) -> bytes:
    """Return the body of a request, as a caller would send it."""
    candidates = [
        {
            "id": f"item {number}",
            "features": {
                "indices": np.sort(rng.choice(dimension, NONZEROS, replace=False)).tolist(),
                "values": rng.normal(size=NONZEROS).round(4).tolist(),
            },
        }
        for number in range(CANDIDATES)
    ]
    return json.dumps({"recommender": "feed", "client": "ada", "candidates": candidates}).encode()


def read_question(body: bytes) -> Ask:
    """Return the question as decisions take it."""
    fields = json.loads(body)
    candidates = [
        Candidate(one["id"], Sparse(one["features"]["indices"], one["features"]["values"]))
        for one in fields["candidates"]
    ]
    return Ask(recommender="feed", client="ada", candidates=candidates)


async def lowest(ask: Callable[[int], Awaitable[object]]) -> float:
    """Return the seconds of CPU of one question in the quickest of many small batches.

    On a shared machine the lowest is the steadier figure.
    """
    times = []
    for batch in range(BATCHES):
        began = time.process_time()
        for turn in range(4):
            await ask((4 * batch + turn) % 20)
        times.append((time.process_time() - began) / 4)
    return min(times)


async def requests(dimension: int) -> None:
    """Time recommendations and feedback from bytes to bytes."""
    runtime = await Runtime.open(
        store=MemoryStore(),
        noise=SystemNoise(),
        lease_seconds=math.inf,
        survey_seconds=math.inf,
    )
    document = {
        "algorithm": "mirror-descent",
        "features": {"dimension": dimension},
        "privacy": {"budget": {"epsilon": 100_000.0, "delta": 1e-6}},
    }
    await runtime.registry.put("feed", MirrorDescentDocument.model_validate(document))
    recommender = await runtime.registry.find("feed")
    assert isinstance(recommender, MirrorRecommender)
    rng = np.random.default_rng(0)
    weights = rng.normal(size=dimension).astype(np.float32)
    recommender.model = replace(recommender.model, weights=weights)
    bodies = [question(rng, dimension) for _ in range(20)]
    questions = [read_question(body) for body in bodies]
    whole = await lowest(lambda turn: answer_recommend(runtime, bodies[turn]))
    deciding = await lowest(lambda turn: recommend(runtime, questions[turn]))
    answers = [await answer_recommend(runtime, bodies[turn % 20]) for turn in range(ROUNDS)]
    told = [
        json.dumps(
            {"recommendation_id": json.loads(one)["recommendation_id"], "reward": turn % 2}
        ).encode()
        for turn, one in enumerate(answers)
    ]
    began = time.process_time()
    for body in told:
        await answer_feedback(runtime, body)
    heard = (time.process_time() - began) / ROUNDS
    print(
        f"n={dimension:,}: {1000 * whole:.2f} ms of CPU a recommendation among {CANDIDATES} "
        f"candidates of {NONZEROS} non-zeros (bar: 2), of which {1000 * deciding:.2f} after its "
        f"{len(bodies[0]) // 1000} kB of JSON were read; {1000 * heard:.2f} ms a feedback"
    )

    async def keep() -> bool:
        return True

    began = time.process_time()
    await broadcast(runtime, recommender, keep)
    await refresh(runtime, recommender)
    print(f"n={dimension:,}: {time.process_time() - began:.1f} s of CPU a broadcast")
    await runtime.close()


def main() -> None:
    """Measure everything once."""
    learning()
    for dimension in (10_000, 1_000_000):
        asyncio.run(requests(dimension))


if __name__ == "__main__":
    main()
