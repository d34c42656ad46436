"""What callers send to and get from a recommender by voters' weights, beside answers."""

from collections.abc import Collection
from itertools import repeat
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Discriminator, Field, Tag, model_validator

from discreet.api.schemas import Body
from discreet.errors import InvalidArgument
from discreet.families.documents import Identifier
from discreet.families.p_rec.credits import MOST_OBJECTS
from discreet.families.p_rec.votes import Vote

MOST_VOTES = 100_000
LONGEST_ID = 200


class RoundRequest(Body):
    """A new round. The same one again changes nothing."""

    id: Identifier | None = Field(default=None, description="If left out, one is generated.")
    objects: list[Identifier] = Field(
        min_length=1,
        max_length=MOST_OBJECTS,
        description="Distinct; from 2 to the recommender's `objects`. Rounds may differ in size.",
        examples=[["cats", "dogs"], ["cats", "dogs", "owls"]],
    )


class RoundAnswer(BaseModel):
    """A round as it stands."""

    id: str
    objects: list[str]
    state: Literal["open", "closed"] = Field(description="Votes are taken while it is open.")


class RoundChange(Body):
    """The one change that can be made to a round."""

    state: Literal["closed"]


class RoundsAnswer(BaseModel):
    """The newest rounds, in the order in which clients are answered from them."""

    rounds: list[RoundAnswer]


class VoteRequest(Body):
    """One vote of several."""

    round: Identifier | None = Field(
        default=None, description="If left out, the round of the whole request."
    )
    voter: Identifier = Field(description="Who votes. Kept only as a keyed digest.")
    object: Identifier = Field(description="One of the round's objects.")


def _shape(value: Any) -> str:
    return "(object)" if isinstance(value, dict) else "(list)"


ListedVotes = Annotated[
    list[VoteRequest], Field(min_length=1, max_length=MOST_VOTES, fail_fast=True)
]
VotesByVoter = Annotated[dict[str, Any], Field(min_length=1, max_length=MOST_VOTES)]
"""From voters to objects. An error in it names the place, never the voter, whom a validator would
name; so it is checked in `VotesRequest.listed`."""


class VotesRequest(Body):
    """One vote (`round`, `voter` and `object`), or many (`votes`).

    A voter has one vote a round: the last one counts until the round is closed. One request may
    vote once for a voter and round.
    """

    round: Identifier | None = None
    voter: Identifier | None = None
    object: Identifier | None = None
    votes: (
        Annotated[
            Annotated[ListedVotes, Tag("(list)")] | Annotated[VotesByVoter, Tag("(object)")],
            Discriminator(_shape),
        ]
        | None
    ) = Field(
        default=None,
        description="Many votes; either a list of objects, or one object from voters to what they "
        "vote for, which is shorter.",
    )

    @model_validator(mode="after")
    def _one_or_many(self) -> Self:
        single = self.voter is not None or self.object is not None
        if single == (self.votes is not None):
            raise ValueError("give either voter and object, or votes")
        if single and (self.voter is None or self.object is None or self.round is None):
            raise ValueError("a vote needs a round, a voter and an object")
        if self.round is None and self._lacks_rounds():
            raise ValueError("every vote needs a round, its own or that of the whole request")
        return self

    def _lacks_rounds(self) -> bool:
        if isinstance(self.votes, dict):
            return True
        return any(one.round is None for one in self.votes or ())

    def listed(self) -> list[Vote]:
        """Return the votes, or raise `InvalidArgument` naming the place of an unusable one."""
        common = self.round or ""
        if isinstance(self.votes, dict):
            _require_identifiers(self.votes, "voter")
            _require_identifiers(self.votes.values(), "object")
            return list(map(Vote, repeat(common), self.votes, self.votes.values()))
        if self.votes is None:
            return [Vote(common, self.voter or "", self.object or "")]
        listed = [Vote(one.round or common, one.voter, one.object) for one in self.votes]
        _require_single_votes(listed)
        return listed


def _require_single_votes(votes: list[Vote]) -> None:
    """Refuse a request that votes twice for one voter: which of the two was meant?"""
    seen = {(vote.round, vote.voter) for vote in votes}
    if len(seen) == len(votes):
        return
    for at, vote in enumerate(votes):
        if (vote.round, vote.voter) not in seen:
            raise InvalidArgument(f"votes[{at}].voter", "votes twice in the same round")
        seen.discard((vote.round, vote.voter))


def _require_identifiers(values: Collection[Any], field: str) -> None:
    """Refuse what is not an `Identifier`, by its place. All at once, because there may be many."""
    if set(map(type, values)) == {str}:
        lengths = set(map(len, values))
        if min(lengths) >= 1 and max(lengths) <= LONGEST_ID and "".join(values).isprintable():
            return
    for at, value in enumerate(values):
        if type(value) is not str or not (1 <= len(value) <= LONGEST_ID and value.isprintable()):
            raise InvalidArgument(
                f"votes[{at}].{field}",
                f"must be a printable string of 1 to {LONGEST_ID} characters",
            )


class VotesAnswer(BaseModel):
    """What became of the votes."""

    counted: int = Field(description="How many votes the request had; all of them count.")
