"""OpenTelemetry spans, if they are asked for: of requests, store calls, decisions and releases.

The extra `discreet[telemetry]` and the usual variable OTEL_EXPORTER_OTLP_ENDPOINT turn them on.
Without either nothing here is used: what is traced is wrapped when a worker begins, so the way of a
request has no question in it whether somebody listens.

A span says what the log says of a request (route, status, time), and which recommender decided, how
many questions together, or what the store was asked for. It has no client, context, item or reward.
How long a release takes depends on how much feedback has gathered, which is private: its span is a
moment.
"""

import importlib.util
import logging
import os
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, cast

from discreet import __version__
from discreet.families.contract import Recommender
from discreet.state.stores import Store
from discreet.store_metrics import OPERATIONS

log = logging.getLogger(__name__)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_OFF = "OTEL_SDK_DISABLED"
_PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")

Headers = Any


def wanted(environment: Mapping[str, str]) -> bool:
    """Tell whether spans are to be sent; say so in the log if they cannot be."""
    if environment.get(_OFF, "").lower() == "true" or not any(map(environment.get, _ENDPOINTS)):
        return False
    if all(map(_installed, _PACKAGES)):
        return True
    log.warning("no spans are sent: install discreet[telemetry], or set %s=true", _OFF)
    return False


def _installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


class Telemetry:
    """Makes spans and sends them, in the background."""

    def __init__(self) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        named = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "discreet")}
        resource = Resource.create({**named, "service.version": __version__})
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("discreet", __version__)
        self._extract = TraceContextTextMapPropagator().extract
        self._server = SpanKind.SERVER

    def close(self) -> None:
        """Send what there is."""
        self._provider.shutdown()

    def trace_requests(self, app: Any) -> None:
        """Give every request to a gateway a span, under the caller's trace if it has one."""
        answer, pass_on = app.answer, app.pass_on

        async def traced_answer(
            route: Any, live: Any, headers: Headers, *rest: Any, **named: Any
        ) -> Any:
            with self._request("POST", route.path, headers) as span:
                found = await answer(route, live, headers, *rest, **named)
                span.set_attribute("http.response.status_code", found[0])
                return found

        async def traced_pass_on(scope: Any, *rest: Any) -> int:
            with self._request(scope["method"], "", scope["headers"]) as span:
                status: int = await pass_on(scope, *rest)
                template = str(getattr(scope.get("route"), "path_format", "(none)"))
                span.update_name(f"{scope['method']} {template}")
                span.set_attribute("http.route", template)
                span.set_attribute("http.response.status_code", status)
                return status

        app.answer, app.pass_on = traced_answer, traced_pass_on
        app.join = lambda *_: False  # a span is around a coroutine

    def _request(self, method: str, route: str, headers: Headers) -> Any:
        parent = {
            name.decode(): value.decode("latin-1")
            for name, value in headers
            if name in (b"traceparent", b"tracestate")
        }
        said = {"http.request.method": method, **({"http.route": route} if route else {})}
        return self._tracer.start_as_current_span(
            f"{method} {route}".rstrip(),
            context=self._extract(parent),
            kind=self._server,
            attributes=said,
            # Others' messages quote the value that they choked on.
            record_exception=False,
            set_status_on_exception=False,
        )

    def trace_store(self, store: Store) -> Store:
        """Return the same store, with a span for every operation."""
        return cast(Store, _TracedStore(store, self._tracer))

    def trace_recommender(self, recommender: Recommender[Any]) -> None:
        """Give the recommender's decisions and releases spans."""
        decide, release = recommender.decide, recommender.release
        named = {
            "discreet.recommender": recommender.name,
            "discreet.algorithm": recommender.algorithm,
        }

        def traced_decide(model: Any, questions: Any, own: Any, noise: Any) -> Any:
            with self._tracer.start_as_current_span("decide", record_exception=False) as span:
                span.set_attributes({**named, "discreet.questions": len(questions)})
                return decide(model, questions, own, noise)

        def traced_release(model: Any, gathered: Any, noise: Any) -> Any:
            now = time.time_ns()
            self._tracer.start_span("release", attributes=named, start_time=now).end(now)
            return release(model, gathered, noise)

        recommender.decide = traced_decide  # type: ignore[method-assign]
        recommender.release = traced_release  # type: ignore[method-assign]


class _TracedStore:
    def __init__(self, store: Store, tracer: Any) -> None:
        self.open = store.open
        self.close = store.close
        self.superseded = store.superseded
        self.clock = store.clock
        for name in OPERATIONS:
            setattr(self, name, _traced(tracer, name, getattr(store, name)))


class _TracedAnswer:
    """An operation's answer, whose span ends when it is there."""

    __slots__ = ("_answer", "_span")

    def __init__(self, answer: Awaitable[Any], span: Any) -> None:
        self._answer = answer
        self._span = span

    def __await__(self) -> Generator[Any, None, Any]:
        try:
            return (yield from self._answer.__await__())
        finally:
            self._span.end()


def _traced(
    tracer: Any, operation: str, call: Callable[..., Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    def issue(*arguments: Any, **named: Any) -> Awaitable[Any]:
        return _TracedAnswer(call(*arguments, **named), tracer.start_span(f"store {operation}"))

    return issue
