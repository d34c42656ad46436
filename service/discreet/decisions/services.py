"""What a worker opens: the store, and the parts that decide, joined once.

This is the one place that knows how the parts fit. Each of them is given what it needs.
"""

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.decisions.background import Background
from discreet.decisions.clients import Clients
from discreet.decisions.decision_log import DecisionLog
from discreet.decisions.devices import Devices
from discreet.decisions.endings import end_all
from discreet.decisions.experiments import Experiments
from discreet.decisions.explanations import Explanations
from discreet.decisions.feedback import FeedbackRequests
from discreet.decisions.forwards import ForwardRequests
from discreet.decisions.keys import KeyRing
from discreet.decisions.lane import LongWorkLane
from discreet.decisions.log_sinks import LogFiles, LogStream, StandardOutput
from discreet.decisions.rates import KeyRates
from discreet.decisions.recommend import RecommendRequests
from discreet.decisions.registry import RecommenderRegistry
from discreet.decisions.release import Releaser
from discreet.decisions.retries import StoredAnswers
from discreet.decisions.rewards import Rewards
from discreet.decisions.statements import Statements
from discreet.decisions.tokens import KEY_BYTES, Sealer
from discreet.families.contract import Recommender, Resources
from discreet.families.observer import NullObserver, Observer
from discreet.families.peering import NoPeers, PeerGateway
from discreet.privacy.noise import NoiseSource, require_production
from discreet.state.principals import Principals
from discreet.state.stores import Store

LEASE_SECONDS = 0.25
DECISIONS_FOLDER = Path(".discreet", "decisions")


@dataclass(frozen=True, slots=True)
class DecisionServices:
    """Everything that answers requests in one worker."""

    store: Store
    registry: RecommenderRegistry
    keys: KeyRing
    devices: Devices
    experiments: Experiments
    recommend: RecommendRequests
    feedback: FeedbackRequests
    rewards: Rewards
    forwards: ForwardRequests
    clients: Clients
    rates: KeyRates
    statements: Statements
    explanations: Explanations
    releaser: Releaser
    background: Background
    decision_log: DecisionLog

    async def close(self) -> None:
        """Stop the background work and let go of the store."""
        await end_all(
            self.decision_log.stop, self.background.stop, self.registry.stop, self.store.close
        )


async def open_services(
    *,
    store: Store,
    noise: NoiseSource,
    observer: Observer | None = None,
    token_keys: Sequence[bytes] = (),
    api_keys: Mapping[str, frozenset[str]] | None = None,
    peers: PeerGateway | None = None,
    clock: Callable[[], float] | None = None,
    lease_seconds: float = LEASE_SECONDS,
    rates: KeyRates | None = None,
    decisions_folder: Path | None = None,
    trace: Callable[[Recommender[Any]], None] | None = None,
) -> DecisionServices:
    """Open what serves people, with its background work: reproducible noise is refused.

    The clock is the store's, unless another is given. What expires on one worker's clock and was
    written by another's could be counted twice. `trace` is called with every recommender before it
    answers.
    """
    require_production(noise)
    services = await _joined(
        store=store,
        noise=noise,
        observer=observer or NullObserver(),
        token_keys=token_keys,
        api_keys=api_keys or {},
        peers=peers or NoPeers(),
        clock=clock or store.clock,
        lease_seconds=lease_seconds,
        rates=rates,
        decisions_folder=decisions_folder,
        trace=trace,
    )
    services.background.start()
    services.decision_log.start()
    return services


async def open_simulation(
    *,
    store: Store,
    noise: NoiseSource,
    peers: PeerGateway | None = None,
    clock: Callable[[], float] = time.time,
) -> DecisionServices:
    """Open the same over a store that nobody else uses; the noise may be seeded.

    Nothing runs in the background: the simulation calls `releaser.release` when it is time, so that
    the same seed gives the same run.
    """
    return await _joined(
        store=store,
        noise=noise,
        observer=NullObserver(),
        token_keys=(),
        api_keys={},
        peers=peers or NoPeers(),
        clock=clock,
        lease_seconds=math.inf,
    )


async def _joined(
    *,
    store: Store,
    noise: NoiseSource,
    observer: Observer,
    token_keys: Sequence[bytes],
    api_keys: Mapping[str, frozenset[str]],
    peers: PeerGateway,
    clock: Callable[[], float],
    lease_seconds: float,
    rates: KeyRates | None = None,
    decisions_folder: Path | None = None,
    trace: Callable[[Recommender[Any]], None] | None = None,
) -> DecisionServices:
    await store.open()
    pepper = await store.secret(name="principals", proposal=os.urandom(KEY_BYTES))
    # Without keys from outside, all workers share one that lives in the store.
    keys = list(token_keys) or [await store.secret(name="tokens", proposal=os.urandom(KEY_BYTES))]
    sealer, principals = Sealer(keys), Principals(pepper)
    releaser = Releaser(store=store, noise=noise, observer=observer, clock=clock)

    def loaded() -> list[Recommender[Any]]:
        return registry.loaded()

    async def prepare(recommender: Recommender[Any]) -> None:
        if trace is not None:
            trace(recommender)
        await releaser.load(recommender)

    async def retire(recommender: Recommender[Any]) -> None:
        await background.retire(recommender)

    registry = RecommenderRegistry(
        store=store,
        resources=Resources(
            store=store,
            noise=noise,
            observer=observer,
            principals=principals,
            peers=peers,
            clock=clock,
        ),
        lease_seconds=lease_seconds,
        prepare=prepare,
        retire=retire,
        erase=releaser.erase,
    )
    answers = StoredAnswers(store=store, principals=principals, sealer=sealer)
    lane = LongWorkLane()
    decision_log = DecisionLog(
        sinks={
            "file": LogFiles(decisions_folder or DECISIONS_FOLDER),
            "stdout": StandardOutput(),
            "stream": LogStream(store),
        },
        observer=observer,
        clock=clock,
        recommenders=loaded,
    )
    experiments = Experiments(store=store, registry=registry, principals=principals)
    feedback = FeedbackRequests(
        registry=registry,
        sealer=sealer,
        answers=answers,
        observer=observer,
        clock=clock,
        lane=lane,
        decision_log=decision_log,
        experiments=experiments,
    )
    rewards = Rewards(store=store, feedback=feedback, sealer=sealer, observer=observer, clock=clock)

    background = Background(
        releaser=releaser, rewards=rewards, recommenders=loaded, lingering=registry.lingering
    )
    devices = Devices(
        store=store, registry=registry, principals=principals, sealer=sealer, clock=clock
    )
    services = DecisionServices(
        store=store,
        registry=registry,
        keys=KeyRing(store=store, registry=registry, devices=devices, given=api_keys),
        devices=devices,
        recommend=RecommendRequests(
            registry=registry,
            sealer=sealer,
            answers=answers,
            observer=observer,
            clock=clock,
            lane=lane,
            decision_log=decision_log,
            experiments=experiments,
        ),
        experiments=experiments,
        feedback=feedback,
        rewards=rewards,
        forwards=ForwardRequests(registry=registry, sealer=sealer, feedback=feedback, clock=clock),
        clients=Clients(
            store=store,
            registry=registry,
            devices=devices,
            principals=principals,
            clock=clock,
            decision_log=decision_log,
        ),
        rates=rates or KeyRates(),
        statements=Statements(store=store, registry=registry),
        explanations=Explanations(store=store, registry=registry),
        releaser=releaser,
        background=background,
        decision_log=decision_log,
    )
    await registry.start()
    return services
