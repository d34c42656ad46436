"""Catalogues are checked from end to end before they replace anything."""

import json
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import InvalidArgument
from discreet.hub.catalogue import OTHER, from_file, parse
from discreet.hub.errors import HubRefusal
from tests.hub.conftest import document


def test_what_the_server_gives() -> None:
    read = parse(document())
    assert read.sizes == {"Drama": 24, "Comedy": 24, "Crime": 16, "Silent": 0}
    assert read.profile(["f0", "f3", "nobody"]) == {
        "Drama": 2,
        "Comedy": 1,
        "Crime": 0,
        "Silent": 0,
    }


def test_any_difference_is_another_digest() -> None:
    changed = document()
    changed["items"][0]["categories"] = ["Crime"]
    assert parse(changed).digest != parse(document()).digest


def test_an_item_without_category_can_still_be_protected() -> None:
    read = parse({"items": [{"id": "a"}, {"id": "b", "categories": ["Drama", "Drama"]}]})
    assert read.by_id["a"].categories == (OTHER,)
    assert read.by_id["a"].title == "a"
    assert read.by_id["b"].categories == ("Drama",)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "cannot be used"),
        ({}, "“items”"),
        ({"items": []}, "no items"),
        ({"items": [{"title": "no id"}]}, "items.0.id"),
        ({"items": [{"id": "a"}, {"id": "a"}]}, "same id"),
        ({"items": [{"id": "a", "categories": "Drama"}]}, "items.0.categories"),
        ({"items": [{"id": "a"}], "categories": [str(n) for n in range(500)]}, "more than 500"),
    ],
)
def test_nonsense_is_refused(given: Any, words: str) -> None:
    with pytest.raises(HubRefusal, match=words):
        parse(given)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "catalogue"
    path.write_text(json.dumps(document()))
    assert from_file(path).digest == parse(document()).digest
    path.write_text("id,title,categories\na,Night Ferry,Drama| Crime\nb,,\n")
    read = from_file(path)
    assert read.by_id["a"].categories == ("Drama", "Crime")
    assert (read.by_id["b"].title, read.by_id["b"].categories) == ("b", (OTHER,))
    path.write_text("name\nNight Ferry\n")
    with pytest.raises(InvalidArgument, match="needs the columns"):
        from_file(path)
    path.write_text("{broken")
    with pytest.raises(InvalidArgument, match="neither JSON nor CSV"):
        from_file(path)
    with pytest.raises(InvalidArgument, match="cannot read"):
        from_file(tmp_path / "nowhere")
