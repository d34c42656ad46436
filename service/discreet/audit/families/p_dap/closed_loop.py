"""The closed loop of the adaptive partition: stories of a small world, and what may go wrong.

Two items, two contexts, three people, a handful of rounds, with learning on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.audit.closed_loop.stage import MadeRelease, difference_of_numbers
from discreet.audit.closed_loop.story import (
    PERSON,
    Asks,
    Behaviour,
    Changes,
    Lost,
    Races,
    Step,
    Story,
    Tells,
    Waits,
)
from discreet.audit.scripted_noise import ExactLaw, TapedNoise, coin_law
from discreet.families.choice import COIN_SIDES
from discreet.families.contract import REWARD_STEPS
from discreet.families.p_dap.model import PartitionModel
from discreet.families.questions import Ask
from discreet.privacy.choice import RESPONSE_BITS
from discreet.privacy.noise import NoiseSource

OTHERS = ("first", "second")
LEFT, RIGHT = 0.2, 0.8


class PartitionLoop:
    """What a closed loop has to know about p-dap."""

    algorithm = "p-dap"

    def ask(self, name: str, client: str, situation: float) -> Ask:
        """Return a question from a context."""
        return Ask(name, client, (situation,))

    def law(self, draw: Callable[[NoiseSource], str]) -> ExactLaw:
        """Return the law of an answer that is drawn with a coin and a uniform integer."""
        return coin_law(
            lambda coin, uniform: draw(TapedNoise(bits=(coin, uniform))),
            coin_bits=COIN_SIDES.bit_length() - 1,
            uniform_bits=RESPONSE_BITS,
        )

    def summary(self, model: PartitionModel) -> list[float]:
        """Return the sums of the first cell, and how many cells there are."""
        own = model.own.statistics
        return [*own.liked[0].tolist(), *own.disliked[0].tolist(), float(len(own.tree))]

    def difference(self, first: MadeRelease, second: MadeRelease) -> list[int] | None:
        """Compare the released sums."""
        return difference_of_numbers(first, second, numbers)


def numbers(before: PartitionModel, model: PartitionModel) -> list[int]:
    """Return both populations' sums in steps, of the cells that were there before."""
    sums = []
    for old, new in ((before.own, model.own), (before.guests, model.guests)):
        cells = len(old.statistics.tree)
        both = (new.statistics.liked, new.statistics.disliked)
        sums += [each[:cells].reshape(-1) for each in both]
    return [int(each) for each in np.rint(np.concatenate(sums) * REWARD_STEPS)]


def document(
    *,
    feedback: Any = 1.0,
    answers: Any = 0.5,
    answers_budget: float = 20.0,
    feedback_budget: float = 20.0,
    items: Sequence[str] = ("a", "b"),
    delta: float = 1e-6,
) -> dict[str, Any]:
    """Return a small p-dap document; "exact" turns a dial off."""
    return {
        "algorithm": "p-dap",
        "items": list(items),
        "context": {"dimensions": 1},
        "partition": {"base": 1},
        "exploration": {"rate": 0.1},
        "releases": {"seconds": 5, "growth": 0},
        "privacy": {
            "answers": answers
            if answers == "exact"
            else {"epsilon": answers, "budget": {"epsilon": answers_budget, "delta": delta}},
            "feedback": feedback
            if feedback == "exact"
            else {
                "epsilon": feedback,
                "delta": delta,
                "budget": {"epsilon": feedback_budget, "delta": delta},
            },
        },
    }


def _likes(favourite: str) -> Callable[[float, str], float | None]:
    return lambda _, item: float(item == favourite)


def _says_nothing(_: float, __: str) -> None:
    return None


def _stays(context: float) -> Callable[[int], float]:
    return lambda _: context


OTHER_PEOPLE: Mapping[str, Behaviour] = {
    "first": Behaviour(_stays(LEFT), _likes("a")),
    "second": Behaviour(lambda at: RIGHT if at % 2 else LEFT, lambda _, item: 0.5),
}

OPPOSITES = (Behaviour(_stays(LEFT), _likes("a")), Behaviour(_stays(RIGHT), _likes("b")))
"""Everything about the person is the other way round."""
SILENT = (Behaviour(_stays(LEFT), _likes("a")), Behaviour(_stays(LEFT), _says_nothing))
"""In the second world the person never sends feedback."""
ONCE = (OPPOSITES[0], Behaviour(_stays(RIGHT), _likes("b"), patience=2))
"""In the second world the person waits, and then sends all feedback at once."""


def warm_up() -> list[Step]:
    """Return two releases before the person comes: on some paths the cells then disagree."""
    return [Asks("first"), Waits(), Asks("second"), Waits()]


def rounds(count: int, *, asks: int = 1, worker: int = 0, retries: int = 0) -> Iterator[Step]:
    """Yield rounds in which everybody asks and may tell, each ended by a release."""
    for _ in range(count):
        for _ in range(asks):
            yield Asks(PERSON, worker=worker, retries=retries)
            yield Tells(PERSON, worker=worker)
        for other in OTHERS:
            yield Asks(other)
            yield Tells(other)
        yield Waits(worker=worker)
    for other in OTHERS:
        yield Asks(other)


def stories() -> Iterator[Story]:
    """Yield what may happen to the person."""

    def story(
        name: str,
        steps: Sequence[Step],
        *,
        begins: Mapping[str, Any] | None = None,
        person: tuple[Behaviour, Behaviour] = OPPOSITES,
        workers: int = 1,
    ) -> Story:
        first = document() if begins is None else begins
        return Story(name, first, [*warm_up(), *steps], OTHER_PEOPLE, person, workers)

    for epsilon in (1.0, 4.0):
        small = document(feedback=epsilon)
        yield story(f"one record, feedback epsilon {epsilon:g}", [*rounds(1)], begins=small)
        yield story(
            f"three records in each of two releases, feedback epsilon {epsilon:g}",
            [*rounds(2, asks=3)],
            begins=small,
        )
    yield story("feedback or none", [*rounds(3)], person=SILENT)
    yield story("feedback soon, or late and all at once", [*rounds(3)], person=ONCE)
    yield story(
        "budgets spent, degraded answers",
        [*rounds(3, asks=2)],
        begins=document(answers=2.0, answers_budget=6.0, feedback_budget=2.0),
    )
    yield story("retries", [*rounds(2, retries=2)], begins=document(answers=2.0))
    yield story("workers that die while they release", [*dying()], workers=2)
    yield story(
        "two workers that release at once",
        [Asks(PERSON), Tells(PERSON), Races(), *rounds(1, worker=1), Races()],
        workers=2,
    )
    yield story("items added and removed before a release", [*changing()])
    yield story(
        "exact answers, then private ones",
        [Asks(PERSON), Tells(PERSON), Waits(), Changes(document()), *rounds(1)],
        begins=document(answers="exact"),
    )
    yield story("exact feedback", [*rounds(2)], begins=document(feedback="exact"))


def dying() -> Iterator[Step]:
    """Yield releases that are interrupted at every point, and taken up by the other worker."""
    for lost in Lost:
        yield Asks(PERSON)
        yield Tells(PERSON)
        yield Waits(lost=lost)
        yield Asks("first")
        yield Asks(PERSON, worker=1)
        yield Tells(PERSON, worker=1)
        yield Waits(worker=1)
        yield Asks("second", worker=1)


def changing() -> Iterator[Step]:
    """Yield changes of the catalogue between feedback and the release that it is in."""
    for items in (("a", "b", "c"), ("b", "c")):
        yield Asks(PERSON)
        yield Tells(PERSON)
        yield Changes(document(items=items))
        yield from rounds(1)
