"""Stories that every family with feedback is put through, told with the family's own people.

The world is small: two items, two or three others, a handful of rounds, with learning on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

OTHERS = ("first", "second")

Pair = tuple[Behaviour, Behaviour]


@dataclass(frozen=True, slots=True)
class Cast:
    """A family's people: the two others, and the person in two ways.

    `opposites` differ in everything, `tastes` in how the same things are received.

    `document` makes a document: `feedback` and `answers` are epsilons, or "exact";
    `feedback_budget` and `answers_budget` are the epsilons of budgets; `items` are ids.
    """

    document: Callable[..., Mapping[str, Any]]
    others: Mapping[str, Behaviour]
    opposites: Pair
    tastes: Pair
    own_answers: bool = True
    """Whether the person's own answers are part of what is seen."""

    def silent(self) -> Pair:
        """Return the person with feedback, and without."""
        talks = self.opposites[0]
        return talks, Behaviour(talks.situation, lambda _, __: None)

    def late(self, patience: int) -> Pair:
        """Return the person who tells at once, and another who lets so many chances pass."""
        talks, other = self.opposites
        return talks, Behaviour(other.situation, other.reward, patience)

    def story(
        self,
        name: str,
        steps: Sequence[Step],
        *,
        person: Pair | None = None,
        workers: int = 1,
        **dials: Any,
    ) -> Story:
        """Return a story that begins with two releases before the person comes.

        On some paths different parts of the model then disagree.
        """
        warm_up: list[Step] = [Asks("first"), Waits(), Asks("second"), Waits()]
        return Story(
            name=name,
            document=self.document(**dials),
            steps=[*warm_up, *steps],
            others=self.others,
            person=person or self.opposites,
            workers=workers,
            own_answers=self.own_answers,
        )


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


def changing(cast: Cast) -> Iterator[Step]:
    """Yield changes of the catalogue between feedback and the release that it is in."""
    for items in (("a", "b", "c"), ("b", "c")):
        yield Asks(PERSON)
        yield Tells(PERSON)
        yield Changes(cast.document(items=items))
        yield from rounds(1)


def moving() -> Iterator[Step]:
    """Yield one question, and two chances to tell with a release after each."""
    yield Asks(PERSON)
    for _ in range(2):
        yield Tells(PERSON)
        yield from rounds_of_others()


def rounds_of_others() -> Iterator[Step]:
    """Yield a round without the person."""
    for other in OTHERS:
        yield Asks(other)
    yield Waits()
    for other in OTHERS:
        yield Asks(other)


def stories_of_feedback(cast: Cast) -> Iterator[Story]:
    """Yield what may happen to the feedback of a person."""
    for epsilon in (1.0, 4.0):
        yield cast.story(
            f"one record, feedback epsilon {epsilon:g}", [*rounds(1)], feedback=epsilon
        )
        yield cast.story(
            f"three records in each of two releases, feedback epsilon {epsilon:g}",
            [*rounds(2, asks=3)],
            feedback=epsilon,
        )
    yield cast.story("opposite tastes", [*rounds(2, asks=3)], person=cast.tastes)
    yield cast.story("feedback or none", [*rounds(3)], person=cast.silent())
    yield cast.story("feedback now or after a release", [*moving()], person=cast.late(1))
    yield cast.story("feedback soon, or late and all at once", [*rounds(3)], person=cast.late(2))
    yield cast.story(
        "budgets spent, degraded answers",
        [*rounds(3, asks=2)],
        answers=2.0,
        answers_budget=6.0,
        feedback_budget=2.0,
    )


def stories_of_workers(cast: Cast) -> Iterator[Story]:
    """Yield what may happen to workers while the person's feedback is with them."""
    yield cast.story("workers that die while they release", [*dying()], workers=2)
    yield cast.story(
        "two workers that release at once",
        [Asks(PERSON), Tells(PERSON), Races(), *rounds(1, worker=1), Races()],
        workers=2,
    )
    yield cast.story("items added and removed before a release", [*changing(cast)])


def stories_of_answers(cast: Cast) -> Iterator[Story]:
    """Yield what may happen to answers, and to dials that are turned off."""
    yield cast.story("retries", [*rounds(2, retries=2)], answers=2.0)
    yield cast.story(
        "exact answers, then private ones",
        [Asks(PERSON), Tells(PERSON), Waits(), Changes(cast.document()), *rounds(1)],
        answers="exact",
    )
    yield cast.story("exact feedback", [*rounds(2)], feedback="exact")


def every_story(cast: Cast) -> Iterator[Story]:
    """Yield all of them."""
    yield from stories_of_feedback(cast)
    yield from stories_of_workers(cast)
    yield from stories_of_answers(cast)
