"""One world of a closed loop: a store, workers with the shipped decisions, and a clock.

Everything goes through `DecisionServices`, as a request would. The recommender of each worker is
wrapped where it draws: whoever plays a story decides there which noise it gets, and sees what was
decided or released from it. The store notes every model that is written.
"""

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from discreet.audit.closed_loop.story import PERSON, Asks, Behaviour, Lost, Tells
from discreet.audit.scripted_noise import ExactLaw
from discreet.decisions.release import Releaser
from discreet.decisions.retries import StoredAnswers
from discreet.decisions.services import DecisionServices, open_simulation
from discreet.errors import DiscreetError, StoreUnavailable
from discreet.families.contract import Recommender
from discreet.families.questions import Ask, Decision, Feedback, Question, Recommendation
from discreet.families.registration import FAMILIES, read_document
from discreet.privacy.noise import NoiseSource, SystemNoise
from discreet.state.memory import MemoryStore
from discreet.state.stores import Ledger, Vector

NAME = "audited"
_CREATED = 1_000_000.0


class LoopFamily(Protocol):
    """What a closed loop has to know about a family."""

    algorithm: str

    def ask(self, name: str, client: str, situation: Any) -> Ask:
        """Return the question of a client in this situation."""
        ...

    def law(self, draw: Callable[[NoiseSource], str]) -> ExactLaw:
        """Return the exact law of an answer, and noise that leads to each of them."""
        ...

    def noise(self, path: int, release: int, scales: Sequence[float]) -> list[int]:
        """Return the noise of a release on a path: in steps, a number for each scale."""
        ...

    def summary(self, model: Any) -> list[float]:
        """Return a few released numbers, as many for every model."""
        ...

    def difference(self, first: "MadeRelease", second: "MadeRelease") -> list[int] | None:
        """Return what must be added to the noise of the second to end where the first did.

        Both were made from the same model with the same noise, in either world; a number for each
        draw, in its order. None if no noise can do that.
        """
        ...


def spread_noise(path: int, release: int, scales: Sequence[float]) -> list[int]:
    """Return noise that is spread out, of its scale, and the same in every run.

    On the first path there is next to none, but different every time.
    """
    if path == 0:
        return [release + 1] * len(scales)
    turn = math.sqrt(2 + path + 7 * release)
    return [round(3 * scale * math.sin(turn * (k + 1))) for k, scale in enumerate(scales)]


@dataclass(frozen=True, slots=True, eq=False)
class MadeRelease:
    """A release: what it was made from, what of, by whom, and what noise would make of it."""

    recommender: Any
    before: Any
    gathered: Any
    model: Any
    steps: list[int]
    scales: list[float]
    with_steps: Callable[[list[int]], Any]


def difference_of_numbers(
    first: MadeRelease, second: MadeRelease, numbers: Callable[[Any, Any], list[int]]
) -> list[int] | None:
    """Compare the released numbers themselves, where each draw is added to one of them.

    `numbers` returns what noise was added to, in steps, given the model before and the model. Each
    draw is moved by an amount of its own, to see which number it belongs to.
    """
    ours, theirs = numbers(first.before, first.model), numbers(second.before, second.model)
    marked = numbers(
        second.before,
        second.with_steps([step + draw for draw, step in enumerate(second.steps, start=1)]),
    )
    if not len(ours) == len(theirs) == len(marked):
        return None
    moved = [0] * len(second.steps)
    for our, their, mark in zip(ours, theirs, marked, strict=True):
        if not 0 <= mark - their <= len(moved):
            return None
        if mark != their:
            moved[mark - their - 1] = our - their
        elif our != their:
            return None  # a number without noise
    return moved


@dataclass(frozen=True, slots=True)
class Planted:
    """What of the shipped objects is replaced by a broken one."""

    store: type[MemoryStore] = MemoryStore
    recommender: type[Recommender[Any]] | None = None
    releaser: type[Releaser] | None = None
    answers: type[StoredAnswers] | None = None


NOTHING_PLANTED = Planted()

DecideWith = Callable[[Callable[[NoiseSource], list[Decision]]], list[Decision]]
"""Given a decision as a function of noise, returns it for noise of one's own choice."""
ReleaseWith = Callable[[Any, Any, Any, Callable[[NoiseSource], Any]], Any]
"""The same for the next model; given the recommender, the model before and what was gathered."""


