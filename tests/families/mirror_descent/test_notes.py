"""What a recommendation id carries: the same features again, and a public length."""

import pytest

from discreet.errors import TokenForged
from discreet.families.mirror_descent.notes import (
    FeatureNote,
    id_digest,
    note_size,
    position_width,
    read_note,
)
from discreet.families.mirror_descent.sparse import SparseRow


def row(*features: tuple[int, float]) -> SparseRow:
    return SparseRow([i for i, _ in features], [v for _, v in features])


@pytest.mark.parametrize("size", [0, 500])
@pytest.mark.parametrize(("width", "last"), [(1, 255), (2, 65_535), (4, 999_999)])
def test_a_note_comes_back(size: int, width: int, last: int) -> None:
    items = ((id_digest("tea"), row((7, 1.0))), (id_digest("milk"), row()))
    note = FeatureNote(row((3, 0.5), (last, -2.0)), items)
    again = read_note(note.encode(size, width=width))
    assert again.client == ((3, last), (0.5, -2.0))
    assert again.items is not None
    assert [digest for digest, _ in again.items] == [id_digest("tea"), id_digest("milk")]
    assert [one.indices for _, one in again.items] == [(7,), ()]


def test_candidates_of_the_callers_and_none_are_told_apart() -> None:
    assert read_note(FeatureNote(row(), None).encode()).items is None
    assert read_note(FeatureNote(row(), ()).encode(40)).items == []


def test_positions_take_as_few_bytes_as_they_need() -> None:
    dimensions = (1, 256, 257, 65_536, 65_537, 2**24)
    assert [position_width(each) for each in dimensions] == [1, 1, 2, 2, 4, 4]


@pytest.mark.parametrize("width", [1, 2, 4])
def test_the_stated_size_is_the_size(width: int) -> None:
    note = FeatureNote(row((1, 1.0)), ((id_digest("a"), row((1, 1.0), (2, 1.0))),))
    assert len(note.encode(width=width)) == note_size(client=1, items=[2], width=width)
    assert len(note.encode(300)) == 300


@pytest.mark.parametrize("content", [b"", b"\1\1\0", b"\0\0\0\x09\0", bytes(4), b"\x06" + bytes(9)])
def test_what_was_not_written_here_is_refused(content: bytes) -> None:
    with pytest.raises(TokenForged):
        read_note(content)
