"""What a team would build without us: FastAPI, MABWiser's LinUCB, and its state kept in Redis.

An answer's context is kept in Redis until feedback comes, because a model that learns needs it.
Feedback is taken once, updates the model, and is logged in Redis before it is acknowledged; every
hundredth feedback the model is pickled there as a whole, which is where a worker that starts finds
it. Between two such pickles other workers do not see what one has learned: that is what one gets
for this little code. It protects nobody.
"""

import os
import pickle
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import numpy as np
import redis.asyncio as redis
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from mabwiser.mab import MAB, LearningPolicy
from pydantic import BaseModel, Field

ITEMS = [f"item-{number}" for number in range(20)]
DIMENSIONS = 2
KEEP_SECONDS = 86_400
EVERY = 100

TAKE = """
local context = redis.call('GET', KEYS[1])
if not context then return false end
redis.call('DEL', KEYS[1])
redis.call('RPUSH', KEYS[2], ARGV[1] .. ' ' .. context)
return context
"""


class RecommendBody(BaseModel):
    recommender: str
    client: str
    context: list[Annotated[float, Field(ge=0, le=1)]]


class Item(BaseModel):
    id: str


class RecommendAnswer(BaseModel):
    recommendation_id: str
    items: list[Item]


class FeedbackBody(BaseModel):
    recommendation_id: str
    reward: Annotated[float, Field(ge=0, le=1)]


class FeedbackAnswer(BaseModel):
    accepted: bool
    duplicate: bool


def fresh() -> MAB:
    """Return a model that has seen next to nothing: MABWiser predicts only after a first fit."""
    model = MAB(ITEMS, LearningPolicy.LinUCB(alpha=1.0))
    model.fit(ITEMS, [0.0] * len(ITEMS), np.zeros((len(ITEMS), DIMENSIONS)))
    return model


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    client = redis.from_url(os.environ["BENCH_STORE"])
    kept = await client.get("alternative:model")
    # Our own pickle, from our own store.
    model = fresh() if kept is None else pickle.loads(kept)  # noqa: S301
    yield {"store": client, "take": client.register_script(TAKE), "model": model, "learned": [0]}
    await client.aclose()


app = FastAPI(lifespan=lifespan)


async def key(authorization: Annotated[str, Header()]) -> None:
    if authorization != f"Bearer {os.environ['BENCH_KEY']}":
        raise HTTPException(401)


@app.post("/recommend", dependencies=[Depends(key)])
async def recommend(ask: RecommendBody, request: Request) -> RecommendAnswer:
    context = np.array([ask.context])
    item = request.state.model.predict(context)
    name = secrets.token_urlsafe(16)
    await request.state.store.set(
        f"alternative:{{pending}}:{name}",
        f"{item} {' '.join(map(str, ask.context))}",
        ex=KEEP_SECONDS,
    )
    return RecommendAnswer(recommendation_id=name, items=[Item(id=item)])


@app.post("/feedback", dependencies=[Depends(key)])
async def feedback(given: FeedbackBody, request: Request) -> FeedbackAnswer:
    found = await request.state.take(
        keys=[f"alternative:{{pending}}:{given.recommendation_id}", "alternative:{pending}:log"],
        args=[given.reward],
    )
    if found is None:
        return FeedbackAnswer(accepted=True, duplicate=True)
    item, *numbers = found.decode().split()
    context = np.array([[float(number) for number in numbers]])
    request.state.model.partial_fit([item], [given.reward], context)
    request.state.learned[0] += 1
    if request.state.learned[0] % EVERY == 0:
        await request.state.store.set("alternative:model", pickle.dumps(request.state.model))
    return FeedbackAnswer(accepted=True, duplicate=False)