class WatchedStore(MemoryStore):
    """Notes every model that is written, and can fail at the worst moment.

    `lose` says where the next release is interrupted; `overtake` is awaited before the next model
    is written, which lets another worker be faster.
    """

    def __init__(self, *, clock: Callable[[], float]) -> None:
        super().__init__(clock=clock)
        self.models: list[bytes] = []
        self.model_key = b""
        self.lose: Lost | None = None
        self.overtake: Callable[[], Awaitable[object]] | None = None
        self._stored = False

    def lose_next(self, moment: Lost | None) -> None:
        """Interrupt the next release there."""
        self.lose, self._stored = moment, False

    def save(
        self, *, key: bytes, content: bytes, expected: int | None = None
    ) -> Awaitable[int | None]:
        if key != self.model_key:
            return super().save(key=key, content=content, expected=expected)
        return self._save_model(key, content, expected)

    async def _save_model(self, key: bytes, content: bytes, expected: int | None) -> int | None:
        self._die_at(Lost.BEFORE_STORING)
        overtake, self.overtake = self.overtake, None
        if overtake is not None:
            await overtake()
        saved = await super().save(key=key, content=content, expected=expected)
        if saved is not None:
            self.models.append(content)
            self._die_at(Lost.AFTER_STORING)
            self._stored = True
        return saved

    def frozen(self, *, generation: bytes, number: int) -> Awaitable[Mapping[bytes, Vector]]:
        self._die_at(Lost.BEFORE_READING)
        return super().frozen(generation=generation, number=number)

    def owners(self, *, generation: bytes) -> Awaitable[Sequence[bytes]]:
        self._die_at(Lost.BEFORE_READING)
        return super().owners(generation=generation)

    def discard(self, *, generation: bytes, number: int) -> Awaitable[None]:
        if self._stored:
            self._die_at(Lost.BEFORE_CLEANING_UP)
        return super().discard(generation=generation, number=number)

    def _die_at(self, moment: Lost) -> None:
        if self.lose is moment:
            self.lose = None
            raise StoreUnavailable("the worker died here")


async def open_worker(
    store: Any, noise: NoiseSource, clock: Callable[[], float], planted: Planted
) -> DecisionServices:
    """Open the shipped decisions over a store, and break what is to be broken."""
    services = await open_simulation(store=store, noise=noise, clock=clock)
    if planted.releaser is not None:
        releaser = planted.releaser(
            store=store, noise=noise, observer=services.releaser._observer, clock=clock
        )
        services = replace(services, releaser=releaser)
    if planted.answers is not None:
        honest = services.recommend._stored
        services.recommend._stored = planted.answers(
            store=store, principals=honest._principals, sealer=honest._sealer
        )
    return services


@dataclass(slots=True)
class _Client:
    """Where a client stands: questions asked, answers that wait for feedback, chances let pass."""

    asked: int = 0
    passed: int = 0
    waiting: list[Feedback] = field(default_factory=list)


def feedback_on(answer: Recommendation, behaviour: Behaviour, situation: Any) -> Iterator[Feedback]:
    """Yield what a client makes of the items of an answer."""
    for item in answer.items:
        reward = behaviour.reward(situation, item)
        if reward is not None:
            yield Feedback(reward, recommendation_id=answer.recommendation_id, item=item)


