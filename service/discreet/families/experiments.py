"""What a person writes for an experiment: which recommenders share the traffic of one name."""

import json
import math
from typing import Annotated, Self

from pydantic import Field, model_validator

from discreet.families.documents import NAME_PATTERN, Document, Number
from discreet.families.stored import UnreadableRecord

EXPERIMENT_SCHEMA = 1
"""The newest stored experiment that this version understands; one that says nothing is of 1."""
MOST_ARMS = 16
MOST_SHADOWS = 4
_SUM_TOLERANCE = 1e-6

Name = Annotated[str, Field(pattern=NAME_PATTERN, strict=True)]
Share = Annotated[Number, Field(gt=0, le=1)]


class ExperimentDocument(Document):
    """Divides the clients of one name among recommenders, its arms.

    Who gets which follows from the client's id alone, by a keyed hash: the same client gets the
    same arm for as long as the shares stay, whatever the context says.
    """

    traffic: dict[Name, Share] = Field(
        min_length=1,
        max_length=MOST_ARMS,
        description="The share of the clients that each recommender answers; together 1. Others "
        "are compared with the first.",
        examples=[{"champion": 0.8, "popular": 0.1, "challenger": 0.1}],
    )
    holdout: list[Name] = Field(
        default_factory=list,
        max_length=MOST_ARMS,
        description="Arms that answer from their released model alone, as for anybody: without "
        "looking at the client, and free.",
        examples=[["popular"]],
    )

    shadow: list[Name] = Field(
        default_factory=list,
        max_length=MOST_SHADOWS,
        description="Recommenders that answer every question as well without being shown. What "
        "they would have shown is written to the decision log of the arm, and nowhere else.",
        examples=[["newcomer"]],
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not math.isclose(math.fsum(self.traffic.values()), 1.0, abs_tol=_SUM_TOLERANCE):
            raise ValueError("the shares in traffic must add up to 1")
        if unknown := [name for name in self.holdout if name not in self.traffic]:
            raise ValueError(f"holdout: {unknown[0]} is not in traffic")
        if shown := [name for name in self.shadow if name in self.traffic]:
            raise ValueError(f"shadow: {shown[0]} is in traffic, so it is shown")
        return self


def read_experiment(content: bytes) -> ExperimentDocument:
    """Return a stored experiment, without fields that are new and harmless.

    Raises `UnreadableRecord`, which says why this version cannot use it.
    """
    try:
        fields = json.loads(content)
        schema = fields.get("schema", EXPERIMENT_SCHEMA)
        known = {name: fields[name] for name in ExperimentDocument.model_fields if name in fields}
        if type(schema) is not int or schema > EXPERIMENT_SCHEMA:
            raise UnreadableRecord("it was written by a newer version")
        return ExperimentDocument.model_validate(known)
    except UnreadableRecord:
        raise
    except Exception:
        # Readers fail in many ways: JSON may be nested too deeply, or be something else.
        raise UnreadableRecord("it is damaged") from None
