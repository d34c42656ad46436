"""Polis conversations as electorates, from a folder that has them; none is part of Discreet.

Every statement is a round with two objects: "agree" and "disagree". A participant's vote on a
statement is a vote for one of them; a pass, or no vote, is silence. One participant plays the
client: he likes the object that he voted for, and the rounds are the statements that he voted on.
Conversations are sparse, so the statements are the most voted ones, and the voters those who voted
on at least half of them.

The data were gathered using the Polis software (compdemocracy.org/polis) and are licensed under
CC BY 4.0 by The Computational Democracy Project.
"""

import csv
import gzip
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.research.worlds.electorates import Mask, VotingRound
from discreet.research.worlds.files import subfolder

FILES = ("participants-votes.csv", "participants-votes.csv.gz")
_AGREE, _DISAGREE = 1, 2
_VOTES = {"1": _AGREE, "-1": _DISAGREE}

Matrix = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class PolisConversation:
    """Votes as bytes, one row a participant: 0 silence, 1 agree, 2 disagree."""

    name: str
    votes: Matrix

    def core(self, statements: int) -> "PolisConversation":
        """Return the most voted statements, and the participants who voted on half of them."""
        cast = np.count_nonzero(self.votes, axis=0)
        chosen = np.sort(np.argsort(-cast, kind="stable")[:statements])
        votes = self.votes[:, chosen]
        keen = 2 * np.count_nonzero(votes, axis=1) >= votes.shape[1]
        return PolisConversation(self.name, votes[keen])

    def clients(self, count: int) -> list[int]:
        """Return the participants who voted most, who make the longest runs."""
        cast = np.count_nonzero(self.votes, axis=1)
        return [int(row) for row in np.argsort(-cast, kind="stable")[:count]]


@dataclass(slots=True, eq=False)
class PolisElectorate:
    """One participant as the client, the others as voters."""

    conversation: PolisConversation
    client: int
    _at: int = field(init=False, default=0)
    _ballots: Matrix = field(init=False)
    _liked: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        votes = self.conversation.votes
        own = votes[self.client]
        answered = np.flatnonzero(own)
        self._liked = own[answered].astype(np.int64) - 1
        self._ballots = np.delete(votes, self.client, axis=0)[:, answered]

    @property
    def rounds(self) -> int:
        """How many statements the client voted on."""
        return int(self._ballots.shape[1])

    @property
    def voters(self) -> int:
        """How many others there are."""
        return int(self._ballots.shape[0])

    def with_random_votes(self, seed: int) -> "PolisElectorate":
        """Return the same with silence replaced by a vote by chance, as if everybody had voted."""
        filled = PolisElectorate(self.conversation, self.client)
        chance = np.random.default_rng(seed).integers(1, 3, self._ballots.shape)
        filled._ballots = np.where(self._ballots == 0, chance, self._ballots).astype(np.uint8)
        return filled

    def distances(self) -> npt.NDArray[np.int64]:
        """Return how often each voter voted for what the client dislikes."""
        against = (self._ballots != 0) & (self._ballots != self._liked + 1)
        counted: npt.NDArray[np.int64] = against.sum(axis=1, dtype=np.int64)
        return counted

    def next_round(self, counting: Mask) -> VotingRound:
        """Return the next statement."""
        at = self._at
        self._at += 1
        return VotingRound(self._ballots[:, at], frozenset({int(self._liked[at])}))


def conversations(folder: Path) -> list[PolisConversation]:
    """Read every conversation below the folder, or below `polis` in it, by name."""
    root = subfolder(folder, "polis")
    found = [_read(path) for path in sorted(_files(root))]
    if not found:
        raise InvalidArgument("data", f"there is no conversation's {FILES[0]} below {root}")
    return found


def _files(root: Path) -> Iterator[Path]:
    if not root.is_dir():
        return
    for folder in root.iterdir():
        for name in FILES:
            if (folder / name).is_file():
                yield folder / name
                break


def _read(path: Path) -> PolisConversation:
    packed = path.read_bytes()
    text = gzip.decompress(packed) if path.suffix == ".gz" else packed
    reader = csv.reader(io.StringIO(text.decode("utf-8-sig")))
    heading = next(reader, [])
    # Statements are the columns with numbers for names; before them stand the participant's own.
    columns = [at for at, name in enumerate(heading) if name.isdigit()]
    if not columns:
        raise InvalidArgument("data", f"{path} has no columns for statements")
    rows = [
        [_VOTES.get(row[at], 0) if at < len(row) else 0 for at in columns] for row in reader if row
    ]
    votes = np.array(rows, dtype=np.uint8).reshape(len(rows), len(columns))
    return PolisConversation(path.parent.name, votes)
