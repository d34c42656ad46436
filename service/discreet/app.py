"""The application: which parts there are, what they share, and how they begin and end."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from discreet import __version__, logs, telemetry
from discreet.api import (
    activation,
    clients,
    devices,
    direct,
    experiments,
    explanations,
    items,
    operations,
    page,
    peers,
    personalizer,
    recommenders,
    reference,
    statements,
)
from discreet.api.addresses import WrongKeys
from discreet.api.admission import Admission
from discreet.api.bodies import BodyRoom
from discreet.api.examples import add_examples
from discreet.api.family_routes import FAMILY_ROUTERS
from discreet.api.gateway import HttpGateway
from discreet.api.routing import BEARER, Live
from discreet.api.schemas import ProblemDocument
from discreet.decisions.endings import cancelled, end_all
from discreet.decisions.rates import KeyRates
from discreet.decisions.services import DecisionServices, open_services
from discreet.errors import DiscreetError, StoreFenced, StoreUnavailable, StoreUnsuitable
from discreet.families.peering import NoPeers
from discreet.metrics import Metrics
from discreet.privacy.noise import NoiseSource, SystemNoise
from discreet.settings import Settings
from discreet.state.embedded import EmbeddedStore
from discreet.state.marks import marks_file
from discreet.state.redis_store import open_store
from discreet.state.stores import Store
from discreet.store_metrics import measured

if TYPE_CHECKING:
    from discreet.peers.gateway import HttpPeerGateway

log = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
_BODIES_AT_ONCE = 32
"""Of the greatest size, that a worker holds while they arrive; or two imports of items."""

DESCRIPTION = """\
A recommendation service that learns online from everybody's clicks and can prove how little it
gives away about any one of them.

Send `Authorization: Bearer KEY`. Errors are RFC 9457 problem documents with a stable `type`.
"""

OpenStore = Callable[[Settings], Store]


def store_of(settings: Settings, *, carries: bool = True) -> Store:
    """Return the store that the settings name, not opened yet.

    A server carries a mark of it, and is bound to it; a command that looks at a store by URL is
    not, because it may look at another one next.
    """
    assert settings.store is not None, "the embedded store is started before anything is opened"
    return open_store(
        settings.store,
        namespace=settings.namespace,
        timeout=settings.store_timeout_seconds,
        init=settings.init,
        marks=marks_of(settings) if carries or _is_embedded(settings) else None,
        lost_writes=settings.store_lost_writes,
    )


def marks_of(settings: Settings) -> Path:
    """Return the file of the store's high-water mark, in the data directory."""
    return marks_file(settings.data_dir, settings.namespace, embedded=_is_embedded(settings))


def _is_embedded(settings: Settings) -> bool:
    return settings.store in (None, EmbeddedStore(settings.data_dir).url)


