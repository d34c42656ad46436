"""Many runs of both worlds with the production noise: a lower bound on epsilon from what is seen.

Nothing is assumed here about how anything is made. A run's view is a row of numbers: every answer
to anybody, whether it was personalised, the moment of every release, the numbers of every released
model, and how the person's account of answers stands. On one half of the runs an event is chosen
that tells the worlds apart best, among thresholds and values of every number and of a few linear
combinations of them. On the other half it is counted, and Clopper-Pearson intervals bound epsilon
from below, at the delta of the budget. That must not exceed what the person's ledger was charged:
the epsilons of the answers, and what the rho of the feedback is worth at that delta.

All runs of a world are recommenders of one set of services, which answer many questions at once.

Power. With n runs of each world, half of which count, no bound exceeds log(n / 2 / 40) or so: 2.2
at 800, 4.6 at 8,000. So faults are planted where little was charged. What moves the view by less
than that is found by `coupled`, which is exact.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.claims import AuditRun, Finding
from discreet.audit.closed_loop.stage import (
    NOTHING_PLANTED,
    LoopFamily,
    Planted,
    feedback_on,
    open_worker,
)
from discreet.audit.closed_loop.story import PERSON, Asks, Behaviour, Story, Tells, Waits
from discreet.audit.examine_samples import judge_lower_bound
from discreet.decisions.registry import RECOMMENDER
from discreet.decisions.services import DecisionServices
from discreet.errors import DiscreetError
from discreet.families.questions import Feedback, Recommendation
from discreet.families.registration import FAMILIES, read_document
from discreet.families.stored import StoredDocument
from discreet.privacy.charges import NANO, UNLIMITED
from discreet.privacy.conversions import zcdp_epsilon
from discreet.privacy.noise import NoiseSource

Floats = npt.NDArray[np.float64]

_CREATED = 1_000_000.0
_TOGETHER = 100
"""Runs that share one set of services."""


class SampledRuns:
    """Independent runs of one world, side by side."""

    def __init__(
        self, story: Story, world: int, family: LoopFamily, planted: Planted, runs: int
    ) -> None:
        self._story = story
        self._family = family
        self._planted = planted
        self._behaviours: Mapping[str, Behaviour] = story.behaviours(world)
        self._names = [f"run-{number}" for number in range(runs)]
        self._seen: list[list[float]] = [[] for _ in range(runs)]
        self._asked = dict.fromkeys(self._behaviours, 0)
        self._passed = dict.fromkeys(self._behaviours, 0)
        self._waiting: dict[str, list[Feedback]] = {client: [] for client in self._behaviours}
        self._now = _CREATED
        self._store: Any = planted.store(clock=lambda: self._now)

    async def play(self, noise: NoiseSource) -> tuple[Floats, float, float]:
        """Return the views, and the largest epsilon and rho that any of the ledgers was charged."""
        services = await self._open(noise)
        for step in self._story.steps:
            match step:
                case Asks():
                    await self._ask(services, step)
                case Tells():
                    await self._tell(services, step)
                case Waits():
                    await self._wait(services, step)
                case _:
                    raise ValueError("a sampled story has questions, feedback and releases only")
        recommenders = [await services.registry.find(name) for name in self._names]
        ledgers = await self._store.ledgers([one.principal(PERSON) for one in recommenders])
        for seen, ledger in zip(self._seen, ledgers, strict=True):
            seen.append(ledger.answers.nano_epsilon / NANO)
        await services.close()
        epsilon = max(ledger.answers.nano_epsilon for ledger in ledgers)
        rho = max(ledger.feedback.nano_rho for ledger in ledgers)
        width = max(map(len, self._seen))
        views = np.array([seen + [-1.0] * (width - len(seen)) for seen in self._seen])
        return views, _amount(epsilon), _amount(rho)

    async def _open(self, noise: NoiseSource) -> DecisionServices:
        services = await open_worker(self._store, noise, lambda: self._now, self._planted)
        document = read_document(dict(self._story.document))
        algorithm = self._family.algorithm
        shipped = FAMILIES[algorithm]
        FAMILIES[algorithm] = self._planted.recommender or shipped
        try:
            for number, name in enumerate(self._names):
                stored = StoredDocument(document, number.to_bytes(8, "big"), _CREATED, {}, 0)
                await self._store.put_document(
                    name=RECOMMENDER + name,
                    document=stored.with_document(document).encode(),
                    expected=None,
                )
            await services.registry.settle()
        finally:
            FAMILIES[algorithm] = shipped
        return services

    async def _ask(self, services: DecisionServices, step: Asks) -> None:
        behaviour, first = self._behaviours[step.client], self._asked[step.client]
        self._asked[step.client] += step.times
        situations = [behaviour.situation(first + at) for at in range(step.times)]
        asks = [
            self._family.ask(name, step.client, situation)
            for name in self._names
            for situation in situations
        ]
        if step.retries:
            asks = [
                ask._replace(event_id=f"{ask.recommender} {step.client} {first} {place}")
                for place, ask in enumerate(asks)
            ]
        for _ in range(1 + step.retries):
            answers = await services.recommend.recommend_many(asks)
            for place, answer in enumerate(answers):
                self._seen[place // step.times] += _numbers(answer)
        for place, answer in enumerate(answers):
            if isinstance(answer, Recommendation):
                told = feedback_on(answer, behaviour, situations[place % step.times])
                self._waiting[step.client] += told

    async def _tell(self, services: DecisionServices, step: Tells) -> None:
        if self._passed[step.client] < self._behaviours[step.client].patience:
            self._passed[step.client] += 1
            return
        self._passed[step.client] = 0
        waiting, self._waiting[step.client] = self._waiting[step.client], []
        await services.feedback.record_many(waiting)

    async def _wait(self, services: DecisionServices, step: Waits) -> None:
        self._now += step.seconds
        for name, seen in zip(self._names, self._seen, strict=True):
            recommender = await services.registry.find(name)
            released = await services.releaser.release_if_due(recommender)
            seen += [float(released), recommender.current.released_at - _CREATED]
            seen += self._family.summary(recommender.current.model)


def _numbers(answer: Recommendation | DiscreetError) -> list[float]:
    """Return an answer as numbers: the item, and whether it was personalised."""
    if isinstance(answer, DiscreetError) or not answer.items:
        return [-1.0, 0.0]
    return [float(int.from_bytes(answer.items[0].encode(), "big")), float(answer.personalised)]


def _amount(nanos: int) -> float:
    return float("inf") if nanos == UNLIMITED else nanos / NANO


def examine_by_sampling(
    run: AuditRun,
    story: Story,
    family: LoopFamily,
    *,
    runs: int,
    delta: float,
    planted: Planted = NOTHING_PLANTED,
) -> Finding:
    """Compare a lower bound on epsilon, from so many runs of each world, with the ledger."""
    views: list[Floats] = []
    charged = []
    for world in (0, 1):
        parts = []
        for start in range(0, runs, _TOGETHER):
            many = min(_TOGETHER, runs - start)
            played = SampledRuns(story, world, family, planted, many).play(run.noise)
            seen, epsilon, rho = asyncio.run(played)
            parts.append(seen)
            charged.append(epsilon + (zcdp_epsilon(rho=rho, delta=delta) if rho else 0.0))
        views.append(_stacked(parts))
    return judge_lower_bound(
        *_stacked_alike(views), claimed=max(charged), delta=delta, error=run.allowance.share()
    )


def _stacked(parts: Sequence[Floats]) -> Floats:
    width = max(part.shape[1] for part in parts)
    return np.concatenate([_widened(part, width) for part in parts])


def _stacked_alike(views: Sequence[Floats]) -> list[Floats]:
    width = max(view.shape[1] for view in views)
    return [_widened(view, width) for view in views]


def _widened(view: Floats, width: int) -> Floats:
    return np.pad(view, ((0, 0), (0, width - view.shape[1])), constant_values=-1.0)
