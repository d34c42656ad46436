"""What happens in a closed loop: steps that both worlds share, and what only the person knows.

Steps are public: who asks when, when the clock is looked at, what becomes of a worker. What the
person thinks is not: the situation that a question is asked in, how an answer is received, and
whether and when feedback is sent. Others react to what they are shown in the same way in both
worlds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

PERSON = "person"
"""The client whom the two worlds differ in."""


class Lost(Enum):
    """Where a release is interrupted."""

    BEFORE_READING = "frozen"
    """What has gathered was set aside, and then the worker died."""
    BEFORE_STORING = "save"
    """Noise was drawn, and then the worker died: nobody has seen the model."""
    AFTER_STORING = "saved"
    """The model was stored, and its worker never heard of it."""
    BEFORE_CLEANING_UP = "discard"
    """The model was stored and is in use; what it was made from was not erased."""


@dataclass(frozen=True, slots=True)
class Asks:
    """A client asks, and perhaps asks again under the same event id; `times` of it at once."""

    client: str
    worker: int = 0
    retries: int = 0
    times: int = 1


@dataclass(frozen=True, slots=True)
class Tells:
    """A client may send feedback now."""

    client: str
    worker: int = 0


@dataclass(frozen=True, slots=True)
class Waits:
    """So many seconds pass, and a worker looks whether a release is due; others notice it."""

    seconds: float = 10.0
    worker: int = 0
    lost: Lost | None = None


@dataclass(frozen=True, slots=True)
class Races:
    """Two workers release at the same time, each believing that it alone does."""

    seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Changes:
    """The document is replaced."""

    document: Mapping[str, Any]


Step = Asks | Tells | Waits | Races | Changes


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What one client does: the situation of every question, and how answers are received.

    `reward` is given the situation and an item that was shown, and returns None if no feedback is
    sent about it. Feedback waits for the client's next `Tells`; so many of them `patience` lets
    pass.
    """

    situation: Callable[[int], Any]
    reward: Callable[[Any, str], float | None]
    patience: int = 0


@dataclass(frozen=True, slots=True)
class Story:
    """Steps, the document they begin with, the others, and the person in either world."""

    name: str
    document: Mapping[str, Any]
    steps: Sequence[Step]
    others: Mapping[str, Behaviour]
    person: tuple[Behaviour, Behaviour]
    workers: int = 1
    own_answers: bool = True
    """Whether answers to the person are part of what is seen."""

    def behaviours(self, world: int) -> Mapping[str, Behaviour]:
        """Return what everybody does in one of the two worlds."""
        return {**self.others, PERSON: self.person[world]}
