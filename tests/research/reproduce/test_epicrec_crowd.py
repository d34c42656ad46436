"""Crowds: drawn from a data set, a fifth held out, and judged in two readings."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.catalogue import Level, scope_of
from discreet.research.reproduce.epicrec_crowd import (
    FOLDS,
    HIDDEN,
    OPEN,
    PROTECTED,
    HubCrowd,
    crowd_of,
    load,
    random_concerns,
    raw_errors,
)


@pytest.fixture(scope="module")
def people() -> HubCrowd:
    return crowd_of("synthetic", None, 60, 1)


def test_a_data_set_needs_its_folder() -> None:
    with pytest.raises(InvalidArgument, match="folder"):
        load("movielens", None)


def test_a_fifth_is_held_out_of_each_history(people: HubCrowd) -> None:
    assert len(people.owners) == 60
    for at, owner in enumerate(people.owners):
        asked = people.asked.columns[people.asked.rows == at]
        known = people.known.columns[people.known.rows == at]
        assert sorted(known) == sorted(owner.history)
        assert not np.isin(asked, known).any()
        assert len(asked) == (len(asked) + len(known)) // 5
        assert len(owner.kinds) == len(asked)
    assert sorted(np.bincount(people.parts)) == [6] * FOLDS


def test_kinds_are_by_the_owners_choice(people: HubCrowd) -> None:
    owner = people.owners[0]
    levels = dict(
        zip(people.catalogue.categories, people.catalogue.levels(owner.concerns), strict=True)
    )
    for column, kind in zip(people.asked.columns[people.asked.rows == 0], owner.kinds, strict=True):
        group = people.catalogue.group_of[people.catalogue.items[column]]
        of = [
            levels[name]
            for name, has in zip(
                people.catalogue.categories, people.catalogue.incidence[group], strict=True
            )
            if has
        ]
        expected = HIDDEN if Level.NO in of else PROTECTED if Level.PERTURBED in of else OPEN
        assert kind == expected


def test_no_more_than_three_quarters_are_taken() -> None:
    assert len(crowd_of("synthetic", None, 10_000, 0).owners) == 300


def test_levels_at_random_always_perturb_something(people: HubCrowd) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert len(scope_of(people.catalogue, random_concerns(people.catalogue, rng)).counted)


def test_own_ratings_travel_with_own_items_and_public_means_with_others(people: HubCrowd) -> None:
    never = np.setdiff1d(np.arange(len(people.means)), people.owners[0].history)[:1]
    profiles = [
        np.append(people.owners[0].history[:1], never),
        *(owner.history[:0] for owner in people.owners[1:]),
    ]
    sent = people._with_ratings(people.sent(profiles))
    stars = dict(zip(sent.columns.tolist(), sent.stars.tolist(), strict=True))
    own = people.known.where(people.known.rows == 0)
    assert stars == {
        int(profiles[0][0]): float(own.stars[0]),
        int(never[0]): float(people.means[never[0]]),
    }


def test_the_raw_history_predicts_better_with_its_ratings(people: HubCrowd) -> None:
    raw = raw_errors("synthetic", None, 60, 1)
    nothing = people.judge([owner.history[:0] for owner in people.owners])
    assert raw.ratings.mean() < nothing.ratings.mean()
    assert raw.gains.mean() > nothing.gains.mean()
