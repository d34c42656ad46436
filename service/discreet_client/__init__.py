"""The typed client of Discreet: recommendations and feedback over HTTP, with safe retries.

    from discreet_client import Client

    with Client("http://127.0.0.1:8000", key="dk_…") as discreet:
        answer = discreet.recommend("films", client="ada", context=[0.19, 0.13])
        show(answer.items[0].id)
        discreet.feedback(answer, reward=1)

`AsyncClient` is the same with `await`. It needs httpx and nothing else: no numpy, no server.

A request that failed on the way is sent again, for as long as `Retries` says. That is safe: every
recommendation carries an event id, made up here unless the caller gives one, under which the server
answers and charges once; and feedback is counted once by nature.

Reading order: `answers` (what comes back), `problems` (what goes wrong), `requests` (what is sent,
and when it is sent again), `client`, `async_client`.
"""

from discreet_client.answers import (
    Amount,
    AnsweredItem,
    FeedbackReceipt,
    PrivacyCost,
    RecommendedItems,
)
from discreet_client.async_client import AsyncClient
from discreet_client.client import Client
from discreet_client.problems import (
    BudgetSpent,
    ClientError,
    InvalidRequest,
    NotAllowedByKey,
    NotFound,
    ProblemError,
    RequestConflict,
    ServerBusy,
    ServerUnavailable,
    Unreachable,
)
from discreet_client.requests import Context, FeedbackCall, RecommendCall, Retries

__all__ = [
    "Amount",
    "AnsweredItem",
    "AsyncClient",
    "BudgetSpent",
    "Client",
    "ClientError",
    "Context",
    "FeedbackCall",
    "FeedbackReceipt",
    "InvalidRequest",
    "NotAllowedByKey",
    "NotFound",
    "PrivacyCost",
    "ProblemError",
    "RecommendCall",
    "RecommendedItems",
    "RequestConflict",
    "Retries",
    "ServerBusy",
    "ServerUnavailable",
    "Unreachable",
]

__version__ = "0.1.0"
