"""The controls: what they mean for a catalogue, what they may be, and that they are kept."""

import pytest
from pydantic import ValidationError

from discreet.families.collaborative.on_device.catalogue import Concerns, Level
from discreet.hub import choices
from discreet.hub.catalogue import PublicCatalogue
from discreet.hub.choices import Choices
from discreet.hub.database import Database

MIXED = {"Drama": Level.ALL, "Crime": Level.NO, "Silent": Level.NO, "Gone": Level.ALL}


def test_levels_count_only_by_category_and_where_there_are_items(public: PublicCatalogue) -> None:
    chosen = Choices(by_category=True, levels={**MIXED, "Comedy": Level.PERTURBED})
    assert chosen.concerns(public) == Concerns.choose({"Drama": Level.ALL, "Crime": Level.NO})
    # One that was not there when its owner chose is "no".
    assert Choices(by_category=True, levels=MIXED).concerns(public) == Concerns.choose(
        {"Drama": Level.ALL, "Crime": Level.NO, "Comedy": Level.NO}
    )
    assert Choices(levels=MIXED).concerns(public) == Concerns()
    for overall in (Level.NO, Level.ALL):
        everywhere = Choices(overall=overall, by_category=True, levels=MIXED)
        assert everywhere.concerns(public) == Concerns(overall)


def test_they_are_kept(database: Database) -> None:
    chosen = Choices(by_category=True, levels={"Drama": Level.ALL}, epsilon=0.5)
    with database.transaction() as work:
        assert choices.load(work) == Choices(overall=Level.NO), "at first nothing may leave"
        choices.keep(work, chosen)
    with database.transaction() as work:
        assert choices.load(work) == chosen


@pytest.mark.parametrize(
    "fields",
    [
        {"epsilon": 0.0},
        {"epsilon": 0.001},
        {"epsilon": 11.0},
        {"epsilon": float("nan")},
        {"epsilon": "1"},
        {"overall": "some"},
        {"by_category": 1},
        {"levels": {"Drama": "some"}},
        {"levels": {"": "no"}},
        {"strength": 1.0},
    ],
)
def test_other_positions_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Choices.model_validate(fields)


def test_what_its_owner_could_see_gets_a_level() -> None:
    first = Choices(by_category=True, levels={"Drama": Level.ALL})
    kept = first.completed(Choices(), ["Drama", "Crime"])
    assert kept.levels == {"Drama": Level.ALL, "Crime": Level.PERTURBED}
    # "War" came after the choice: it stays "no" until it is chosen for.
    later = Choices(by_category=True, levels={"Drama": Level.NO})
    assert later.completed(kept, ["Drama", "Crime", "War"]).levels == {
        "Drama": Level.NO,
        "Crime": Level.PERTURBED,
        "War": Level.NO,
    }
    assert Choices().completed(kept, ["War"]) == Choices()
