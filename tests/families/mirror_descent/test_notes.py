"""What a recommendation id carries: the same features again, and a public length."""

import pytest

from discreet.errors import TokenForged
from discreet.families.mirror_descent.notes import (
    FeatureNote,
    id_digest,
    note_size,
    read_note,
)
from discreet.families.mirror_descent.sparse import SparseRow


def row(*features: tuple[int, float]) -> SparseRow:
    return SparseRow([i for i, _ in features], [v for _, v in features])


@pytest.mark.parametrize("size", [0, 500])
def test_a_note_comes_back(size: int) -> None:
    items = ((id_digest("tea"), row((7, 1.0))), (id_digest("milk"), row()))
    again = read_note(FeatureNote(row((3, 0.5), (999_999, -2.0)), items).encode(size))
    assert again.client == ((3, 999_999), (0.5, -2.0))
    assert again.items is not None
    assert [digest for digest, _ in again.items] == [id_digest("tea"), id_digest("milk")]
    assert [one.indices for _, one in again.items] == [(7,), ()]


def test_candidates_of_the_callers_and_none_are_told_apart() -> None:
    assert read_note(FeatureNote(row(), None).encode()).items is None
    assert read_note(FeatureNote(row(), ()).encode(40)).items == []


def test_the_stated_size_is_the_size() -> None:
    note = FeatureNote(row((1, 1.0)), ((id_digest("a"), row((1, 1.0), (2, 1.0))),))
    assert len(note.encode()) == note_size(client=1, items=[2])
    assert len(note.encode(300)) == 300


@pytest.mark.parametrize("content", [b"", b"\1\1\0", b"\0\0\0\x09\0", bytes(4)])
def test_what_was_not_written_here_is_refused(content: bytes) -> None:
    with pytest.raises(TokenForged):
        read_note(content)
