"""The closed loop of the adaptive partition: stories of a small world, and what may go wrong.

Two items, two contexts, three people, a handful of rounds, with learning on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

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

    def numbers(self, model: PartitionModel) -> list[int]:
        """Return both populations' sums."""
        sums = [
            each.reshape(-1)
            for people in (model.own, model.guests)
            for each in (people.statistics.liked, people.statistics.disliked)
        ]
        return [int(each) for each in np.rint(np.concatenate(sums) * REWARD_STEPS)]


def document(
    *,
    feedback: Any = 1.0,
    answers: Any = 0.5,
    answers_budget: float = 20.0,
    feedback_budget: float = 20.0,
    items: Sequence[str] = ("a", "b"),
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
            else {"epsilon": answers, "budget": {"epsilon": answers_budget, "delta": 1e-6}},
            "feedback": feedback
            if feedback == "exact"
            else {
                "epsilon": feedback,
                "delta": 1e-6,
                "budget": {"epsilon": feedback_budget, "delta": 1e-6},
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
    for epsilon in (1.0, 4.0):
        small = document(feedback=epsilon)
        yield Story(f"one record, epsilon {epsilon:g}", small, [*rounds(1)], OTHER_PEOPLE, OPPOSITES)
        yield Story(
            f"three records in each of two releases, epsilon {epsilon:g}",
            small,
            [*rounds(2, asks=3)],
            OTHER_PEOPLE,
            OPPOSITES,
        )
    yield Story("feedback or none", document(), [*rounds(3)], OTHER_PEOPLE, SILENT)
    yield Story("feedback at once or late", document(), [*rounds(4)], OTHER_PEOPLE, ONCE)
    yield Story(
        "budgets spent, degraded answers",
        document(answers_budget=1.0, feedback_budget=2.0),
        [*rounds(4, asks=2)],
        OTHER_PEOPLE,
        OPPOSITES,
    )
    yield Story(
        "retries", document(), [*rounds(2, retries=2)], OTHER_PEOPLE, OPPOSITES
    )
    yield Story(
        "workers that die while they release",
        document(),
        [
            *rounds(1),
            *(
                step
                for lost in Lost
                for step in (
                    Asks(PERSON),
                    Tells(PERSON),
                    Waits(lost=lost),
                    Asks("first"),
                    Asks(PERSON, worker=1),
                    Tells(PERSON, worker=1),
                    Waits(worker=1),
                    Asks("second", worker=1),
                )
            ),
        ],
        OTHER_PEOPLE,
        OPPOSITES,
        workers=2,
    )
    yield Story(
        "two workers that release at once",
        document(),
        [*rounds(1), Asks(PERSON), Tells(PERSON), Races(), *rounds(1, worker=1), Races()],
        OTHER_PEOPLE,
        OPPOSITES,
        workers=2,
    )
    more, fewer = document(items=("a", "b", "c")), document(items=("b", "c"))
    yield Story(
        "items added and removed before a release",
        document(),
        [
            *rounds(1),
            Asks(PERSON),
            Tells(PERSON),
            Changes(more),
            Asks(PERSON),
            Tells(PERSON),
            Waits(),
            Asks(PERSON),
            Tells(PERSON),
            Changes(fewer),
            *rounds(1),
        ],
        OTHER_PEOPLE,
        OPPOSITES,
    )
    yield Story(
        "exact answers, then private ones",
        document(answers="exact"),
        [Asks(PERSON), Tells(PERSON), Waits(), Changes(document()), *rounds(1)],
        OTHER_PEOPLE,
        OPPOSITES,
    )
    yield Story(
        "exact feedback", document(feedback="exact"), [*rounds(2)], OTHER_PEOPLE, OPPOSITES
    )
