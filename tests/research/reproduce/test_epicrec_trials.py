"""Crowds that are perturbed: repeatable, with the shipped hub's own lists and the paper's own."""

from pathlib import Path

import numpy as np
import pytest

from discreet.families.collaborative.on_device.catalogue import PERTURBED, Concerns, Level
from discreet.hub import accepted, history, offers, releases
from discreet.hub.catalogue import parse
from discreet.hub.choices import Choices, keep
from discreet.hub.database import Database
from discreet.research.noise import SeededNoise
from discreet.research.published.epicrec import published
from discreet.research.reproduce.epicrec_crowd import HubCrowd, crowd_of
from discreet.research.reproduce.epicrec_trials import (
    COUNTED_ONLY,
    FIELDS,
    METHODS,
    NOTHING,
    PUBLISHED,
    RAW,
    SERVED,
    PerturbedCrowd,
    released,
)

PEOPLE = 20
NOW = "2026-01-02T03:04:05+00:00"


@pytest.fixture(scope="module")
def people() -> HubCrowd:
    return crowd_of("synthetic", None, PEOPLE, 0)


@pytest.mark.parametrize("method", METHODS)
def test_a_trial_is_the_same_again_apart_from_its_time(method: str) -> None:
    trial = PerturbedCrowd("synthetic", None, PEOPLE, 0, "category", method, (0.5, 1.0))
    assert trial.rounds == 2 * PEOPLE
    one, two = trial.run().by_method, trial.run().by_method
    timed = FIELDS.index("seconds")
    assert list(one) == [("category", method, 0.5), ("category", method, 1.0)]
    for key, table in one.items():
        assert np.array_equal(np.delete(table, timed, axis=1), np.delete(two[key], timed, axis=1))
        assert table[:, FIELDS.index("people")].sum() == PEOPLE
        assert (table[:, FIELDS.index("error")].sum() > 0) == (method not in COUNTED_ONLY)
        assert table[:, FIELDS.index("bound")].sum() > 0
    first, second = one.values()
    errors = FIELDS.index("aggregate")
    assert second[:, errors].sum() < first[:, errors].sum()


def test_the_raw_history_is_its_own_measure() -> None:
    for method in (RAW, NOTHING):
        ((key, table),) = (
            PerturbedCrowd("synthetic", None, PEOPLE, 0, method, method, ()).run().by_method.items()
        )
        assert key == (method, method, 0.0)
        error, raw = (table[:, FIELDS.index(name)].sum() for name in ("error", "raw"))
        assert (error == raw) == (method == RAW)


def test_the_published_one_is_the_papers_line_by_line(people: HubCrowd) -> None:
    for owner in people.owners[:5]:
        for concerns in (PERTURBED, owner.concerns):
            assert (
                released(PUBLISHED, owner, people, concerns, 0.5)
                == published(
                    history=owner.names,
                    catalogue=people.catalogue,
                    concerns=concerns,
                    epsilon=0.5,
                    noise=SeededNoise(owner.luck),
                ).items
            )


@pytest.mark.parametrize("by_category", [False, True])
def test_the_served_one_is_what_a_hub_creates(
    people: HubCrowd, tmp_path: Path, by_category: bool
) -> None:
    """The shipped hub, with a database, a price and a ledger, gives the same lists."""
    catalogue = people.catalogue
    document = {
        "categories": list(catalogue.categories),
        "items": [
            {
                "id": item,
                "title": item,
                "categories": [
                    name
                    for name, has in zip(
                        catalogue.categories,
                        catalogue.incidence[catalogue.group_of[item]],
                        strict=True,
                    )
                    if has
                ],
            }
            for item in catalogue.items
        ],
    }
    for number, owner in enumerate(people.owners[:3]):
        concerns = owner.concerns if by_category else Concerns()
        levels = dict(zip(catalogue.categories, catalogue.levels(concerns), strict=True))
        choices = Choices(
            by_category=by_category, levels=levels if by_category else {}, epsilon=0.5
        )
        folder = tmp_path / str(number)
        folder.mkdir()
        database = Database(folder, "films")
        with database.transaction() as work:
            offers.offer(work, parse(document), places={}, source="test", now=NOW)
            found = accepted.require(work)
            keep(work, choices)
            for item in sorted(owner.names):
                history.add(work, found, item, source="clicked", now=NOW)
            created = releases.create(
                work,
                after=0,
                agreed=releases.quote(found, choices).charge.nano_epsilon,
                early=False,
                noise=SeededNoise(owner.luck),
                now=NOW,
            )
        assert set(created.items) == released(SERVED, owner, people, concerns, 0.5)
        assert created.epsilon == 0.5
        if by_category:
            assert Level.NO in levels.values()
