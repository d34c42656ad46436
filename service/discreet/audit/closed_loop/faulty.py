"""Mistakes that a closed loop invites, planted by replacing what is shipped with something broken.

Stores, releasers and answers for retries serve every family. A recommender is broken by deriving
from the family's own class.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.audit.scripted_noise import ConstantNoise
from discreet.decisions.release import Releaser, write_model
from discreet.decisions.retries import StoredAnswer, StoredAnswers
from discreet.errors import DiscreetError
from discreet.families.contract import Recommender
from discreet.families.questions import (
    Ask,
    Decision,
    Lesson,
    PendingDecision,
    Question,
    Recommendation,
    RetryMark,
)
from discreet.privacy.charges import Charge
from discreet.privacy.noise import NoiseSource
from discreet.state.memory import MemoryStore
from discreet.state.ready import Ready
from discreet.state.stores import EXACT, NO_CHARGE, Vector

FamilyClass = type[Recommender[Any]]


class RepeatedFreezeStore(MemoryStore):
    """Lets what comes after a freeze into the same release, and yet begins to count anew."""

    def freeze(self, *, generation: bytes, number: int) -> Awaitable[None]:
        if self._numbers.get(generation, 0) == number:
            held = self._frozen.setdefault((generation, number), {})
            for block, vector in self._open.pop(generation, {}).items():
                held[block] = _summed(held.get(block), vector)
            self._counts.pop(generation, None)
        return super().freeze(generation=generation, number=number)


class ForgetfulDiscardStore(MemoryStore):
    """Does not erase what a release was made from: the next one is made from it as well."""

    def discard(self, *, generation: bytes, number: int) -> Awaitable[None]:
        return Ready(None)

    def frozen(self, *, generation: bytes, number: int) -> Awaitable[Mapping[bytes, Vector]]:
        held: dict[bytes, Vector] = {}
        for (owner, at), blocks in self._frozen.items():
            if owner == generation and at <= number:
                for block, vector in blocks.items():
                    held[block] = _summed(held.get(block), vector)
        return Ready(held)


def _summed(one: Vector | None, other: Vector) -> Vector:
    if one is None:
        return other
    total = np.zeros(max(len(one), len(other)), dtype=np.int64)
    total[: len(one)] += one
    total[: len(other)] += other
    return total


class RedrawingReleaser(Releaser):
    """Draws noise anew for a release that is stored already, and stores that as well."""

    async def release(self, recommender: Recommender[Any]) -> bool:
        before, number = recommender.current, recommender.current.number
        gathered = await recommender.gather(number + 1)
        for attempt in (1, 2):
            model = recommender.release(before.model, gathered, self._noise)
            await self._store.save(
                key=recommender.key(b"model"),
                content=write_model(self._clock(), recommender.encode(model)),
                expected=number + attempt - 1,
            )
            recommender.adopt(number=number + attempt, released_at=self._clock(), model=model)
        await recommender.clean_up(number + 1)
        await self._store.freeze(generation=recommender.generation, number=number + 2)
        return True


class HastyReleaser(Releaser):
    """Answers from a model before it is stored, and goes on doing so if it never is."""

    async def release(self, recommender: Recommender[Any]) -> bool:
        current, number = recommender.current, recommender.current.number + 1
        gathered = await recommender.gather(number)
        model = recommender.release(current.model, gathered, self._noise)
        recommender.adopt(number=number, released_at=self._clock(), model=model)
        saved = await self._store.save(
            key=recommender.key(b"model"),
            content=write_model(self._clock(), recommender.encode(model)),
            expected=current.number,
        )
        if saved is not None:
            await recommender.clean_up(number)
        return saved is not None


class RedrawingAnswers(StoredAnswers):
    """Draws again for a retry, under the mark that was paid once."""

    async def answer_once(
        self,
        recommender: Recommender[Any],
        ask: Ask,
        client: bytes,
        fresh: Callable[[RetryMark], Awaitable[Recommendation]],
    ) -> StoredAnswer:
        assert ask.event_id is not None
        mark = RetryMark(self._principals.event(ask.event_id), recommender.ttl)
        return StoredAnswer(await fresh(mark), repeated=False)


def decides_from_raw_sums(family: FamilyClass) -> FamilyClass:
    """Return the family with answers from sums that nobody has released."""

    class RawDeciding(family):  # type: ignore[misc, valid-type]
        """Adds what has gathered so far to the model, without noise, before it decides."""

        def _raw(self, model: Any) -> Any:
            store: Any = self.store
            gathered = store._open.get(self.generation, {})
            return family.release(self, model, gathered, ConstantNoise())

        def decide(
            self, model: Any, questions: Sequence[Question], own: Sequence[Any], noise: NoiseSource
        ) -> list[Decision]:
            decided: list[Decision] = super().decide(self._raw(model), questions, own, noise)
            return decided

    return RawDeciding


def releases_by_feedback(family: FamilyClass, *, records: int) -> FamilyClass:
    """Return the family with releases that wait for so many records."""

    class CountingReleases(family):  # type: ignore[misc, valid-type]
        """Releases once enough feedback has come: the moment tells how much did."""

        def due(self, now: float) -> bool:
            store: Any = self.store
            counted = sum(store._counts.get(self.generation, {}).values())
            return bool(super().due(now) and counted >= records)

    return CountingReleases


def exactness_unbooked(family: FamilyClass) -> FamilyClass:
    """Return the family with exact answers and exact feedback that cost nothing."""

    class UnbookedExactness(family):  # type: ignore[misc, valid-type]
        """Books nothing where nothing is protected, as if that were free."""

        def price(self, question: Question) -> Charge:
            price: Charge = super().price(question)
            return NO_CHARGE if price == EXACT else price

        def lessons(
            self, many: Sequence[tuple[PendingDecision, int, float]]
        ) -> list[Lesson | DiscreetError]:
            return [
                lesson._replace(charge=NO_CHARGE)
                if isinstance(lesson, Lesson) and lesson.charge == EXACT
                else lesson
                for lesson in super().lessons(many)
            ]

    return UnbookedExactness


def dislikes_are_free(family: FamilyClass) -> FamilyClass:
    """Return the family with a price that depends on the reward."""

    class FreeDislikes(family):  # type: ignore[misc, valid-type]
        """Charges for likes only."""

        def learn(self, pending: PendingDecision, position: int, reward: float) -> Lesson:
            lesson: Lesson = super().learn(pending, position, reward)
            return lesson if reward > 0 else lesson._replace(charge=NO_CHARGE)

    return FreeDislikes
