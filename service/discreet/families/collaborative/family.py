"""Collaborative filtering at work: what the service asks of every family, for this one.

| who | protected against whom | how |
|---|---|---|
| clients | nobody | `privacy.mode` is none, and every answer says so (null) |

The profiles are used exactly as they were sent. Whoever wants protection perturbs the history
before it leaves the user's device (`discreet hub`); what arrives here is then already public in
the sense of that promise, and nothing that is done with it costs anything more.

An answer reads the client's profile, so a profile counts for its own client as soon as it is
there, with any worker; what it teaches about items counts from the next training on. Feedback has
no client in it: it makes the item more popular for everybody, and that is all.
"""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from discreet.families.p_dap.contract import Address, Choice, Decision
from discreet.families.questions import Ask, Feedback, Receipt, Recommendation
from discreet.families.collaborative.known import Known
from discreet.families.collaborative.profiles import (
    erase_profile,
    profile_key,
    remove_profiles,
    unpack,
)
from discreet.families.collaborative.recommender import CollaborativeRecommender
from discreet.families.collaborative.snapshot import Snapshot
from discreet.families.collaborative.trainer import (
    Head,
    due,
    erase_snapshot,
    look,
    snapshot_key,
    train,
)
from discreet.decisions.family import Plain
from discreet.decisions.hearing import REWARD_STEPS, note_heard, position_of
from discreet.families.observer import Answer, Figure
from discreet.decisions.recommender import Recommender, Slots, Stored
from discreet.families.budgets import FREE, UNPROTECTED
from discreet.decisions.tokens import ADDRESS_BYTES, Pending, new_decision_id, seal_decision
from discreet.errors import StoreUnavailable
from discreet.state.stores import Blob, Claim, Learned

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

log = logging.getLogger(__name__)

WATCH_SECONDS = 1.0
REST_SECONDS = 60.0
_NOWHERE = Address(bytes(ADDRESS_BYTES))
_NOBODY: Slots = np.zeros(0, dtype=np.intp)


