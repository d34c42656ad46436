"""Spans: sent to a collector over HTTP, under the caller's trace, without anything private."""

import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from discreet import telemetry
from tests.end_to_end.servers import document, serving
from tests.waiting import join, wait_for

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SAID = {
    "http.request.method",
    "http.route",
    "http.response.status_code",
    "discreet.recommender",
    "discreet.algorithm",
    "discreet.questions",
}


class Collector(ThreadingHTTPServer):
    """Keeps what is sent to it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    def spans(self) -> list[tuple[str, str, dict[str, str], int]]:
        """Return name, trace, attributes and nanoseconds of every span."""
        found = []
        for body in list(self.bodies):
            sent = ExportTraceServiceRequest.FromString(body)
            for resource in sent.resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        said = {each.key: str(each.value) for each in span.attributes}
                        taken = span.end_time_unix_nano - span.start_time_unix_nano
                        found.append((span.name, span.trace_id.hex(), said, taken))
        return found


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        join(thread)


def test_spans_reach_a_collector_and_hold_nothing_private(
    collector: Collector, tmp_path: Path
) -> None:
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
    }
    with serving(tmp_path / "data", **variables) as server:
        fast = {"seconds": 0.05, "growth": 0}
        server.client.put("/recommenders/films", json=document(releases=fast)).raise_for_status()
        headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        ask = {"recommender": "films", "client": "canary", "context": [0.123456789, 0.5]}
        server.client.post("/recommend", json=ask, headers=headers).raise_for_status()
        server.client.get("/recommenders/films", headers=headers).raise_for_status()
        names = {
            "POST /recommend",
            "GET /recommenders/{name}",
            "PUT /recommenders/{name}",
            "store spend",
            "decide",
            "release",
        }
        wait_for("a span of every kind", lambda: names <= {name for name, *_ in collector.spans()})
    spans = collector.spans()
    ours = {name for name, trace, *_ in spans if trace == TRACE}
    assert {"POST /recommend", "GET /recommenders/{name}"} <= ours
    assert {each for _, _, said, _ in spans for each in said} == SAID
    assert {taken for name, _, _, taken in spans if name == "release"} == {0}
    everything = b"".join(collector.bodies)
    for private in (b"canary", b"0.123456789", server.key.encode()):
        assert private not in everything


def test_it_is_off_unless_somebody_listens(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
    assert telemetry.wanted(endpoint)
    assert not telemetry.wanted({})
    assert not telemetry.wanted({**endpoint, "OTEL_SDK_DISABLED": "true"})
    assert caplog.text == ""
    monkeypatch.setattr(telemetry, "_PACKAGES", ("opentelemetry_that_is_not_there.sdk",))
    assert not telemetry.wanted(endpoint)
    assert "install discreet[telemetry]" in caplog.text
    assert "opentelemetry_that_is_not_there" not in sys.modules
