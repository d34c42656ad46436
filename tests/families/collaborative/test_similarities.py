"""Similarities come back from the store as they went, and nonsense does not."""

import io

import numpy as np
import pytest

from discreet.families.collaborative.similarities import (
    SIMILARITY_FIELDS,
    Ints,
    ItemSimilarities,
    pack,
    unpack,
)


def ints(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


GOOD = {
    "starts": ints(0, 1, 1, 2),
    "slots": ints(1, 0),
    "weights": np.array([0.5, 0.25]),
    "counts": ints(1, 1, 0),
}


def back(similarities: ItemSimilarities) -> ItemSimilarities:
    return ItemSimilarities.of(unpack(pack(similarities.arrays()), SIMILARITY_FIELDS))


def test_they_come_back_as_they_went() -> None:
    after = back(ItemSimilarities(**GOOD, profiles=2))
    for name, before in GOOD.items():
        np.testing.assert_array_equal(getattr(after, name), before)
    assert after.profiles == 2
    assert back(ItemSimilarities.untrained()).size == 0


def test_a_profile_scores_the_rows_of_its_items() -> None:
    similarities = ItemSimilarities(**GOOD, profiles=2)
    profiles = [np.array([0, 2]), np.array([0, 7]), np.zeros(0, np.intp), np.array([2])]
    assert similarities.scores(profiles, size=5).tolist() == [
        [0.25, 0.5, 0, 0, 0],
        [0, 0.5, 0, 0, 0],
        [0] * 5,
        [0.25, 0, 0, 0, 0],
    ]
    assert similarities.scores(profiles[1:2], size=2).tolist() == [[0, 0.5]]
    assert similarities.scores([], size=3).shape == (0, 3)


@pytest.mark.parametrize(
    "change",
    [
        {"starts": ints(0, 1)},
        {"starts": ints(0, 2, 1, 2)},
        {"starts": ints(1, 1, 1, 2)},
        {"slots": ints(0, 3)},
        {"slots": ints(0)},
        {"weights": np.array([1.0, np.nan])},
    ],
)
def test_what_contradicts_itself_is_refused(change: dict[str, np.ndarray]) -> None:
    with pytest.raises(ValueError, match="contradict themselves"):
        back(ItemSimilarities(**{**GOOD, **change}, profiles=2))


@pytest.mark.parametrize(
    "content", [b"", b"no archive", pack(ItemSimilarities.untrained().arrays())[:-30]]
)
def test_what_is_no_archive_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        unpack(content, SIMILARITY_FIELDS)


def test_nothing_in_an_archive_is_executed() -> None:
    # An array of objects can only be read by unpickling, which runs whatever it says.
    buffer = io.BytesIO()
    np.savez(buffer, starts=np.array([print], dtype=object))
    assert np.load(io.BytesIO(buffer.getvalue()), allow_pickle=True)["starts"][0] is print
    with pytest.raises(ValueError, match="cannot be read"):
        unpack(buffer.getvalue(), ("starts",))
