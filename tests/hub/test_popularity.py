"""What is popular: read from what anybody is shown, and used in lists."""

from typing import Any

import pytest

from discreet.families.collaborative.on_device.expectation import Expectation
from discreet.hub import releases
from discreet.hub.catalogue import PublicCatalogue, parse
from discreet.hub.hub import Hub
from discreet.hub.popularity import expectation, informative_part, ranks
from discreet.hub.server import RecommendedRow
from tests.hub.conftest import document, quoted
from tests.hub.recommending import Recommending

POPULAR = [f"f{n}" for n in (47, 3, 21, 9, 40, 2, 30, 5, 44, 31)]


def in_order(*numbers: int) -> list[str]:
    return [f"f{n}" for n in numbers]


def test_the_catalogues_own_order_says_nothing(public: PublicCatalogue) -> None:
    everything = in_order(*range(48))
    assert informative_part(everything, public) == []
    assert informative_part([*POPULAR, *in_order(*range(12, 30))], public) == POPULAR
    # A short rising end may well be an accident.
    short = in_order(9, 3, 5, 8)
    assert informative_part(short, public) == short
    assert informative_part(["unknown", "f9", "f3"], public) == ["f9", "f3"]
    assert informative_part([], public) == []


def test_items_are_placed_by_their_categories(public: PublicCatalogue) -> None:
    rows = [
        RecommendedRow(None, ("f3", "f0", "f1", "f2"), False),
        # f3 and f0 are dramas: two of the first four, so the third drama is about the sixth.
        RecommendedRow("Drama", ("f3", "f0", "f5"), False),
        # Comedies: f3 and f1; f4 is in third place here, and in second among crime's.
        RecommendedRow("Comedy", ("f3", "f1", "f4"), False),
        RecommendedRow("Crime", ("f2", "f4"), False),
    ]
    assert ranks(rows, public) == {
        "f3": 0.0, "f0": 1.0, "f1": 2.0, "f2": 3.0, "f5": 6.0, "f4": (6.0 + 8.0) / 2,
    }  # fmt: skip
    assert ranks([RecommendedRow(None, ("f3", "f0"), True)], public) == {}, "not everybody's"
    assert ranks(rows[1:], public) == {}


def test_the_less_popular_weighs_less(public: PublicCatalogue) -> None:
    catalogue = public.compiled
    assert expectation(catalogue, {}, typical=10) is None
    made = expectation(catalogue, {"f3": 0.0, "f9": 20.0}, typical=10)
    assert made is not None
    weight = {
        item: float(weight)
        for items, weights in zip(catalogue.members, made.weights, strict=True)
        for item, weight in zip(items, weights, strict=True)
    }
    assert weight["f3"] > weight["f9"] > weight["f1"] == weight["f2"] > 0


def test_a_list_reads_its_noise_by_what_is_popular(
    hub: Hub, served: Recommending, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Expectation | None] = []
    honest = releases.perturb

    def watching(**arguments: Any) -> Any:
        given.append(arguments["expectation"])
        return honest(**arguments)

    monkeypatch.setattr(releases, "perturb", watching)
    hub.create(after=0, agreed=quoted(hub), early=False)
    served.popular = POPULAR
    hub.fetch_catalogue()
    price = quoted(hub)
    made = hub.create(after=1, agreed=price, early=True)
    assert given[0] is None
    assert given[1] is not None
    assert made.nano_epsilon == price, "it costs no more"
    # Another catalogue does not inherit it.
    smaller = document()
    smaller["items"].pop()
    hub.use_catalogue(parse(smaller), source="file")
    hub.create(after=2, agreed=quoted(hub), early=True)
    assert given[2] is None


def test_it_is_asked_for_nobody(hub: Hub, served: Recommending) -> None:
    hub.see("f1")
    hub.fetch_catalogue()
    _, (method, path, _, body) = served.asked
    assert (method, path, body) == ("GET", "/recommenders/films/popular?limit=100", None)
