"""The floor that `bench` compares with: an ordinary FastAPI endpoint with one redis-py script call.

It checks a key, validates a body, runs one script that touches one key, and answers a body of the
same shape as Discreet's. It protects nobody and learns nothing.
"""

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import redis.asyncio as redis
from fastapi import Depends, FastAPI, Header, HTTPException, Request
from pydantic import BaseModel, Field

SPEND = """
local total = redis.call('INCRBY', KEYS[1], ARGV[1])
if total > tonumber(ARGV[2]) then return {0, total} end
return {1, total}
"""
LEARN = """
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'EX', 3600) then
  redis.call('BITFIELD', KEYS[1], 'INCRBY', 'i64', '#0', 1, 'INCRBY', 'i64', '#1', ARGV[1])
  return 1
end
return 0
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
    personalised: bool
    spent: int


class FeedbackBody(BaseModel):
    recommendation_id: str
    reward: Annotated[float, Field(ge=0, le=1)]


class FeedbackAnswer(BaseModel):
    accepted: bool
    duplicate: bool


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    client = redis.from_url(os.environ["BENCH_STORE"])
    yield {
        "spend": client.register_script(SPEND),
        "learn": client.register_script(LEARN),
    }
    await client.aclose()


app = FastAPI(lifespan=lifespan)


async def key(authorization: Annotated[str, Header()]) -> None:
    if authorization != f"Bearer {os.environ['BENCH_KEY']}":
        raise HTTPException(401)


@app.post("/recommend", dependencies=[Depends(key)])
async def recommend(ask: RecommendBody, request: Request) -> RecommendAnswer:
    granted, spent = await request.state.spend(
        keys=[f"plain:ledger:{{{ask.client}}}"], args=[1, 1_000_000]
    )
    return RecommendAnswer(
        recommendation_id=secrets.token_urlsafe(90),
        items=[Item(id="an item")],
        personalised=bool(granted),
        spent=spent,
    )


@app.post("/feedback", dependencies=[Depends(key)])
async def feedback(given: FeedbackBody, request: Request) -> FeedbackAnswer:
    counted = await request.state.learn(
        keys=["plain:{cell}", f"plain:{{cell}}:{given.recommendation_id[:16]}"],
        args=[round(given.reward * 2**20)],
    )
    return FeedbackAnswer(accepted=True, duplicate=not counted)
