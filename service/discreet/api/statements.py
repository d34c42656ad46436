"""A person's statement: as JSON, for the person's own key, and a page that draws it.

The page at `/statement` is a plain file. The person's browser trades the code that the operator
handed out for a key, and asks for the JSON with it; neither stands in any address that is sent.
"""

import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, Field

from discreet.api import schemas
from discreet.api.routing import CallerGrant, ClientStatements, ScopedRoute, described
from discreet.api.shown import account, amount
from discreet.decisions.statements import AccountStatement, RecommenderStatement
from discreet.families.documents import Identifier
from discreet.state.ledgers import KEPT_DAYS

router = APIRouter(route_class=ScopedRoute, tags=["clients"])


class StatedBudget(schemas.PrivacyAmount):
    """A budget; `per_seconds` is the length of its windows, null if it is for ever."""

    per_seconds: int | None


class StatedAccount(schemas.AccountAnswer):
    """One account: its budget, what is spent and left of it now, and what was ever spent."""

    protected: bool
    budget: StatedBudget
    ever: schemas.PrivacyAmount = Field(
        description="What was ever spent. Null: not protected, or something was answered exactly."
    )


class StatedDay(BaseModel):
    """What was spent on one day."""

    day: datetime.date
    account: str
    uses: int
    epsilon: float | None = Field(description="Null: something was not protected.")


class StatedRecommender(BaseModel):
    """A person's accounts with one recommender."""

    recommender: str
    ledger: str | None = Field(description="The group whose recommenders share what is spent.")
    answers: StatedAccount
    feedback: StatedAccount
    days: list[StatedDay]


class StatementAnswer(BaseModel):
    """What was spent of a person's budgets, on what, when, and what remains."""

    recommenders: list[StatedRecommender]
    kept_days: int = Field(description="For so many days spending is kept by day.")


@router.get(
    "/clients/{client:segment}/statement",
    response_model=StatementAnswer,
    response_model_exclude_unset=True,
    **described(("statement", "serve", "admin"), 404, 422, recommender_in="body"),
)
async def show_statement(
    statements: ClientStatements,
    grant: CallerGrant,
    client: Annotated[Identifier, Path()],
    response: Response,
) -> Any:
    """Show what was spent of a client's budgets, on what, when, and what remains."""
    grant.require_client(client)
    response.headers["Cache-Control"] = "no-store"
    stated = await statements.statement(client, recommenders=grant.recommenders)
    return {"recommenders": [_shown(one) for one in stated], "kept_days": KEPT_DAYS}


def _shown(one: RecommenderStatement) -> dict[str, Any]:
    return {
        "recommender": one.recommender,
        "ledger": one.ledger,
        "answers": _account(one.answers),
        "feedback": _account(one.feedback),
        "days": [
            {
                "day": line.day,
                "account": line.account.name.lower(),
                "uses": line.uses,
                "epsilon": line.epsilon,
            }
            for line in one.days
        ],
    }


def _account(one: AccountStatement) -> dict[str, Any]:
    return {
        **account(one.report),
        "protected": one.budget is not None,
        "budget": {**amount(one.budget), "per_seconds": one.window_seconds or None},
        "ever": amount(one.ever),
    }
