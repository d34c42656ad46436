"""One person in the closed loop of the adaptive partition, by sampled runs alone.

The stories are made so that little is charged and a fault shows much, because a sampled bound
cannot be larger than what the number of runs can tell (`closed_loop.sampled`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.audit.claims import AuditRun, Claim, Finding, Method, PlantedFault, Scope
from discreet.audit.closed_loop.faulty import (
    RedrawingAnswers,
    decides_from_raw_sums,
    exactness_unbooked,
    releases_by_feedback,
)
from discreet.audit.closed_loop.sampled import examine_by_sampling
from discreet.audit.closed_loop.stage import NOTHING_PLANTED, Planted
from discreet.audit.closed_loop.stories import OTHERS, rounds
from discreet.audit.closed_loop.story import PERSON, Asks, Behaviour, Step, Story, Tells, Waits
from discreet.audit.families.p_dap.closed_loop import CAST, LEFT, RIGHT, PartitionLoop, document
from discreet.audit.mechanisms.stores import LinearPriceStore, UnpaidStore
from discreet.families.p_dap.recommender import PartitionRecommender

_NAME = "p-dap, closed loop, sampled"
_QUICK_RUNS, _FULL_RUNS = 20, 5_000
"""Of each world, for every claim. A quick audit shows that a claim can be examined, and the faults
that an examination tells worlds apart: with sixty runs no bound exceeds 0.004."""


@dataclass(frozen=True, slots=True)
class SampledStory:
    """A story, the delta at which it is judged, and how many runs of each world show its fault."""

    story: Story
    delta: float
    runs: int

    def examine(
        self, run: AuditRun, *, runs: int | None = None, planted: Planted = NOTHING_PLANTED
    ) -> Finding:
        """Bound epsilon from below, and compare it with the ledger."""
        return examine_by_sampling(
            run,
            self.story,
            PartitionLoop(),
            runs=self.runs if runs is None else runs,
            delta=self.delta,
            planted=planted,
        )


def _quiet(**dials: Any) -> dict[str, Any]:
    """Return a document whose model does not divide the people, at delta 0.01."""
    return {**document(delta=0.01, **dials), "partition": {"base": 1e6}}


def _learned(*, answers: Any) -> dict[str, Any]:
    """Return a document whose model learns quickly what others like, and never explores."""
    quick = document(answers=answers, feedback=50.0, feedback_budget=1e5, delta=0.01)
    return {**quick, "exploration": {"rate": 0}}


def _many(records: int) -> list[Step]:
    """Return so many records of the person before a release, and answers to others around it."""
    others = [Asks(other) for other in OTHERS]
    return [Asks(PERSON, times=records), Tells(PERSON), *others, Waits(), *others]


def _alone(steps: Sequence[Step], begins: Any, person: tuple[Behaviour, Behaviour]) -> Story:
    return Story("", begins, steps, CAST.others, person)


def _tastes() -> list[Step]:
    """Return how others teach the model that the two sides differ, before the person comes."""
    steps: list[Step] = []
    for _ in range(2):
        for other in ("left", "right"):
            steps += [Asks(other, times=8), Tells(other)]
        steps.append(Waits())
    return steps


_NEIGHBOURHOODS = {
    "left": Behaviour(lambda _: LEFT, lambda _, item: float(item == "a")),
    "right": Behaviour(lambda _: RIGHT, lambda _, item: float(item == "b")),
}

_LIKES_OR_NOT = (
    Behaviour(lambda _: LEFT, lambda _, __: 1.0),
    Behaviour(lambda _: LEFT, lambda _, __: 0.0),
)

FEW_CHARGED = SampledStory(
    _alone(
        _many(8),
        {**_quiet(answers=0.001, feedback=0.003), "exploration": {"rate": 0}},
        CAST.opposites,
    ),
    0.01,
    140,
)
"""Some records at epsilon 0.003 each: others' answers must hardly feel them. Nobody explores, so
that an answer that does feel them always shows it."""
SPENT = SampledStory(
    _alone(_many(30), _quiet(items=("a",), feedback=1.0, feedback_budget=1.1), _LIKES_OR_NOT),
    0.01,
    200,
)
"""One record is paid for, and 29 are not."""
SHARED_NOISE = SampledStory(
    _alone(_many(40), _quiet(items=("a",), feedback=0.12, feedback_budget=30.0), _LIKES_OR_NOT),
    0.01,
    700,
)
"""Forty records in one release."""
MOMENTS = SampledStory(
    _alone([*rounds(2)], _quiet(answers=0.01, feedback=0.1), CAST.silent()), 0.01, 200
)
"""The person sends feedback or does not."""
NEIGHBOURHOODS = SampledStory(
    Story(
        "",
        _learned(answers="exact"),
        [*_tastes(), Asks(PERSON, times=4)],
        _NEIGHBOURHOODS,
        (CAST.silent()[1], Behaviour(lambda _: RIGHT, lambda _, __: None)),
    ),
    0.01,
    200,
)
"""The person looks round in a model that knows both sides, and says nothing."""
RETRIES = SampledStory(
    Story(
        "",
        _learned(answers=1.2),
        [*_tastes(), Asks(PERSON, retries=16)],
        _NEIGHBOURHOODS,
        NEIGHBOURHOODS.story.person,
    ),
    0.01,
    500,
)
"""The person asks once, and repeats the question under the same event id."""


def claims() -> Iterator[Claim]:
    """Yield the claims: every story, and two at the demo's epsilons."""
    shown = {
        "eight records at epsilon 0.003": FEW_CHARGED,
        "records after the budget is spent": SPENT,
        "forty records in one release": SHARED_NOISE,
        "feedback or none": MOMENTS,
        "exact answers, booked": NEIGHBOURHOODS,
        "a question repeated 16 times": RETRIES,
    }
    for epsilon in (1.0, 4.0):
        story = _alone([*rounds(2, asks=3)], document(feedback=epsilon), CAST.opposites)
        shown[f"six records at epsilon {epsilon:g}"] = SampledStory(story, 1e-6, 300)
    for name, sampled in shown.items():

        def examine(run: AuditRun, sampled: SampledStory = sampled) -> Finding:
            return sampled.examine(run, runs=run.size(quick=_QUICK_RUNS, full=_FULL_RUNS))

        yield Claim(f"{_NAME}, {name}: epsilon", Method.LOWER_BOUND, examine, Scope.PERSON)


def faults() -> Iterator[PlantedFault]:
    """Yield the mistakes that samples can show."""
    family = PartitionRecommender
    plants = {
        "answers decided from raw sums": (
            Planted(recommender=decides_from_raw_sums(family)),
            FEW_CHARGED,
        ),
        "feedback learned that was not paid for": (Planted(store=UnpaidStore), SPENT),
        "n records in one release charged n times": (
            Planted(store=LinearPriceStore),
            SHARED_NOISE,
        ),
        "a release that waits for feedback": (
            Planted(recommender=releases_by_feedback(family, records=3)),
            MOMENTS,
        ),
        "exact answers not booked": (
            Planted(recommender=exactness_unbooked(family)),
            NEIGHBOURHOODS,
        ),
        "a retry that pays once and draws again": (Planted(answers=RedrawingAnswers), RETRIES),
    }
    for name, (planted, sampled) in plants.items():

        def examine(
            run: AuditRun, planted: Planted = planted, sampled: SampledStory = sampled
        ) -> Finding:
            return sampled.examine(run, planted=planted)

        yield PlantedFault(f"{_NAME}: {name}", examine, Scope.PERSON)
