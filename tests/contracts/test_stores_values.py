"""What every store promises about blobs, pages, rosters and leases: memory, Valkey, cluster."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from discreet.errors import InvalidArgument, StateOverflow
from discreet.state import checks
from discreet.state.redis_store import open_store
from discreet.state.store_values import STAMP_BYTES
from discreet.state.stores import Blob, PageWrite, Store, Written
from tests.state.places import Place, shared

pytestmark = pytest.mark.anyio

KEY = b"key}{".ljust(32, b"}")
OTHER = b"other".ljust(32, b"\x00")


def digests(size: int) -> list[bytes]:
    return [hashlib.blake2b(b"%d" % n, digest_size=16).digest() for n in range(size)]


# Blobs


async def test_an_absent_blob_is_none(store: Store) -> None:
    assert await store.load(keys=[]) == []
    assert await store.load(keys=[KEY]) == [None]


async def test_every_save_adds_one_to_the_version(store: Store) -> None:
    assert await store.versions(keys=[]) == []
    assert await store.versions(keys=[KEY, OTHER]) == [0, 0]
    assert await store.save(key=KEY, content=b"one") == 1
    assert await store.save(key=KEY, content=b"") == 2
    assert await store.load(keys=[KEY]) == [Blob(version=2, content=b"")]
    await store.save(key=OTHER, content=b"other")
    assert await store.versions(keys=[OTHER, b"absent", KEY, KEY]) == [1, 0, 2, 2]
    await store.erase(keys=[KEY])
    assert await store.versions(keys=[KEY]) == [0]


async def test_a_stamp_is_the_stores_own_time(store: Store) -> None:
    await store.save(key=KEY, content=b"one")
    first = await store.stamp(key=KEY)
    second = await store.stamp(key=KEY)
    assert (first.version, second.version) == (2, 3)
    assert first.at <= second.at
    (blob,) = await store.load(keys=[KEY])
    assert blob is not None
    assert blob.version == 3
    assert len(blob.content) == STAMP_BYTES
    assert 0 <= int.from_bytes(blob.content, "little") - second.at < 1


async def test_blobs_come_back_in_the_order_of_the_question(store: Store) -> None:
    for number in range(30):
        await store.save(key=b"%d" % number, content=b"c%d" % number)
    found = await store.load(keys=[b"7", b"absent", *[b"%d" % n for n in range(30)]])
    assert found[:2] == [Blob(1, b"c7"), None]
    assert found[2:] == [Blob(1, b"c%d" % n) for n in range(30)]


async def test_a_blob_is_replaced_only_by_who_saw_it(store: Store) -> None:
    assert await store.save(key=KEY, content=b"x", expected=1) is None
    assert await store.save(key=KEY, content=b"one", expected=0) == 1
    assert await store.save(key=KEY, content=b"x", expected=0) is None
    assert await store.save(key=KEY, content=b"two", expected=1) == 2
    assert await store.save(key=KEY, content=b"x", expected=1) is None
    assert await store.load(keys=[KEY]) == [Blob(version=2, content=b"two")]


async def test_of_parallel_saves_one_wins(store: Store) -> None:
    await store.save(key=KEY, content=b"")
    saves = [store.save(key=KEY, content=b"%d" % n, expected=1) for n in range(20)]
    versions = [await each for each in saves]
    assert sorted(versions, key=str) == [2, *[None] * 19]
    winner = versions.index(2)
    assert await store.load(keys=[KEY]) == [Blob(2, b"%d" % winner)]


async def test_a_large_blob_comes_back_whole(store: Store) -> None:
    content = bytes(range(256)) * 40_000
    await store.save(key=KEY, content=content)
    (found,) = await store.load(keys=[KEY])
    assert found is not None
    assert found.content == content


# Pages


async def test_an_absent_page_is_empty(store: Store) -> None:
    assert await store.read_page(page=KEY) == b""
    assert await store.read_page(page=KEY, start=5, end=9) == b""


@pytest.mark.parametrize(
    ("start", "end"), [(0, None), (2, 4), (0, 0), (3, 3), (4, 2), (0, 1), (5, 99), (99, None)]
)
async def test_a_range_is_half_open(store: Store, start: int, end: int | None) -> None:
    await store.write_page(page=KEY, writes=[(0, b"abcdefg")])
    assert await store.read_page(page=KEY, start=start, end=end) == b"abcdefg"[start:end]


async def test_gaps_are_zeros_and_later_writes_win(store: Store) -> None:
    first = await store.write_page(page=KEY, writes=[(3, b"xyz"), (0, b"a"), (4, b"Y")])
    assert first == Written(done=True, length=6, found=b"")
    assert await store.read_page(page=KEY) == b"a\x00\x00xYz"
    second = await store.write_page(page=KEY, writes=[(300, b"far"), (1, b"b"), (9, b"")])
    assert second == Written(done=True, length=303, found=b"")
    assert await store.read_page(page=KEY) == b"ab\x00xYz" + bytes(294) + b"far"


async def test_writing_nothing_creates_nothing(store: Store) -> None:
    assert await store.write_page(page=KEY, writes=[]) == Written(True, 0, b"")
    assert await store.write_page(page=KEY, writes=[(7, b"")]) == Written(True, 0, b"")
    nothing = PageWrite(KEY, 7, b"", long=0)
    assert await store.write_pages([nothing]) == [Written(True, 0, b"")]
    assert await store.read_page(page=KEY) == b""


async def test_a_guard_decides_whether_anything_is_written(store: Store) -> None:
    await store.write_page(page=KEY, writes=[(0, b"head tail")])
    refused = await store.write_page(page=KEY, writes=[(0, b"HEAD")], guard=(5, b"TAIL"))
    assert refused == Written(done=False, length=9, found=b"tail")
    beyond = await store.write_page(page=KEY, writes=[(0, b"HEAD")], guard=(7, b"il!"))
    assert beyond == Written(done=False, length=9, found=b"il")
    assert await store.read_page(page=KEY) == b"head tail"
    passed = await store.write_page(
        page=KEY, writes=[(0, b"HEAD"), (5, b"TAIL")], guard=(5, b"tail")
    )
    assert passed == Written(done=True, length=9, found=b"tail")
    assert await store.read_page(page=KEY) == b"HEAD TAIL"
    nowhere = await store.write_page(page=OTHER, writes=[(0, b"x")], guard=(0, b"\x00"))
    assert nowhere == Written(done=False, length=0, found=b"")


async def test_a_hundred_thousand_writes_of_one_byte(store: Store) -> None:
    """Every third byte of a page and, far behind it, scattered ones."""
    dense = [(3 * n, bytes([n % 251 + 1])) for n in range(99_000)]
    sparse = [(1_000_000 + 997 * n, bytes([n % 13 + 1])) for n in range(1000)]
    expected = bytearray(1_000_000 + 997 * 999 + 1)
    for offset, content in dense + sparse:
        expected[offset : offset + 1] = content
    written = await store.write_page(page=KEY, writes=[*reversed(sparse), *dense])
    assert written == Written(done=True, length=len(expected), found=b"")
    assert await store.read_page(page=KEY) == bytes(expected)


async def test_many_pages_are_read_at_their_heads_and_from_some_place_on(store: Store) -> None:
    pages = digests(150)
    for number, page in enumerate(pages[:-1]):
        await store.write_page(page=page, writes=[(0, b"head%03d" % number)])
    starts = [number % 9 for number in range(150)]
    read = await store.read_pages(pages=pages, head=4, starts=starts)
    wanted = [(b"head", (b"head%03d" % each)[start:]) for each, start in enumerate(starts[:-1])]
    assert list(read) == [*wanted, (b"", b"")]
    assert await store.read_pages(pages=[KEY, pages[0]], head=0, starts=[0, 6]) == [
        (b"", b""),
        (b"", b"0"),
    ]
    assert await store.read_pages(pages=[], head=4, starts=[]) == []


async def test_a_write_expects_a_length(store: Store) -> None:
    async def write(start: int, content: bytes, long: int | None) -> tuple[bool, int]:
        (written,) = await store.write_pages([PageWrite(KEY, start, content, (), long)])
        assert isinstance(written, Written)
        return written.done, written.length

    assert await write(0, b"ab", 1) == (False, 0)
    assert await write(0, b"ab", 0) == (True, 2)
    assert await write(0, b"xy", 0) == (False, 2)
    assert await write(2, b"cd", 2) == (True, 4)
    assert await write(5, b"f", None) == (True, 6)
    assert await store.read_page(page=KEY) == b"abcd\x00f"


async def test_all_guards_of_a_write_must_stand(store: Store) -> None:
    await store.write_page(page=KEY, writes=[(0, b"mark, then more")])
    for guards, long, found in (
        (((0, b"MARK"), (6, b"then")), None, b"markthen"),
        (((0, b"mark"), (6, b"THEN")), None, b"markthen"),
        (((0, b"mark"), (11, b"more!")), None, b"markmore"),
        (((0, b"mark"), (20, b"x")), None, b"mark"),
        (((0, b"mark"),), 14, b"mark"),
    ):
        refused = await store.write_pages([PageWrite(KEY, 6, b"nothing", guards, long)])
        assert refused == [Written(False, 15, found)]
    assert await store.read_page(page=KEY) == b"mark, then more"
    guards = ((0, b"mark"), (11, b"more"))
    written = await store.write_pages([PageWrite(KEY, 11, b"all of it", guards, 15)])
    assert written == [Written(True, 20, b"markmore")]
    assert await store.read_page(page=KEY) == b"mark, then all of it"


async def test_writes_of_a_call_succeed_or_fail_each_by_itself(store: Store) -> None:
    pages = digests(150)
    first = [PageWrite(page, 0, b"mark") for page in pages[::2]]
    assert {each.done for each in await store.write_pages(first) if isinstance(each, Written)}
    again = [PageWrite(page, 4, b" more", ((0, b"mark"),)) for page in pages]
    done = [each.done for each in await store.write_pages(again) if isinstance(each, Written)]
    assert done == [True, False] * 75
    read = [await store.read_page(page=page) for page in pages]
    assert read == [b"mark more", b""] * 75


async def test_of_parallel_writes_at_one_length_one_wins(store: Store) -> None:
    writes = [store.write_pages([PageWrite(KEY, 0, b"%02d" % n, long=0)]) for n in range(20)]
    done = [one.done for each in writes for one in await each if isinstance(one, Written)]
    assert (done.count(True), done.count(False)) == (1, 19)
    assert await store.read_page(page=KEY) == b"%02d" % done.index(True)


async def test_a_page_does_not_grow_for_ever(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "MOST_PAGE", 8)
    whole, beyond = PageWrite(KEY, 0, b"12345678"), PageWrite(KEY, 8, b"9")
    written, refused, other = await store.write_pages([whole, beyond, PageWrite(OTHER, 0, b"1")])
    assert (written, other) == (Written(True, 8, b""), Written(True, 1, b""))
    assert isinstance(refused, StateOverflow)
    assert await store.read_page(page=KEY) == b"12345678"
    with pytest.raises(InvalidArgument):
        store.write_page(page=KEY, writes=[(8, b"9")])


async def test_erasing_takes_blob_and_page_of_a_name(store: Store) -> None:
    for key in (KEY, OTHER):
        await store.save(key=key, content=b"blob")
        await store.write_page(page=key, writes=[(0, b"page")])
    for _ in range(2):
        await store.erase(keys=[KEY, b"absent"])
    await store.erase(keys=[])
    assert await store.load(keys=[KEY, OTHER]) == [None, Blob(1, b"blob")]
    assert await store.read_page(page=KEY) == b""
    assert await store.read_page(page=OTHER) == b"page"
    assert await store.save(key=KEY, content=b"again", expected=0) == 1


# Rosters


async def test_names_get_consecutive_numbers_for_ever(store: Store) -> None:
    assert await store.roster_size(roster=KEY) == 0
    assert await store.enrol(roster=KEY, names=[]) == []
    assert await store.enrol(roster=KEY, names=[b"a", b"b}", b"a"]) == [0, 1, 0]
    assert await store.enrol(roster=KEY, names=[b"c\x00", b"b}"]) == [2, 1]
    assert await store.enrol(roster=OTHER, names=[b"c\x00"]) == [0]
    assert await store.number_of(roster=KEY, names=[b"c\x00", b"x", b"a"]) == [2, None, 0]
    assert await store.number_of(roster=KEY, names=[]) == []
    assert await store.roster_size(roster=KEY) == 3


async def test_a_removed_roster_begins_again(store: Store) -> None:
    await store.enrol(roster=KEY, names=[b"a", b"b"])
    await store.enrol(roster=OTHER, names=[b"a", b"b"])
    for _ in range(2):
        await store.remove_roster(roster=KEY)
    assert await store.roster_size(roster=KEY) == 0
    assert await store.enrol(roster=KEY, names=[b"b"]) == [0]
    assert await store.number_of(roster=OTHER, names=[b"b"]) == [1]


async def test_a_hundred_thousand_names_in_one_call(store: Store) -> None:
    names = digests(100_000)
    assert await store.enrol(roster=KEY, names=names[:5000]) == list(range(5000))
    mixed = [*names, *names[::-1000]]
    assert await store.enrol(roster=KEY, names=mixed) == [
        *range(100_000),
        *range(99_999, -1, -1000),
    ]
    assert await store.roster_size(roster=KEY) == 100_000
    assert await store.number_of(roster=KEY, names=names) == list(range(100_000))


async def test_parallel_enrolments_share_the_numbers_out(store: Store) -> None:
    names = digests(200)
    calls = [store.enrol(roster=KEY, names=names[n : n + 20]) for n in range(0, 190, 10)]
    numbers = dict[bytes, int]()
    for start, call in zip(range(0, 190, 10), calls, strict=True):
        for name, number in zip(names[start : start + 20], await call, strict=True):
            assert numbers.setdefault(name, number) == number
    assert sorted(numbers.values()) == list(range(200))


# Leases


async def test_a_lease_has_one_holder(store: Store) -> None:
    assert await store.hold(lease=KEY, holder=b"me", seconds=60)
    assert await store.hold(lease=KEY, holder=b"me", seconds=60)
    assert not await store.hold(lease=KEY, holder=b"you", seconds=60)
    assert await store.hold(lease=OTHER, holder=b"you", seconds=60)
    await store.let_go(lease=KEY, holder=b"you")
    assert not await store.hold(lease=KEY, holder=b"you", seconds=60)
    for _ in range(2):
        await store.let_go(lease=KEY, holder=b"me")
    assert await store.hold(lease=KEY, holder=b"you", seconds=60)


async def test_a_lease_ends_unless_it_is_renewed(place: Place) -> None:
    store = place.store
    assert await store.hold(lease=KEY, holder=b"me", seconds=0.5)
    assert await store.hold(lease=OTHER, holder=b"me", seconds=0.5)
    assert await store.hold(lease=OTHER, holder=b"me", seconds=600)
    await place.elapse(0.7)
    assert await store.hold(lease=KEY, holder=b"you", seconds=60)
    assert not await store.hold(lease=OTHER, holder=b"you", seconds=60)


async def test_of_parallel_holders_one_wins(store: Store) -> None:
    attempts = [store.hold(lease=KEY, holder=b"%d" % n, seconds=60) for n in range(20)]
    assert sum([await attempt for attempt in attempts]) == 1


# All


@shared
async def test_another_client_sees_the_same_values(place: Place) -> None:
    assert place.url is not None
    await place.store.save(key=KEY, content=b"blob")
    await place.store.write_page(page=KEY, writes=[(0, b"page")])
    await place.store.enrol(roster=KEY, names=[b"a", b"b"])
    await place.store.hold(lease=KEY, holder=b"me", seconds=60)
    other = open_store(place.url, namespace=place.namespace, timeout=60)
    await other.open()
    try:
        assert await other.load(keys=[KEY]) == [Blob(1, b"blob")]
        assert await other.read_page(page=KEY) == b"page"
        assert await other.number_of(roster=KEY, names=[b"b"]) == [1]
        assert not await other.hold(lease=KEY, holder=b"you", seconds=60)
    finally:
        await other.close()


async def test_values_are_written_when_called(store: Store) -> None:
    saved = store.save(key=KEY, content=b"one")
    written = store.write_page(page=KEY, writes=[(0, b"a")])
    more = store.write_pages([PageWrite(KEY, 1, b"b", long=1)])
    assert await store.load(keys=[KEY]) == [Blob(1, b"one")]
    assert await store.read_page(page=KEY) == b"ab"
    assert (await saved, (await written).length) == (1, 1)
    assert await more == [Written(True, 2, b"")]


@pytest.mark.parametrize(
    ("method", "arguments", "culprit"),
    [
        ("load", {"keys": [KEY, b""]}, "keys"),
        ("versions", {"keys": [KEY, b""]}, "keys"),
        ("save", {"key": b"", "content": b""}, "key"),
        ("save", {"key": KEY, "content": "text"}, "content"),
        ("save", {"key": KEY, "content": b"", "expected": -1}, "expected"),
        ("save", {"key": KEY, "content": b"", "expected": True}, "expected"),
        ("read_page", {"page": b""}, "page"),
        ("read_page", {"page": KEY, "start": -1}, "start"),
        ("read_page", {"page": KEY, "end": -1}, "end"),
        ("write_page", {"page": b"", "writes": []}, "page"),
        ("write_page", {"page": KEY, "writes": [(-1, b"a")]}, "writes"),
        ("write_page", {"page": KEY, "writes": [(0, "a")]}, "writes"),
        ("write_page", {"page": KEY, "writes": [(checks.MOST_PAGE, b"a")]}, "writes"),
        ("write_page", {"page": KEY, "writes": [], "guard": (0, b"")}, "guard"),
        ("write_page", {"page": KEY, "writes": [], "guard": (-1, b"a")}, "guard"),
        ("read_pages", {"pages": [b""], "head": 0, "starts": [0]}, "pages"),
        ("read_pages", {"pages": [KEY], "head": 0, "starts": []}, "starts"),
        ("read_pages", {"pages": [KEY], "head": 0, "starts": [-1]}, "starts"),
        ("read_pages", {"pages": [KEY], "head": -1, "starts": [0]}, "head"),
        ("write_pages", {"writes": [PageWrite(b"", 0, b"a")]}, "page"),
        ("write_pages", {"writes": [PageWrite(KEY, -1, b"a")]}, "start"),
        ("write_pages", {"writes": [PageWrite(KEY, 0, None)]}, "content"),  # type: ignore[arg-type]
        ("write_pages", {"writes": [PageWrite(KEY, 0, b"a", ((0, b""),))]}, "guards"),
        ("write_pages", {"writes": [PageWrite(KEY, 0, b"", ((1, b"a"), (1, b"a")))]}, "guards"),
        ("write_pages", {"writes": [PageWrite(KEY, 0, b"a", (), 0.5)]}, "long"),  # type: ignore[arg-type]
        ("erase", {"keys": [b""]}, "keys"),
        ("enrol", {"roster": b"", "names": [b"a"]}, "roster"),
        ("enrol", {"roster": KEY, "names": [b"a", b""]}, "names"),
        ("enrol", {"roster": KEY, "names": ["a"]}, "names"),
        ("number_of", {"roster": KEY, "names": [b""]}, "names"),
        ("roster_size", {"roster": b""}, "roster"),
        ("remove_roster", {"roster": b""}, "roster"),
        ("hold", {"lease": b"", "holder": b"me", "seconds": 1}, "lease"),
        ("hold", {"lease": KEY, "holder": b"", "seconds": 1}, "holder"),
        ("hold", {"lease": KEY, "holder": b"me", "seconds": 0}, "seconds"),
        ("hold", {"lease": KEY, "holder": b"me", "seconds": float("nan")}, "seconds"),
        ("let_go", {"lease": KEY, "holder": b""}, "holder"),
    ],
)
async def test_bad_arguments_are_named_at_the_call(
    store: Store, method: str, arguments: dict[str, Any], culprit: str
) -> None:
    call: Callable[..., Any] = getattr(store, method)
    with pytest.raises(InvalidArgument) as caught:
        call(**arguments)
    assert caught.value.argument == culprit
