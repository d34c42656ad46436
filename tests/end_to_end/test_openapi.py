"""The service keeps the promises of its own OpenAPI document, whatever it is sent."""

import json
from typing import Any

import schemathesis
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from discreet.api.items import LINES
from discreet.app import create_app
from discreet.settings import Settings
from tests.end_to_end.servers import CALL_SECONDS, Server

EXAMPLES = 8
"""For each operation. The examples are the same in every run."""


@schemathesis.serializer(LINES)
def as_lines(context: Any, value: Any) -> bytes:
    """Send text as it is, and what is no text as a line of JSON."""
    return (value if isinstance(value, str) else json.dumps(value)).encode(errors="replace")


schema = schemathesis.openapi.from_dict(create_app(Settings()).openapi())


def test_the_server_shows_the_document_that_is_tested(server: Server) -> None:
    assert server.client.get("/openapi.json").json() == schema.raw_schema


@schema.parametrize()
@hypothesis_settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_answers_conform(case: schemathesis.Case, server: Server) -> None:
    case.call_and_validate(
        base_url=server.url,
        headers={"Authorization": f"Bearer {server.key}"},
        timeout=CALL_SECONDS,
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ],
    )
