"""What local servers send to the global one, and what it answers."""

from typing import Annotated

from pydantic import BaseModel, Field

from discreet.api.schemas import Body
from discreet.families.fclub.document import MOST_DIMENSIONS
from discreet.families.fclub.view import MOST_NUMBER
from discreet.privacy.matrices import half_size

MOST_LETTERS = 64
MOST_MEMBERS = 50_000
MOST_STEPS = 1 + half_size(MOST_DIMENSIONS) + MOST_DIMENSIONS

Source = Annotated[str, Field(strict=True, pattern=r"^[0-9a-f]{16}$")]
Number = Annotated[int, Field(strict=True, ge=0, lt=MOST_NUMBER)]
Step = Annotated[int, Field(strict=True, ge=-(2**62), le=2**62)]


class LetterRequest(Body):
    """Noisy sums about some of a server's users, in steps of 2**-20; the first is the count."""

    sequence: Number = Field(description="Letters of one server are numbered; each counts once.")
    members: list[Number] = Field(min_length=1, max_length=MOST_MEMBERS, fail_fast=True)
    steps: list[Step] = Field(min_length=3, max_length=MOST_STEPS, fail_fast=True)


class LettersRequest(Body):
    """Letters, and how they were privatised: `epsilon` is null for letters without noise."""

    source: Source = Field(description="The name that the sending recommender got when created.")
    dimensions: int = Field(strict=True, ge=1, le=MOST_DIMENSIONS)
    baseline: float = Field(strict=True, ge=0, le=1, allow_inf_nan=False)
    epsilon: float | None = Field(strict=True, gt=0, le=50, allow_inf_nan=False)
    delta: float = Field(strict=True, gt=1e-12, le=0.1, allow_inf_nan=False)
    letters: list[LetterRequest] = Field(min_length=1, max_length=MOST_LETTERS)


class LettersAnswer(BaseModel):
    """The number of the next letter that is wanted; all before are kept."""

    next: int


class ViewRequest(Body):
    """A server asks what the others' letters tell; `seen` is the version that it has, or -1."""

    source: Source
    seen: int = Field(strict=True, ge=-1, lt=MOST_NUMBER)


class ViewAnswer(BaseModel):
    """Other servers' knowledge by cluster, and the clusters of the server's own users.

    Matrices are upper triangles, row by row, in information form.
    """

    version: int
    matrices: list[list[float]]
    vectors: list[list[float]]
    users: list[int]
    labels: list[int]