def create_app(
    settings: Settings,
    *,
    opening: OpenStore = store_of,
    noise: NoiseSource | None = None,
    begin_anew: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGTERM),
) -> HttpGateway:
    """Return the application of one worker; its lifespan opens and closes everything it uses.

    Noise that could be reproduced is refused there, before the first request. `begin_anew` is
    called when a store that was refused can be used again: the master replaces a worker that ends.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Live]:
        loop = asyncio.get_running_loop()
        logs.guard(loop)
        metrics = Metrics(version=__version__)
        metrics.attach(loop.call_later)
        gateway = _peer_gateway(settings, metrics)
        spans = telemetry.Telemetry() if telemetry.wanted(os.environ) else None
        if spans is not None:
            spans.trace_requests(app)

        def open_traced() -> Store:
            store = measured(opening(settings), metrics)
            return store if spans is None else spans.trace_store(store)

        services: DecisionServices | UnopenedServices
        try:
            services = await open_services(
                store=open_traced(),
                noise=noise or SystemNoise(),
                observer=metrics,
                token_keys=settings.token_keys,
                api_keys=settings.api_keys,
                peers=gateway or NoPeers(),
                decisions_folder=settings.data_dir / "decisions",
                rates=KeyRates(
                    operators=settings.key_requests_per_second,
                    devices=settings.device_requests_per_second,
                ),
                trace=None if spans is None else spans.trace_recommender,
            )
            checks = _keep_checking(services, metrics, begin_anew)
        except (StoreFenced, StoreUnsuitable) as error:
            # Its caller is told so, rather than left waiting for a worker that never comes.
            log.error("this worker answers nothing: %s", error)
            services = UnopenedServices(error)
            checks = _keep_trying(lambda: opening(settings), metrics, begin_anew)
        checking = asyncio.create_task(checks, name="store check")
        try:
            yield Live(
                services=cast(DecisionServices, services),
                metrics=metrics,
                admission=Admission(
                    most=settings.most_in_flight, target_seconds=settings.busy_seconds
                ),
                wrong_keys=WrongKeys(),
                most_body_bytes=settings.most_body_bytes,
                body_room=BodyRoom(_BODIES_AT_ONCE * settings.most_body_bytes),
            )
        finally:
            await end_all(
                partial(cancelled, checking),
                services.close,
                *([] if gateway is None else [gateway.close]),
                metrics.flush,
                *([] if spans is None else [partial(asyncio.to_thread, spans.close)]),
            )

    app = HttpGateway(
        title="Discreet",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
    )
    direct.declare(app)
    for router in (
        activation.router,
        experiments.router,
        recommenders.documents_router(),
        recommenders.router,
        items.router,
        explanations.router,
        clients.router,
        statements.router,
        devices.router,
        *FAMILY_ROUTERS,
        peers.router,
        personalizer.router,
        operations.router,
    ):
        app.include_router(router)
    page.mount(app)
    reference.mount(app)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    app.seal()
    return app


def _peer_gateway(settings: Settings, metrics: Metrics) -> "HttpPeerGateway | None":
    """Return the way to other instances, if there are keys for any.

    Imported only then: the HTTP client brings more with it than most of the service.
    """
    if not settings.peer_keys:
        return None
    from discreet.peers.gateway import HttpPeerGateway

    return HttpPeerGateway(
        keys=settings.peer_keys,
        addresses=settings.peer_addresses,
        changed=metrics.circuit,
        urgent_seconds=settings.vendor_timeout_seconds,
    )


class UnopenedServices:
    """Stands where services would be, had the store not been refused: every use is a 503."""

    def __init__(self, error: DiscreetError) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise StoreFenced(str(self._error))

    async def close(self) -> None:
        """Nothing was opened."""


async def _keep_trying(
    opening: Callable[[], Store], metrics: Metrics, begin_anew: Callable[[], None]
) -> None:
    """Look every now and then whether the store that was refused can be used by now."""
    while True:
        metrics.store_up(False)
        await asyncio.sleep(CHECK_SECONDS)
        try:
            store = opening()
            await store.open()
        except DiscreetError:
            continue
        await store.close()
        log.warning("the store can be used; this worker begins anew")
        begin_anew()
        return


async def _keep_checking(
    services: DecisionServices, metrics: Metrics, begin_anew: Callable[[], None]
) -> None:
    """Measure whether the store answers, and which recommenders there are."""
    cause = ""
    while True:
        loaded = services.registry.loaded()
        metrics.set_recommenders({one.name: one.algorithm for one in loaded})
        try:
            await services.store.ping()
            metrics.store_up(True)
            cause = ""
        except StoreUnavailable as error:
            metrics.store_up(False)
            if str(error) != cause:
                cause = str(error)
                log.error("the store cannot be used: %s", cause)
            if services.store.superseded():
                log.warning("the store can be used; this worker begins anew")
                begin_anew()
                return
        except Exception:
            metrics.store_up(False)
            log.exception("the store's answer to PING cannot be read")
        await asyncio.sleep(CHECK_SECONDS)


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with the problem schema and the key that routes refer to."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
        )
        components = document.setdefault("components", {})
        schema = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
        components["schemas"].update(schema.pop("$defs", {}))
        components["schemas"]["ProblemDocument"] = schema
        components["securitySchemes"] = {
            BEARER: {"type": "http", "scheme": "bearer"},
            personalizer.SUBSCRIPTION: {
                "type": "apiKey",
                "in": "header",
                "name": personalizer.KEY_HEADER,
            },
        }
        add_examples(document)
        app.openapi_schema = document
    return app.openapi_schema
