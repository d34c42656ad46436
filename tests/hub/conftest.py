"""A hub on a fresh database, with a small catalogue of invented films."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.hub import views
from discreet.hub.catalogue import PublicCatalogue, parse
from discreet.hub.choices import Choices
from discreet.hub.database import Database
from discreet.hub.hub import Hub
from discreet.hub.server import RecommendationServer
from tests.hub.recommending import KEY, NAME, Recommending, recommending

NOW = "2026-01-02T03:04:05+00:00"


def document() -> dict[str, Any]:
    """48 films: three categories, each item in one or two of them, and a category without any."""
    kinds = (["Drama"], ["Comedy"], ["Crime"], ["Drama", "Comedy"], ["Comedy", "Crime"], ["Drama"])
    return {
        "categories": ["Drama", "Comedy", "Crime", "Silent"],
        "items": [
            {"id": f"f{n}", "title": f"Film Number {n} ({1970 + n})", "categories": kinds[n % 6]}
            for n in range(48)
        ],
    }


def quoted(hub: Hub) -> int:
    """Return the price that the page would show, in nano-epsilon."""
    return int(views.state(hub)["quote"]["nano_epsilon"])


@pytest.fixture
def public() -> PublicCatalogue:
    """The catalogue, checked."""
    return parse(document())


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """A fresh database."""
    return Database(tmp_path, "films")


@pytest.fixture
def served() -> Iterator[Recommending]:
    """A server that records everything."""
    with recommending(document()) as running:
        yield running


@pytest.fixture
def hub(database: Database, served: Recommending) -> Hub:
    """A hub that has the server's catalogue, with the control at "noisy"."""
    upstream = RecommendationServer(url=served.url, recommender=NAME, key=KEY)
    made = Hub(database, upstream, now=lambda: NOW)
    made.fetch_catalogue()
    made.choose(Choices())
    served.asked.clear()
    return made
