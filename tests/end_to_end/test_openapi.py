"""The service keeps the promises of its own OpenAPI document, whatever it is sent."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from requests.adapters import HTTPAdapter
from schemathesis.checks import not_a_server_error
from schemathesis.pytest.lazy import get_all_tests
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from discreet.api.items import LINES
from discreet.app import create_app
from discreet.settings import Settings
from tests.end_to_end.servers import CALL_SECONDS, Server

EXAMPLES = 3
"""For each operation, beside the cases that follow from its schema."""
SEED = 7
"""Whatever is drawn is the same in every run."""
LEAST_OPERATIONS = 50
CALLERS = 50
"""Wrong enrolment codes from one address are answered ever later, so there are many."""


@schemathesis.serializer(LINES)
def as_lines(context: Any, value: Any) -> bytes:
    """Send text as it is, and what is no text as a line of JSON."""
    return (value if isinstance(value, str) else json.dumps(value)).encode(errors="replace")


@pytest.fixture(scope="module")
def schema() -> BaseSchema:
    found = schemathesis.openapi.from_dict(create_app(Settings()).openapi())
    found.config.seed = SEED
    return found


def test_the_server_shows_the_document_that_is_tested(schema: BaseSchema, server: Server) -> None:
    assert server.client.get("/openapi.json").json() == schema.raw_schema


class Caller(HTTPAdapter):
    """Calls from an address of its own."""

    def __init__(self, number: int) -> None:
        # Whole 127.0.0.0/8 is this machine's on Linux, and a single address elsewhere.
        self._address = f"127.0.0.{number + 1 if sys.platform == 'linux' else 1}"
        super().__init__()

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options, source_address=(self._address, 0))


@pytest.fixture(scope="module")
def sessions() -> Iterator[Iterator[requests.Session]]:
    with ExitStack() as opened:
        found = [opened.enter_context(requests.Session()) for _ in range(CALLERS)]
        for number, session in enumerate(found):
            session.trust_env = False  # it would look for proxies before every call
            session.mount("http://", Caller(number))
        yield cycle(found)


def conforms(case: schemathesis.Case, server: Server, sessions: Iterator[requests.Session]) -> None:
    case.call_and_validate(
        base_url=server.url,
        session=next(sessions),
        headers={"Authorization": f"Bearer {server.key}"},
        timeout=CALL_SECONDS,
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ],
    )


def test_answers_conform(
    schema: BaseSchema,
    server: Server,
    sessions: Iterator[requests.Session],
    subtests: pytest.Subtests,
) -> None:
    """Every operation, one after another.

    They are not parametrised: thousands of cases would be made by every process that collects
    tests, and sent by one of them.
    """
    chosen = hypothesis_settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    operations = 0
    for built in get_all_tests(
        schema=schema, test_func=conforms, settings=chosen, given_kwargs=None
    ):
        operation, check = built.ok()
        operations += 1
        with subtests.test(operation.label):
            check(server=server, sessions=sessions)
    assert operations >= LEAST_OPERATIONS
