"""What was in letters so far, user by user: a page of the store.

The page begins with a stamp, 16 bytes that every change replaces by random ones and names as its
guard. So of two changes that were prepared from the same page one is made, and the other learns
that it was not. After the stamp stands, for the user of each number, the vector of sums that
letters have covered; zeros if there was none.

Erasing a user takes three changes: the record is *closed* (a count that nobody reaches, so no
letter is written about the user), then the sums are erased, then the record is opened again, empty.
A closed record says how many erasures have closed it, and only the last of them opens it. So while
any erasure is under way, however slow, no letter can take old sums for new ones or new for old. An
erasure that never ends leaves the record closed: the user is served, and is in no letter any more.
"""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.families.fclub.recommender import ClusterRecommender
from discreet.state.checks import MOST_PAGE

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

STAMP_BYTES = 16
CLOSED = 2**62

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """The page at one moment: its stamp, and a row for each number up to the last."""

    stamp: bytes
    steps: Integers

    def of(self, numbers: Integers) -> Integers:
        """Return the rows of these users; whoever is beyond the last has none."""
        found = np.zeros((len(numbers), self.steps.shape[1]), dtype=np.int64)
        there = numbers < len(self.steps)
        found[there] = self.steps[numbers[there]]
        return found


def room(recommender: ClusterRecommender) -> int:
    """Return how many users a page holds; others learn locally and are in no letter."""
    return (MOST_PAGE - STAMP_BYTES) // (8 * recommender.privatizer.fields)


async def read_sent(runtime: "Runtime", recommender: ClusterRecommender) -> Sent:
    """Return the page, which is begun if it is not there. Read it *before* the users' sums.

    The other way round, sums from before an erasure could meet a record from after it.
    """
    stamp = await _stamp(runtime, recommender)
    kept = recommender.sent
    if kept is not None and stamp == kept.stamp:
        return kept
    content = await runtime.store.read_page(page=_page(recommender))
    fields = recommender.privatizer.fields
    whole = (len(content) - STAMP_BYTES) // (8 * fields)
    steps = np.frombuffer(content, dtype=">i8", offset=STAMP_BYTES, count=whole * fields)
    recommender.sent = Sent(content[:STAMP_BYTES], steps.astype(np.int64).reshape(whole, fields))
    return recommender.sent


async def commit(
    runtime: "Runtime",
    recommender: ClusterRecommender,
    *,
    base: bytes,
    stamp: bytes,
    rows: dict[int, bytes],
) -> bool:
    """Replace these users' records if the page is still at `base`; tell whether it was done.

    Asked again after it was done, it says so again, unless somebody has changed the page since.
    """
    size = 8 * recommender.privatizer.fields
    written = await runtime.store.write_page(
        page=_page(recommender),
        writes=[
            (0, stamp),
            *((STAMP_BYTES + number * size, row) for number, row in rows.items()),
        ],
        guard=(0, base),
    )
    return written.done or written.found == stamp


async def close_record(runtime: "Runtime", recommender: ClusterRecommender, number: int) -> None:
    """Let no letter be written about a user until `open_record`."""
    await _change_closing(runtime, recommender, number, 1)


async def open_record(runtime: "Runtime", recommender: ClusterRecommender, number: int) -> None:
    """Undo one `close_record`; the last opens the record, empty."""
    await _change_closing(runtime, recommender, number, -1)


async def _change_closing(
    runtime: "Runtime", recommender: ClusterRecommender, number: int, change: int
) -> None:
    page, fields = _page(recommender), recommender.privatizer.fields
    place = STAMP_BYTES + number * 8 * fields
    while True:
        base = await _stamp(runtime, recommender)
        # A change since then has another stamp, and the guard will say so.
        count = await runtime.store.read_page(page=page, start=place, end=place + 8)
        closings = max(int.from_bytes(count, "big") - CLOSED, 0) + change
        record = np.zeros(fields, dtype=">i8")
        record[0] = CLOSED + closings if closings > 0 else 0
        if await commit(
            runtime,
            recommender,
            base=base,
            stamp=os.urandom(STAMP_BYTES),
            rows={number: record.tobytes()},
        ):
            return


async def _stamp(runtime: "Runtime", recommender: ClusterRecommender) -> bytes:
    """Return the page's stamp, beginning the page if it is not there."""
    page = _page(recommender)
    stamp = await runtime.store.read_page(page=page, end=STAMP_BYTES)
    if not stamp:
        await runtime.store.append_page(page=page, content=bytes(STAMP_BYTES), expected=0)
        stamp = await runtime.store.read_page(page=page, end=STAMP_BYTES)
    return stamp


def _page(recommender: ClusterRecommender) -> bytes:
    return recommender.key(b"sent")
