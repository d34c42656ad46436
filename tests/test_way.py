"""CONTRIBUTING.md says which files a request passes, and they are few."""

import re
from typing import Any

import pytest

from discreet.api.gateway import HttpGateway
from discreet.api.heads import KnownHead
from discreet.decisions.grants import KeyGrant
from tests import way


def test_the_page_says_the_way_as_it_is_traced() -> None:
    assert way.on_page() == way.rendered()


def test_a_request_passes_few_files_before_the_store() -> None:
    counts = [int(count) for count in re.findall(r"passes (\d+) files", way.on_page())]
    assert len(counts) == 2
    assert max(counts) <= 24


def test_a_lease_that_lapses_on_the_way_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, lapsed = HttpGateway.known_grant, False

    def known_grant(app: HttpGateway, head: KnownHead, live: Any) -> KeyGrant | None:
        nonlocal lapsed
        if not lapsed:
            lapsed, live["services"].registry._trusted_until = True, 0.0
        return honest(app, head, live)

    monkeypatch.setattr(HttpGateway, "known_grant", known_grant)
    assert set(way.ways()) == {"/recommend", "/feedback"}
    assert lapsed
