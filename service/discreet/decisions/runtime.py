"""What every decision needs, opened once per worker."""

import math
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from discreet.families.questions import Ask, Receipt, Recommendation
from discreet.decisions.families import families
from discreet.decisions.family import Family, Word
from discreet.decisions.keys import KeyRing
from discreet.families.observer import NullObserver, Observer
from discreet.families.p_dap.learners import LearnerFactory, learner_for
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.families.p_dap.relay import Relay
from discreet.families.p_dap.vendors import NoVendors, VendorGateway
from discreet.families.peering import NoPeers, PeerGateway
from discreet.state.principals import Principals
from discreet.decisions.recommender import Recommender
from discreet.decisions.registry import RecommenderRegistry
from discreet.decisions.survey import Surveyor
from discreet.decisions.tokens import KEY_BYTES, Sealer
from discreet.decisions.turns import Turns
from discreet.errors import DiscreetError
from discreet.privacy.noise import NoiseSource, require_production
from discreet.state.stores import Store

LEASE_SECONDS = 0.25
SURVEY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Runtime:
    """The store and everything held in memory beside it."""

    store: Store
    noise: NoiseSource
    observer: Observer
    principals: Principals
    sealer: Sealer
    registry: RecommenderRegistry
    keys: KeyRing
    surveyor: Surveyor
    vendors: VendorGateway
    peers: PeerGateway
    relay: Relay
    clock: Callable[[], float]
    families: Mapping[str, Family]
    asked: Turns[Ask, Recommendation] | None
    told: Turns[Word, Receipt] | None
    """None in simulations, where one thing comes after the other and no loop need run."""

    @classmethod
    async def open(
        cls,
        *,
        store: Store,
        noise: NoiseSource,
        observer: Observer | None = None,
        token_keys: Sequence[bytes] = (),
        api_keys: Mapping[str, frozenset[str]] | None = None,
        lease_seconds: float = LEASE_SECONDS,
        survey_seconds: float = SURVEY_SECONDS,
        vendors: VendorGateway | None = None,
        peers: PeerGateway | None = None,
        clock: Callable[[], float] = time.time,
    ) -> "Runtime":
        """Open a runtime that serves people: reproducible noise is refused."""
        require_production(noise)
        return await cls._open(
            store=store,
            noise=noise,
            observer=observer or NullObserver(),
            token_keys=token_keys,
            api_keys=api_keys or {},
            lease_seconds=lease_seconds,
            survey_seconds=survey_seconds,
            clock=clock,
            learner_for=learner_for,
            vendors=vendors,
            peers=peers,
        )

    @classmethod
    async def open_for_simulation(
        cls,
        *,
        store: Store,
        noise: NoiseSource,
        clock: Callable[[], float] = time.time,
        learner_for: LearnerFactory = learner_for,
        vendors: VendorGateway | None = None,
        peers: PeerGateway | None = None,
    ) -> "Runtime":
        """Open a runtime over a store that nobody else uses; its noise may be seeded.

        `learner_for` lets a simulation drive learners that no document can ask for, such as an
        algorithm exactly as its paper prints it, through the same decisions.

        Surveys run when the simulation asks for them (`surveyor.prepare`), not by the clock, so
        that the same seed gives the same run.
        """
        return await cls._open(
            store=store,
            noise=noise,
            observer=NullObserver(),
            token_keys=(),
            api_keys={},
            lease_seconds=math.inf,
            survey_seconds=math.inf,
            clock=clock,
            learner_for=learner_for,
            vendors=vendors,
            peers=peers,
        )

    @classmethod
    async def _open(
        cls,
        *,
        store: Store,
        noise: NoiseSource,
        observer: Observer,
        token_keys: Sequence[bytes],
        api_keys: Mapping[str, frozenset[str]],
        lease_seconds: float,
        survey_seconds: float,
        clock: Callable[[], float],
        learner_for: LearnerFactory,
        vendors: VendorGateway | None,
        peers: PeerGateway | None,
    ) -> "Runtime":
        serving = math.isfinite(survey_seconds)
        await store.open()
        pepper = await store.secret(name="principals", proposal=os.urandom(KEY_BYTES))
        # Without keys from outside, all workers share one that lives in the store.
        keys = list(token_keys) or [
            await store.secret(name="tokens", proposal=os.urandom(KEY_BYTES))
        ]
        known = families(learners=learner_for)
        surveyor = Surveyor(
            refresh=lambda one: known[one.algorithm].refresh(runtime, one),
            recommenders=lambda: registry.held(),
            seconds=survey_seconds,
        )
        registry = RecommenderRegistry(
            store=store,
            lease_seconds=lease_seconds,
            compile_=lambda name, stored: known[stored.document.algorithm].compile(
                name=name, stored=stored
            ),
            prepare=surveyor.prepare,
            erase=lambda one: known[one.algorithm].remove(runtime, one),
        )

        def answer_many(
            one: Recommender, asks: Sequence[Ask]
        ) -> Awaitable[Sequence[Recommendation | DiscreetError]]:
            return known[one.algorithm].answer_many(runtime, one, asks)

        def hear_many(
            one: Recommender, words: Sequence[Word]
        ) -> Awaitable[Sequence[Receipt | DiscreetError]]:
            return known[one.algorithm].hear_many(runtime, one, words)

        gateway = vendors or NoVendors()
        sealer = Sealer(keys)
        relay = Relay(
            store=store,
            sealer=sealer,
            vendors=gateway,
            observer=observer,
            clock=clock,
            needed=lambda: any(
                one.vendors for one in registry.held() if isinstance(one, PartitionRecommender)
            ),
            seconds=survey_seconds,
        )
        runtime = cls(
            store=store,
            noise=noise,
            observer=observer,
            principals=Principals(pepper),
            sealer=sealer,
            registry=registry,
            keys=KeyRing(store=store, registry=registry, given=api_keys),
            surveyor=surveyor,
            vendors=gateway,
            peers=peers or NoPeers(),
            relay=relay,
            clock=clock,
            families=known,
            asked=Turns(answer_many) if serving else None,
            told=Turns(hear_many) if serving else None,
        )
        await registry.start()
        if serving:
            surveyor.start()
            relay.start()
            for family in known.values():
                family.start(runtime)
        return runtime

    async def close(self) -> None:
        """Stop the background work and let go of the store."""
        for family in self.families.values():
            await family.stop()
        await self.relay.stop()
        await self.surveyor.stop()
        await self.registry.stop()
        await self.store.close()
