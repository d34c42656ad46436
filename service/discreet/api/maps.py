"""What a released model would recommend first, as a map, where a context is two numbers."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from discreet.api.routing import ScopedRoute, described, part_of
from discreet.families.maps import ModelMap

router = APIRouter(route_class=ScopedRoute, tags=["maps"])

DrawableMap = Annotated[ModelMap, part_of(ModelMap)]


class ModelMapAnswer(BaseModel):
    """First choices over the square of contexts, drawn from one released model."""

    release: int = Field(description="Number of the model; 0 has learned nothing yet.")
    items: list[str] = Field(description="The items that are a first choice somewhere.")
    first: list[list[int]] = Field(
        description="Positions in `items`: a row for each step of the context's second number, "
        "from 0 to 1, with a column for each step of the first. At most 32 of either; fewer if "
        "there are many items. Empty before the first release."
    )


@router.get(
    "/recommenders/{name}/model/map",
    response_model=ModelMapAnswer,
    **described(("serve", "admin"), 404, 422),
)
async def show_map(model_map: DrawableMap) -> Any:
    """Show what the released model recommends first, for contexts of two numbers.

    It is made from the released model alone, so it reveals nothing more and costs nobody anything.
    """
    return asdict(model_map.drawn())
