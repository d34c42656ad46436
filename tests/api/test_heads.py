"""Which heads a worker keeps, and how many."""

import pytest

from discreet.api.heads import LONGEST_HEAD, MOST_HEADS, KnownHead, KnownHeads
from discreet.api.routing import DirectRoute
from discreet.app import create_app
from discreet.decisions.devices import DEVICE_PREFIX
from discreet.settings import Settings
from tests.api.conftest import KEY

AUTHORISED = (b"authorization", f"Bearer {KEY}".encode())


@pytest.fixture(scope="module")
def route() -> DirectRoute:
    found = create_app(Settings(api_key=KEY)).direct_route("POST", "/recommend")
    assert found is not None
    return found


def test_a_head_is_found_by_its_very_bytes(route: DirectRoute) -> None:
    heads, head = KnownHeads(), KnownHead(route, [AUTHORISED], 7)
    heads.keep(b"POST one", head)
    assert heads.find(b"POST one") is head
    assert heads.find(b"POST One") is None


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"Basic eDp5")],
        [(b"authorization", f"Bearer {DEVICE_PREFIX}x".encode())],
        [AUTHORISED, (b"x-request-id", b"1")],
        [AUTHORISED, (b"traceparent", b"1")],
    ],
)
def test_what_is_looked_at_every_time_is_not_kept(
    route: DirectRoute, headers: list[tuple[bytes, bytes]]
) -> None:
    heads = KnownHeads()
    heads.keep(b"POST", KnownHead(route, headers, 7))
    assert len(heads) == 0


def test_heads_are_bounded_in_length_and_number(route: DirectRoute) -> None:
    heads, head = KnownHeads(), KnownHead(route, [AUTHORISED], 7)
    heads.keep(b"x" * (LONGEST_HEAD + 1), head)
    assert len(heads) == 0
    for number in range(MOST_HEADS + 1):
        heads.keep(b"%d" % number, head)
    assert len(heads) == 1
