"""A store that fails for some and not for others, and a look at which rows are decided."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
import pytest

from discreet.families.p_dap.adaptive_partition import AdaptivePartition
from discreet.families.p_dap.adaptive_partition_many import decide_many
from discreet.families.p_dap.contract import Decision, Deeper
from discreet.families.questions import Ask, Recommendation
from discreet.decisions.clients import budget_of
from discreet.families.p_dap import answering_many
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.decisions.recommend import recommend, recommend_batch
from discreet.decisions.runtime import Runtime
from discreet.errors import StoreUnavailable
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore
from discreet.state.stores import Rows

Way = Callable[[Runtime, Sequence[Ask]], Awaitable[list[Any]]]


async def in_a_batch(runtime: Runtime, asks: Sequence[Ask]) -> list[Any]:
    return list(await recommend_batch(runtime, asks))


async def in_one_turn(runtime: Runtime, asks: Sequence[Ask]) -> list[Any]:
    asked = (recommend(runtime, ask) for ask in asks)
    return list(await asyncio.gather(*asked, return_exceptions=True))


WAYS = pytest.mark.parametrize("ask_all", [in_a_batch, in_one_turn])


class Patchy(MemoryStore):
    """Debits of some ledgers fail, with or without having been made; some cells are unreadable."""

    def __init__(self) -> None:
        super().__init__()
        self.refusing: set[bytes] = set()
        self.losing: set[bytes] = set()
        """Principals that are debited, though nobody hears of it."""
        self.unreadable: set[bytes] = set()
        self.lots: list[int] = []
        self.looked = 0

    def spend_each(self, *, principals: Sequence[bytes], **given: Any) -> Awaitable[Any]:
        self.lots.append(len(principals))
        asked = [each for each in principals if each not in self.refusing]
        made = super().spend_each(principals=asked, **given)

        async def patched() -> list[Any]:
            accounts = iter(await made)
            found: list[Any] = []
            for each in principals:
                account = None if each in self.refusing else next(accounts)
                lost = account is None or each in self.losing
                found.append(StoreUnavailable("no answer") if lost else account)
            return found

        return patched()

    def read_rows(self, *, addresses: Sequence[bytes], fields: int) -> Awaitable[Rows]:
        read = super().read_rows(addresses=addresses, fields=fields)

        async def patched() -> Rows:
            failed = {
                place: StoreUnavailable("torn")
                for place, address in enumerate(addresses)
                if address in self.unreadable
            }
            return Rows((await read).sums, failed)

        return patched()

    def read(self, *, addresses: Sequence[bytes]) -> Awaitable[Any]:
        self.looked += 1
        if self.unreadable.intersection(addresses):
            raise StoreUnavailable("torn")
        return super().read(addresses=addresses)


def store_of(runtime: Runtime) -> Patchy:
    assert isinstance(runtime.store, Patchy)
    return runtime.store


def principal(runtime: Runtime, client: str, recommender: str = "films") -> bytes:
    return runtime.principals.client(recommender, client)


async def learner_in(runtime: Runtime, recommender: str = "films") -> AdaptivePartition:
    found = await runtime.registry.find(recommender)
    assert isinstance(found, PartitionRecommender)
    assert isinstance(found.learner, AdaptivePartition)
    return found.learner


async def split_root(runtime: Runtime) -> None:
    """Let the whole cube have split, which no worker has seen yet."""
    learner = await learner_in(runtime)
    root = learner.partition.route(np.zeros(2)).address(0).key
    await runtime.store.learn(
        address=root, increments=[(0, 50), (1, 50)], claim=b"c" * 14, reward=0, claim_ttl=60
    )


async def spent(runtime: Runtime, client: str, recommender: str = "films") -> float:
    report = await budget_of(runtime, recommender=recommender, client=client)
    assert report.spent is not None
    return report.spent.epsilon


class Watch:
    """Which contexts were decided upon, in which lots, and what with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lots: list[list[int]] = []
        self.change: Callable[[Decision | Deeper], Decision | Deeper] = lambda decision: decision
        monkeypatch.setattr(answering_many, "decide_many", self._decide)

    @property
    def rows(self) -> list[int]:
        """The rows of the only lot."""
        [rows] = self.lots
        return rows

    def _decide(self, learner: Any, **given: Any) -> list[Decision | Deeper]:
        self.lots.append(list(given["rows"]))
        return [self.change(one) for one in decide_many(learner, **given)]


async def open_patchy(observer: Any = None, *, turns: bool = True) -> Runtime:
    return await Runtime.open(
        store=Patchy(),
        noise=SystemNoise(),
        lease_seconds=float("inf"),
        survey_seconds=3_600 if turns else float("inf"),
        observer=observer,
    )


def kinds(answers: Sequence[Any]) -> list[str]:
    """Return what became of each, in a word."""
    return [
        ("personalised" if one.personalised else "plain")
        if isinstance(one, Recommendation)
        else type(one).__name__
        for one in answers
    ]
