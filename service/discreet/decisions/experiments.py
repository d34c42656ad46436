"""Experiments: one name whose clients are divided among recommenders, and what came of it.

A client's arm follows from a keyed hash of the experiment's name and the client's id. Neither the
context nor anything that was learned has a part in it, so which arm a client got is a public fact.
All arms are in one ledger group: whatever moves a client to another arm, one budget pays for it.

What is said about an arm comes from its released model (`ReleasedFigures`): the noisy sums of what
it learned from, which was paid for. So results cost nothing, and are as old as the last release.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.decisions.registry import EXPERIMENT, RECOMMENDER, RecommenderRegistry, Snapshot
from discreet.errors import (
    DiscreetError,
    InvalidArgument,
    RecommenderUnreadable,
    UnknownRecommender,
)
from discreet.families.answering import DecidingRecommender
from discreet.families.budgets import FREE
from discreet.families.contract import Recommender
from discreet.families.experiments import ExperimentDocument
from discreet.families.observer import AnswerOutcome
from discreet.families.questions import Answered, Ask, Opens, Question
from discreet.state.principals import Principals
from discreet.state.stores import Configurations, Debit

_UNKNOWN = "no experiment of that name; GET /experiments lists them"
_HASH_BITS = 64
_HOLDOUT = "held out of the experiment: chosen without looking at the client"


@dataclass(frozen=True, slots=True)
class ArmResult:
    """What a released model says about an arm's rewards, in the range of its document.

    `low` and `high` hold the mean with 95 % confidence, chance and noise included; all are None
    where the family does not say. `ahead` is how far the mean is ahead of the first arm's, with its
    own interval.
    """

    recommender: str
    share: float
    holdout: bool
    release: int
    feedback: float | None
    mean: float | None
    low: float | None
    high: float | None
    ahead: tuple[float, float, float] | None


class Experiments:
    """Routes questions to arms, and looks after the documents."""

    def __init__(
        self, *, store: Configurations, registry: RecommenderRegistry, principals: Principals
    ) -> None:
        self._store = store
        self._registry = registry
        self._principals = principals

    def route(self, snapshot: Snapshot, ask: Ask) -> Ask:
        """Return the question as it goes to the client's arm; unchanged if it is to none."""
        document = snapshot.experiments.get(ask.recommender)
        if document is None:
            return ask
        arm = self.arm_of(ask.recommender, document, ask.client)
        return ask._replace(
            recommender=arm, anybody=arm in document.holdout, shadow=document.shadow
        )

    def arm_of(self, name: str, document: ExperimentDocument, client: str) -> str:
        """Return which arm a client gets."""
        digest = self._principals.request([b"experiment", name.encode(), client.encode()])
        left = int.from_bytes(digest[: _HASH_BITS // 8], "big") / 2**_HASH_BITS
        arms = list(document.traffic.items())
        for arm, share in arms:
            if left < share:
                return arm
            left -= share
        return arms[-1][0]

    def reach(self, snapshot: Snapshot, recommenders: frozenset[str]) -> frozenset[str]:
        """Return recommenders, with the arms of the experiments among these names."""
        known = snapshot.experiments
        arms = (known[name].traffic for name in recommenders if name in known)
        return recommenders.union(*arms)

    # Documents.

    async def names(self) -> list[str]:
        """Return the name of every experiment, sorted."""
        return sorted((await self._registry.current()).experiments)

    async def show(self, name: str) -> ExperimentDocument:
        """Return an experiment's document, or raise `UnknownRecommender`, or why it is not read."""
        snapshot = await self._registry.current()
        found = snapshot.experiments.get(name)
        if found is None:
            if EXPERIMENT + name in snapshot.documents:
                raise RecommenderUnreadable(snapshot.unreadable[name])
            raise UnknownRecommender(_UNKNOWN)
        return found

    async def put(self, name: str, document: ExperimentDocument) -> bool:
        """Create or change an experiment; tell whether it is new. Every worker sees it after."""
        content = document.model_dump_json(exclude_defaults=True).encode()
        while True:
            snapshot = await self._registry.current()
            if RECOMMENDER + name in snapshot.documents:
                raise InvalidArgument("name", "is a recommender's; give the experiment another")
            _require_arms(document, snapshot.recommenders)
            _require_shadows(document, snapshot.recommenders)
            expected = snapshot.documents.get(EXPERIMENT + name)
            if content == expected:
                return False
            if await self._store.put_document(
                name=EXPERIMENT + name, document=content, expected=expected
            ):
                await self._registry.settle()
                return expected is None
            await self._registry.refresh()

    async def remove(self, name: str) -> None:
        """Remove an experiment; its arms stay, with what they learned."""
        full = EXPERIMENT + name
        while True:
            standing = (await self._store.registry()).documents.get(full)
            if standing is None:
                raise UnknownRecommender(_UNKNOWN)
            if await self._store.remove_document(name=full, expected=standing):
                return await self._registry.settle()

    # Results.

    async def results(self, name: str) -> list[ArmResult]:
        """Return what the released models say about each arm."""
        document = await self.show(name)
        recommenders = (await self._registry.current()).recommenders
        results: list[ArmResult] = []
        first: tuple[float, float] | None = None
        for arm, share in document.traffic.items():
            recommender = recommenders.get(arm)
            if recommender is None:
                raise UnknownRecommender(f"the arm {arm} is not served")
            current = recommender.current
            figures = await asyncio.to_thread(recommender.figures, current.model)
            found = figures.mean_and_error()
            if not results:
                first = found
            low, high = recommender.reward.range
            width = high - low

            def shown(value: float, low: float = low, width: float = width) -> float:
                return low + width * value

            held = None if found is None else _interval(*found, 0.0, 1.0)
            results.append(
                ArmResult(
                    recommender=arm,
                    share=share,
                    holdout=arm in document.holdout,
                    release=current.number,
                    feedback=figures.feedback,
                    mean=None if found is None else shown(found[0]),
                    low=None if held is None else shown(held[0]),
                    high=None if held is None else shown(held[1]),
                    ahead=_ahead(found, first, width) if results else None,
                )
            )
        return results


async def answer_anybody(
    recommender: Recommender[Any], questions: Sequence[Question], opens: Opens | None
) -> list[Answered | DiscreetError]:
    """Answer each question from the released model alone: a holdout. Nothing is charged."""
    recommender.asked = True
    model, noise = recommender.current.model, recommender.noise
    decided = recommender.decide_without_client(model, questions, noise)
    shown = [one._replace(reason=_HOLDOUT if one.items else one.reason) for one in decided]
    opened = opens(range(len(questions)), shown) if opens else [None] * len(questions)
    budget = recommender.answers_budget
    # Debits of nothing: they tell how the ledger stands, and open the decisions.
    debits = await recommender.store.spend(
        [
            Debit(question.client, window=budget.window if budget else 0, opened=one)
            for question, one in zip(questions, opened, strict=True)
        ]
    )
    return [
        debit
        if isinstance(debit, DiscreetError)
        else Answered(
            *(one, AnswerOutcome.HOLDOUT if one.items else AnswerOutcome.EMPTY, FREE),
            *(debit.ledger, debit.awaiting),
        )
        for one, debit in zip(shown, debits, strict=True)
    ]


def _ahead(
    one: tuple[float, float] | None, first: tuple[float, float] | None, width: float
) -> tuple[float, float, float] | None:
    if one is None or first is None:
        return None
    difference, error = one[0] - first[0], math.hypot(one[1], first[1])
    low, high = _interval(difference, error, -1.0, 1.0)
    return width * difference, width * low, width * high


def _interval(mean: float, error: float, least: float, most: float) -> tuple[float, float]:
    """Return where the truth lies with 95 % confidence."""
    return max(mean - 1.96 * error, least), min(mean + 1.96 * error, most)


def _require_arms(
    document: ExperimentDocument, recommenders: Mapping[str, Recommender[Any]]
) -> None:
    """Raise `InvalidArgument` unless the arms are there, share ledgers and mean the same."""
    arms: list[Recommender[Any]] = []
    for name in document.traffic:
        arm = recommenders.get(name)
        if arm is None:
            raise InvalidArgument(f"traffic.{name}", "is no recommender; create it first")
        arms.append(arm)
    first = arms[0]
    for arm in arms:
        where = f"traffic.{arm.name}"
        if arm.stored.document.ledger is None:
            raise InvalidArgument(
                where,
                "has a ledger of its own: create it with `ledger: NAME`, the same for all arms, so "
                "that a client who moves to another arm does not get a fresh budget",
            )
        if arm.stored.document.ledger != first.stored.document.ledger:
            raise InvalidArgument(where, f"is in another ledger group than {first.name}")
        if arm.reward != first.reward:
            raise InvalidArgument(where, f"has another `reward` than {first.name}")
        if arm.name in document.holdout and not _answers_anybody(arm):
            raise InvalidArgument("holdout", f"{arm.algorithm} cannot answer without a client")


def _require_shadows(
    document: ExperimentDocument, recommenders: Mapping[str, Recommender[Any]]
) -> None:
    """Raise `InvalidArgument` unless shadows can answer from a model, and somebody notes it."""
    for name in document.shadow:
        shadow = recommenders.get(name)
        if shadow is None:
            raise InvalidArgument(f"shadow.{name}", "is no recommender; create it first")
        if type(shadow).read_own is not DecidingRecommender.read_own:
            raise InvalidArgument(
                f"shadow.{name}",
                f"{shadow.algorithm} answers from what it keeps of each client, not from a "
                "released model alone",
            )
    for name in document.traffic if document.shadow else ():
        if recommenders[name].stored.document.log is None:
            raise InvalidArgument(
                "shadow",
                f"what shadows would show is written to the decision log, and {name} has none: "
                "give it `log:`",
            )


def _answers_anybody(arm: Recommender[Any]) -> bool:
    return type(arm).decide_without_client is not DecidingRecommender.decide_without_client
