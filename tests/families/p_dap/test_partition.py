"""Cells, their addresses and when they split."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.families.p_dap.contract import Address
from discreet.families.p_dap.partition import MOST_LEVELS, Partition
from discreet.errors import InvalidArgument


def partition(**changes: object) -> Partition:
    parameters: dict[str, object] = {
        "generation": b"generation",
        "dimensions": 2,
        "segments": 2,
        "base": 10.0,
        "growth": 1.0,
    }
    return Partition(**(parameters | changes))  # type: ignore[arg-type]


def key(one: Partition, level: int, *context: float) -> bytes:
    return one.route(np.array(context)).key(level)


def test_contexts_share_a_cell_exactly_when_their_places_agree() -> None:
    one = partition(segments=3)
    rng = np.random.default_rng(1)
    for level in range(4):
        place_of: dict[bytes, tuple[int, ...]] = {}
        for x, y in rng.random((400, 2)).tolist():
            place = (math.floor(x * 3**level), math.floor(y * 3**level))
            assert place_of.setdefault(key(one, level, x, y), place) == place
        assert len(set(place_of.values())) == len(place_of)
        assert level > 1 or len(place_of) == 9**level


def test_levels_never_share_an_address() -> None:
    assert len({key(partition(), level, 0.0, 0.0) for level in range(MOST_LEVELS + 1)}) == 17


def test_one_belongs_to_the_last_cell_at_every_level() -> None:
    for segments in (2, 3, 10, 1_000):
        one = partition(segments=segments)
        for level in range(one.deepest + 1):
            inside = 1.0 - 0.25 / segments**level
            assert key(one, level, 1.0, 0.5) == key(one, level, inside, 0.5)


@given(
    segments=st.integers(2, 2**16),
    value=st.floats(0, 1),
)
def test_every_place_fits_its_field(segments: int, value: float) -> None:
    one = partition(segments=segments, dimensions=1)
    assert one.deepest >= 2
    for level in range(one.deepest + 1):
        assert len(key(one, level, value)) == 16


@pytest.mark.parametrize("dimensions", [1, 12, 13, 200])
def test_few_and_many_dimensions_are_written_alike(dimensions: int) -> None:
    """The quick ways for short and for long contexts meet at 12; both follow the definition."""
    one = partition(dimensions=dimensions, segments=3)
    rng = np.random.default_rng(dimensions)
    context = rng.random(dimensions)
    context[0] = 1.0
    for level in (0, 1, 5, 7, 12):
        centre = (np.minimum(np.floor(context * 3**level), 3**level - 1) + 0.5) / 3**level
        assert one.route(context).key(level) == one.route(centre).key(level)
    moved = context.copy()
    moved[-1] = (moved[-1] + 0.5) % 1.0
    assert one.route(context).key(1) != one.route(moved).key(1)


def test_addresses_are_the_same_in_another_process_and_for_other_thresholds() -> None:
    again: Partition = pickle.loads(pickle.dumps(partition(base=99.0, growth=3.0)))
    assert key(again, 5, 0.1, 0.7) == key(partition(), 5, 0.1, 0.7)
    # Written down: an upgrade that changes addresses would lose everything learned.
    assert key(partition(), 5, 0.1, 0.7).hex() == WRITTEN


WRITTEN = "324983ca11e9856ae37968c194936f28"


def test_another_generation_or_geometry_has_other_addresses() -> None:
    keys = {
        key(one, 2, 0.1, 0.7)
        for one in (partition(), partition(generation=b"other"), partition(segments=3))
    }
    assert len(keys) == 3
    # A generation is not confused with what follows it.
    assert key(partition(generation=b"a"), 0, 0.5, 0.5) != key(
        partition(generation=b"a\x00"), 0, 0.5, 0.5
    )


def test_a_cell_splits_at_its_threshold_and_deeper_ones_later() -> None:
    one = partition(base=10.0, growth=1.5, segments=2)
    assert one.thresholds[:4] == (10, 29, 80, 227)
    for level, threshold in enumerate(one.thresholds[:4]):
        address = Address(b"", level)
        assert not one.has_split(address, np.array([threshold - 1]))
        assert one.has_split(address, np.array([threshold]))
    assert not one.has_split(Address(b""), np.zeros(0, dtype=np.int64))


def test_the_deepest_cells_never_split() -> None:
    one = partition(base=1.0, growth=0.001)
    most = np.array([2**62])
    assert one.deepest == MOST_LEVELS
    assert one.has_split(Address(b"", one.deepest - 1), most)
    assert not one.has_split(Address(b"", one.deepest), most)


def test_thresholds_beyond_any_count_are_never_reached() -> None:
    one = partition(base=1e12, growth=16.0, segments=16)
    assert max(one.thresholds) >= 2**63
    assert not one.has_split(Address(b"", one.deepest - 1), np.array([2**63 - 1]))


def test_a_summary_counts_depth_splits_and_arms_ever_tried() -> None:
    found = partition().summary(
        {
            Address(b"a", 0): np.array([10, 4, 0, 6, 0]),
            Address(b"b", 1): np.array([3, 0, 0, 2, 0, 1, 0]),
        }
    )
    assert (found.depth, found.splits, found.explored) == (1, 1, 3)


@pytest.mark.parametrize(
    ("name", "value"),
    [("segments", 1), ("segments", 2**16 + 1), ("base", math.inf), ("growth", -1.0)],
)
def test_geometry_that_cannot_be_used_is_named(name: str, value: object) -> None:
    with pytest.raises(InvalidArgument) as refused:
        partition(**{name: value})
    assert refused.value.argument == name


def test_long_contexts_are_checked_too() -> None:
    one = partition(dimensions=40)
    for wrong in (math.nan, -0.1, 1.1):
        context = np.full(40, 0.5)
        context[17] = wrong
        with pytest.raises(InvalidArgument, match=r"^context: "):
            one.route(context)


@pytest.mark.parametrize("dimensions", [1, 2, 12, 13, 20, 60])
@pytest.mark.parametrize("segments", [2, 3, 10])
def test_many_ways_down_are_the_single_ones(dimensions: int, segments: int) -> None:
    """Down to the deepest level, where 13 dimensions have names that are digests too."""
    one = partition(dimensions=dimensions, segments=segments)
    contexts = np.random.default_rng(dimensions).random((9, dimensions))
    contexts[0], contexts[1], contexts[2, 0] = 0.0, 1.0, 1.0
    contexts[3] = 1 / segments
    contexts[4] = np.nextafter(1 / segments, 0.0)
    contexts[5] = 1 - segments**-5.0
    many = one.routes(contexts)
    single = [one.route(context) for context in contexts]
    assert len(many) == 9
    lengths = set()
    for row in (8, *range(9)):
        way = [many.name(row, level) for level in range(one.deepest + 1)]
        assert way == [single[row].name(level) for level in range(one.deepest + 1)]
        assert way == [many.route(row).name(level) for level in range(one.deepest + 1)]
        for level in range(one.deepest + 1):
            assert many.key(row, level) == single[row].key(level)
        lengths |= set(map(len, way))
    assert (17 in lengths) == (dimensions == 60 or (dimensions > 12 and segments > 2))


@pytest.mark.parametrize("dimensions", [1, 40])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -0.1, 1.0000001])
def test_one_context_outside_the_cube_among_many_is_refused(dimensions: int, wrong: float) -> None:
    contexts = np.full((5, dimensions), 0.5)
    contexts[3, -1] = wrong
    with pytest.raises(InvalidArgument, match=r"^context: "):
        partition(dimensions=dimensions).routes(contexts)
