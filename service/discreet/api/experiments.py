"""Experiments: one name whose clients are divided among recommenders. Scope: admin."""

from typing import Any

from fastapi import APIRouter, Response

from discreet.api import experiments_schemas
from discreet.api.recommenders import NewName
from discreet.api.routing import RunningExperiments, ScopedRoute, described
from discreet.decisions.experiments import ArmResult
from discreet.families.experiments import ExperimentDocument

router = APIRouter(route_class=ScopedRoute, tags=["experiments"])


@router.get(
    "/experiments", response_model=experiments_schemas.ExperimentsAnswer, **described("admin")
)
async def list_experiments(experiments: RunningExperiments) -> Any:
    """List the names of all experiments."""
    return {"experiments": await experiments.names()}


@router.put(
    "/experiments/{name}",
    response_model=ExperimentDocument,
    **described("admin", 400, 413, 422, created=ExperimentDocument),
)
async def put_experiment(
    experiments: RunningExperiments, name: NewName, document: ExperimentDocument, response: Response
) -> Any:
    """Create an experiment (201) or change it (200). Callers ask it by name, like a recommender.

    Changing shares moves clients to other arms; an arm's results are about all that it learned
    from, whenever that was.
    """
    if await experiments.put(name, document):
        response.status_code = 201
    return document


@router.get(
    "/experiments/{name}", response_model=ExperimentDocument, **described("admin", 404, 422)
)
async def show_experiment(experiments: RunningExperiments, name: str) -> Any:
    """Show an experiment's document."""
    return await experiments.show(name)


@router.delete("/experiments/{name}", status_code=204, **described("admin", 404, 422))
async def remove_experiment(experiments: RunningExperiments, name: str) -> None:
    """Remove an experiment. Its arms stay, with what they learned."""
    await experiments.remove(name)


@router.get(
    "/experiments/{name}/results",
    response_model=experiments_schemas.ExperimentResults,
    **described("admin", 404, 422),
)
async def show_results(experiments: RunningExperiments, name: str) -> Any:
    """Show the reward of every arm with its interval, from the arms' released models."""
    return {"arms": [_shown(one) for one in await experiments.results(name)]}


def _shown(one: ArmResult) -> dict[str, Any]:
    reward = None
    if one.mean is not None:
        reward = {"mean": one.mean, "low": one.low, "high": one.high}
    ahead = (
        None if one.ahead is None else dict(zip(("mean", "low", "high"), one.ahead, strict=True))
    )
    return {
        "recommender": one.recommender,
        "share": one.share,
        "holdout": one.holdout,
        "release": one.release,
        "feedback": one.feedback,
        "reward": reward,
        "ahead": ahead,
    }
