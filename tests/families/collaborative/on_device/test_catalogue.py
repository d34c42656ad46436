"""Groups, agreements, and which rows decide."""

import itertools

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.catalogue import (
    EVERYTHING,
    NOTHING,
    PERTURBED,
    Catalogue,
    Concerns,
    Integers,
    Level,
    maximal_rows,
    scope_of,
)
from tests.families.collaborative.on_device.profiles import FIVE, five, made


def test_items_with_the_same_categories_are_one_group() -> None:
    catalogue = Catalogue.of({"a": ("x", "y"), "b": ("y", "x"), "c": ("x",)})
    assert catalogue.categories == ("x", "y")
    assert sorted(map(sorted, catalogue.members)) == [["a", "b"], ["c"]]
    assert catalogue.sizes.sum() == 3
    for group, members in enumerate(catalogue.members):
        for item in members:
            assert catalogue.group_of[item] == group


def test_a_profile_counts_every_item_once_in_each_of_its_categories() -> None:
    assert five().profile(["item 1", "item 1", "item 5"]) == {
        "1": 1,
        "2": 2,
        "3": 1,
        "4": 1,
        "5": 0,
    }


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ({}, "at least one item"),
        ({"a": ()}, "has no category"),
        ({"a": "drama"}, "must be a collection"),
    ],
)
def test_a_catalogue_that_makes_no_sense_is_refused(items: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        Catalogue.of(items)


def test_unknown_items_and_categories_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="not in the catalogue"):
        five().profile(["item 9"])
    with pytest.raises(InvalidArgument, match="no category is called '9'"):
        scope_of(five(), Concerns.choose({"9": Level.ALL}))


def test_concerns_are_values() -> None:
    one = Concerns.choose({"2": Level.ALL, "1": Level.NO, "3": Level.PERTURBED})
    other = Concerns.choose({"1": Level.NO, "2": Level.ALL})
    assert one == other
    assert hash(one) == hash(other)
    assert Concerns.choose({"1": Level.PERTURBED}) == PERTURBED


def test_concerns_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="below overall"):
        Concerns(Level.ALL, (("1", Level.NO),))
    with pytest.raises(InvalidArgument, match="twice"):
        Concerns(Level.PERTURBED, (("1", Level.NO), ("1", Level.ALL)))
    with pytest.raises(InvalidArgument, match="sorted"):
        Concerns(Level.PERTURBED, (("2", Level.NO), ("1", Level.ALL)))


def test_the_more_private_category_decides() -> None:
    catalogue = five()
    levels = {"1": Level.ALL, "2": Level.NO, "3": Level.PERTURBED, "4": Level.ALL, "5": Level.ALL}
    scope = scope_of(catalogue, Concerns.choose(levels))

    def items(groups: Integers) -> set[str]:
        return {item for group in groups for item in catalogue.members[group]}

    assert items(scope.open) == {"item 4"}
    assert items(scope.protected) == {"item 2", "item 3"}
    assert [catalogue.categories[at] for at in scope.counted] == ["3"]


def test_every_agreement_sorts_every_item_into_exactly_one_class() -> None:
    catalogue = five()
    for chosen in itertools.product(Level, repeat=5):
        levels = dict(zip(catalogue.categories, chosen, strict=True))
        scope = scope_of(catalogue, Concerns.choose(levels))
        open_groups, protected = set(scope.open.tolist()), set(scope.protected.tolist())
        for item, names in FIVE.items():
            group = catalogue.group_of[item]
            has = {levels[name] for name in names}
            assert (group in open_groups) == (has == {Level.ALL})
            assert (group in protected) == (Level.NO not in has and Level.PERTURBED in has)


def test_the_ends_of_the_overall_control() -> None:
    nothing, everything = scope_of(five(), NOTHING), scope_of(five(), EVERYTHING)
    assert not len(nothing.open)
    assert not len(nothing.protected)
    assert not len(nothing.counted)
    assert len(everything.open) == 5
    assert not len(everything.counted)


def test_a_perturbed_category_whose_items_are_all_hidden_is_not_counted() -> None:
    catalogue = Catalogue.of({"a": ("x", "y"), "b": ("y",), "c": ("z",)})
    scope = scope_of(catalogue, Concerns.choose({"y": Level.NO}))
    assert [catalogue.categories[at] for at in scope.counted] == ["z"]


def test_maximal_rows_are_those_that_no_other_contains() -> None:
    patterns = made(items=200, categories=7, seed=1).incidence
    rows = maximal_rows(patterns)
    sets = {frozenset(np.flatnonzero(row)) for row in patterns}
    expected = {one for one in sets if not any(one < other for other in sets)}
    assert {frozenset(np.flatnonzero(row)) for row in rows} == expected
    assert len(rows) == len(expected)