class Stage:
    """One world."""

    def __init__(
        self,
        *,
        family: LoopFamily,
        behaviours: Mapping[str, Behaviour],
        planted: Planted = NOTHING_PLANTED,
        decide_with: DecideWith | None = None,
        release_with: ReleaseWith | None = None,
    ) -> None:
        self.family = family
        self.now = _CREATED
        self._behaviours = behaviours
        self._planted = planted
        self._decide_with = decide_with
        self._release_with = release_with
        # What is planted stands behind what is watched, so that both see every call.
        kind = type("PlantedStore", (WatchedStore, planted.store), {})
        self.store: WatchedStore = kind(clock=lambda: self.now)
        self.workers: list[DecisionServices] = []
        self.adopted: list[Any] = []
        """Models that some worker answers from, or did."""
        self._clients = {client: _Client() for client in behaviours}

    # Opening.

    async def open(self, document: Mapping[str, Any], workers: int) -> None:
        """Create the recommender, and start so many workers."""
        for _ in range(workers):
            services = await open_worker(self.store, SystemNoise(), lambda: self.now, self._planted)
            self.workers.append(services)
        await self.change(document)

    async def change(self, document: Mapping[str, Any]) -> None:
        """Put the document, and let every worker see it."""
        algorithm = self.family.algorithm
        shipped = FAMILIES[algorithm]
        FAMILIES[algorithm] = self._planted.recommender or shipped
        try:
            await self.workers[0].registry.put(NAME, read_document(dict(document)))
            for services in self.workers:
                await services.registry.settle()
                self._wrap(await services.registry.find(NAME))
        finally:
            FAMILIES[algorithm] = shipped

    def _wrap(self, recommender: Any) -> None:
        """Take over where noise is used; everything else stays as it is."""
        if hasattr(recommender, "is_wrapped"):
            return
        recommender.is_wrapped = True
        self.store.model_key = recommender.key(b"model")
        decide, without = recommender.decide, recommender.decide_without_client
        release, adopt = recommender.release, recommender.adopt

        def adopted(*, number: int, released_at: float, model: Any) -> None:
            self.adopted.append(model)
            adopt(number=number, released_at=released_at, model=model)

        recommender.adopt = adopted
        if self._decide_with is not None:
            decide_with = self._decide_with

            def decided(
                model: Any, questions: Sequence[Question], own: Sequence[Any], _: NoiseSource
            ) -> list[Decision]:
                return decide_with(lambda noise: decide(model, questions, own, noise))

            def decided_without(
                model: Any, questions: Sequence[Question], _: NoiseSource
            ) -> list[Decision]:
                return decide_with(lambda noise: without(model, questions, noise))

            recommender.decide, recommender.decide_without_client = decided, decided_without
        if self._release_with is not None:
            release_with = self._release_with

            def released(model: Any, gathered: Any, _: NoiseSource) -> Any:
                return release_with(
                    recommender, model, gathered, lambda noise: release(model, gathered, noise)
                )

            recommender.release = released
            recommender.release_unwatched = release

    async def recommender(self, worker: int = 0) -> Any:
        """Return a worker's recommender."""
        return await self.workers[worker].registry.find(NAME)

    # Steps.

    async def ask(self, step: Asks) -> list[Recommendation | DiscreetError]:
        """Ask as a client, as often as the step says, and remember what it makes of the answer."""
        if step.times != 1:
            raise ValueError("one question after the other")
        client, behaviour = self._clients[step.client], self._behaviours[step.client]
        situation = behaviour.situation(client.asked)
        client.asked += 1
        ask = self.family.ask(NAME, step.client, situation)
        if step.retries:
            ask = ask._replace(event_id=f"{step.client} {client.asked}")
        answers: list[Recommendation | DiscreetError] = []
        for _ in range(1 + step.retries):
            try:
                answers.append(await self.workers[step.worker].recommend.recommend(ask))
            except DiscreetError as error:
                answers.append(error)
        last = answers[-1]
        if isinstance(last, Recommendation):
            client.waiting += feedback_on(last, behaviour, situation)
        return answers

    async def tell(self, step: Tells) -> None:
        """Send the client's waiting feedback, unless its patience lets this chance pass."""
        client = self._clients[step.client]
        if client.passed < self._behaviours[step.client].patience:
            client.passed += 1
            return
        client.passed = 0
        waiting, client.waiting = client.waiting, []
        for feedback in waiting:
            with suppress(DiscreetError):
                await self.workers[step.worker].feedback.record(feedback)

    async def release(self, worker: int) -> bool:
        """Let a worker release if it is due, and the others notice; tell whether it did.

        A worker that dies on the way is replaced: its recommender loads what is stored.
        """
        try:
            released = await self.workers[worker].releaser.release_if_due(
                await self.recommender(worker)
            )
        except StoreUnavailable:
            released = False
        await self._notice()
        return released

    async def race(self) -> None:
        """Let two workers release at once, whatever leases say: the second overtakes the first.

        The first has drawn its noise and is about to store its model when the second does both.
        """
        first, second = [await self.recommender(worker) for worker in (0, 1)]
        self.store.overtake = lambda: self.workers[1].releaser.release(second)
        await self.workers[0].releaser.release(first)
        await self._notice()

    async def _notice(self) -> None:
        for worker, services in enumerate(self.workers):
            await services.releaser.load_newer([await self.recommender(worker)])

    async def ledger(self, client: str = PERSON) -> Ledger:
        """Return how a client's ledger stands."""
        recommender = await self.recommender()
        (ledger,) = await self.store.ledgers([recommender.principal(client)])
        return ledger

    async def close(self) -> None:
        """Stop."""
        for services in self.workers:
            await services.close()
