"""Profiles are served as well as is claimed, where MovieLens-1M is at hand."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from discreet.families.collaborative.similarities import ItemSimilarities
from tests.families.collaborative.compare import ours, served, split


def test_profiles_are_served_nearly_twice_as_well_as_by_popularity(
    data_set: Callable[[str], Path],
) -> None:
    data = split(data_set("ml-1m"))
    similarities = ours(data)
    popularity = replace(ItemSimilarities.untrained(data.films), counts=similarities.counts)
    # Measured 0.382 and 0.201 over all users of this split; the margin is for other versions' ties.
    assert served(data, similarities, every=3) > 0.375
    assert served(data, popularity, every=3) < 0.21