class CollaborativeFamily(Plain):
    """Snapshots by generation, and the task that keeps them new."""

    def __init__(self) -> None:
        self._known: dict[bytes, Known] = {}
        self._missing: set[bytes] = set()
        self._resting_until: dict[bytes, float] = {}
        self._watching: asyncio.Task[None] | None = None
        self._training: asyncio.Task[None] | None = None

    def compile(self, *, name: str, stored: Stored) -> CollaborativeRecommender:
        """Sort the catalogue by category."""
        return CollaborativeRecommender(name=name, stored=stored)

    def check(self, recommender: Recommender, ask: Ask) -> None:
        """A known category, ids for candidates, and nothing that other families use."""
        assert isinstance(recommender, CollaborativeRecommender)
        recommender.offer(ask)

    def answer(
        self, runtime: "Runtime", recommender: Recommender, ask: Ask, marker: bytes | None = None
    ) -> Awaitable[Recommendation]:
        """Read the client's profile, which begins now; rank once it is back."""
        assert isinstance(recommender, CollaborativeRecommender)
        offer = recommender.offer(ask)
        recommender.touched = True
        who = runtime.principals.client(recommender.name, ask.client)
        profile = runtime.store.load(keys=[profile_key(recommender, who)])
        return self._finish(runtime, recommender, offer, ask.limit, profile)

    async def _finish(
        self,
        runtime: "Runtime",
        recommender: CollaborativeRecommender,
        offer: Slots,
        limit: int,
        profile: Awaitable[Sequence[Blob | None]],
    ) -> Recommendation:
        (held,) = await profile
        mine = _NOBODY if held is None else unpack(held.content)
        known = self._known_of(recommender)
        ranked = known.rank(profile=mine, offer=offer, limit=limit, size=recommender.size)
        # Whether or not anything was learned yet, what a profile holds is left out for its client.
        personalised = len(mine) > 0
        expires_at = int(runtime.clock()) + recommender.ttl
        choices = tuple(Choice(slot=slot, propensity=1.0) for slot in ranked.tolist())
        runtime.observer.recommendation(
            recommender=recommender.name,
            algorithm=recommender.algorithm,
            outcome=Answer.UNPROTECTED if choices else Answer.EMPTY,
            charge=FREE,
            items=len(choices),
            estimated_regret=0.0,
        )
        return Recommendation(
            recommendation_id=seal_decision(
                runtime.sealer,
                Pending(
                    generation=recommender.generation,
                    decision_id=new_decision_id(),
                    expires_at=expires_at,
                    decision=Decision(choices, _NOWHERE, personalised=personalised),
                ),
            ),
            items=tuple(recommender.id_of[choice.slot] for choice in choices),
            personalised=personalised,
            privacy=UNPROTECTED,
            expires_at=expires_at,
        )

    def hear(
        self,
        runtime: "Runtime",
        recommender: Recommender,
        pending: Pending,
        feedback: Feedback,
        ttl: int,
    ) -> Awaitable[Receipt]:
        """Add the reward to its item's, once."""
        assert isinstance(recommender, CollaborativeRecommender)
        position = position_of(recommender, pending, feedback.item)
        reward = round(feedback.reward * REWARD_STEPS)
        recommender.touched = True
        learned = runtime.store.learn(
            address=recommender.rewards,
            increments=[(0, 1), (1 + pending.decision.choices[position].slot, reward)],
            claim=pending.decision_id + position.to_bytes(2, "little"),
            reward=reward,
            claim_ttl=ttl,
        )
        return self._heard(runtime, recommender, learned, feedback.reward)

    async def _heard(
        self,
        runtime: "Runtime",
        recommender: CollaborativeRecommender,
        learned: Awaitable[Learned],
        reward: float,
    ) -> Receipt:
        outcome = await learned
        if outcome.claim is not Claim.CONFLICT and outcome.arrivals & (outcome.arrivals - 1) == 0:
            # Indexed, so that it is erased with the recommender; again at every power of two, in
            # case that a crash lost the entry.
            await runtime.store.index_cell(
                index=recommender.generation, address=recommender.rewards, level=0
            )
        return note_heard(runtime, recommender, outcome.claim, reward)

    async def refresh(self, runtime: "Runtime", recommender: Recommender) -> None:
        """Take over the newest snapshot and what feedback adds up to."""
        assert isinstance(recommender, CollaborativeRecommender)
        (sums,) = await runtime.store.read(addresses=[recommender.rewards])
        self._known_of(recommender).hear(sums)
        head, _ = await look(runtime.store, recommender)
        await self._catch_up(runtime, recommender, head)

    async def _catch_up(
        self, runtime: "Runtime", recommender: CollaborativeRecommender, head: Head | None
    ) -> None:
        known = self._known_of(recommender)
        if head is None or head.version <= known.version:
            return
        (blob,) = await runtime.store.load(keys=[snapshot_key(recommender)])
        if blob is None:
            return
        try:
            snapshot = await asyncio.to_thread(Snapshot.decode, blob.content)
        except ValueError:
            log.exception("a snapshot cannot be read; the one before it stays in use")
            return
        known.adopt(snapshot, version=blob.version)
        runtime.observer.figure(
            recommender=recommender.name, what=Figure.PROFILES, value=snapshot.profiles
        )

    async def train(self, runtime: "Runtime", recommender: CollaborativeRecommender) -> bool:
        """Train now if anything changed and nobody else does; take over what came out."""
        trained = await train(runtime, recommender)
        if trained:
            await self.refresh(runtime, recommender)
        return trained

    async def remove(self, runtime: "Runtime", recommender: Recommender) -> None:
        """Erase the profiles, what they taught, and the rewards."""
        assert isinstance(recommender, CollaborativeRecommender)
        await super().remove(runtime, recommender)
        await remove_profiles(runtime.store, recommender)
        await erase_snapshot(runtime.store, recommender)

    async def forget(self, runtime: "Runtime", recommender: Recommender, client: str) -> int:
        """Erase a client's profile; the next training is without it."""
        assert isinstance(recommender, CollaborativeRecommender)
        return int(await erase_profile(runtime, recommender, client=client))

    def start(self, runtime: "Runtime") -> None:
        """Begin to look for newer snapshots, and to train."""
        self._watching = asyncio.create_task(self._watch(runtime), name="collaborative")

    async def stop(self) -> None:
        """Stop both. A training that is under way is given up: another worker will begin it."""
        for task in (self._watching, self._training):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    def _known_of(self, recommender: Recommender) -> Known:
        known = self._known.get(recommender.generation)
        if known is None:
            known = self._known[recommender.generation] = Known()
        return known

    async def _watch(self, runtime: "Runtime") -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            ours = [
                one for one in runtime.registry.held() if isinstance(one, CollaborativeRecommender)
            ]
            self._let_go_of_all_but({one.generation for one in ours})
            for recommender in ours:
                try:
                    await self._attend(runtime, recommender)
                except StoreUnavailable:
                    continue
                except Exception:
                    log.exception("a collaborative recommender could not be looked after")

    def _let_go_of_all_but(self, generations: set[bytes]) -> None:
        """Forget what was removed. What is missing once may be about to be there: see `refresh`."""
        missing = self._known.keys() - generations
        for gone in missing & self._missing:
            del self._known[gone]
            self._resting_until.pop(gone, None)
        self._missing = missing

    async def _attend(self, runtime: "Runtime", recommender: CollaborativeRecommender) -> None:
        head, changes = await look(runtime.store, recommender)
        await self._catch_up(runtime, recommender, head)
        now = runtime.clock()
        busy = self._training is not None and not self._training.done()
        rested = self._resting_until.get(recommender.generation, 0.0) <= now
        if not busy and rested and due(recommender, head, changes, now):
            self._training = asyncio.create_task(
                self._train_once(runtime, recommender), name="collaborative training"
            )

    async def _train_once(self, runtime: "Runtime", recommender: CollaborativeRecommender) -> None:
        trained = False
        try:
            trained = await self.train(runtime, recommender)
        except StoreUnavailable:
            log.warning("a training was given up because the store did not answer")
        except Exception:
            log.exception("a training failed")
        finally:
            # Whoever failed, or found somebody else at it, waits before trying again; not for
            # long, because whoever is at it may die.
            pause = 0.0 if trained else min(recommender.document.training.seconds, REST_SECONDS)
            self._resting_until[recommender.generation] = runtime.clock() + pause
