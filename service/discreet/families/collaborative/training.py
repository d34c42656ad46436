"""Training, in a process of its own: profiles come in, similarities of items go out.

    python -m discreet.families.collaborative.training NEIGHBOURS <profiles >similarities

A process rather than a thread, because sparse matrices are built under the interpreter's lock, and
whoever is being recommended something should not wait for that. It can be killed, its memory goes
back when it ends, and it yields to everything else on the machine.

Items are compared by the cosine of their columns, where each profile weighs ln(1 + items / size):
that two items are together in a short profile says more than that they are in one that has
everything. (The usual ln(items / size) is zero or less for a profile of the whole catalogue, and
leaves such items without a length to divide by.) The comparison of all pairs is the library's,
`implicit` by Ben Frederickson.
"""

import importlib
import io
import os
import sys

import numpy as np

from discreet.families.collaborative.similarities import Ints, ItemSimilarities, pack

_NICENESS = 10


def fit(*, starts: Ints, slots: Ints, live: Ints, neighbours: int) -> ItemSimilarities:
    """Return every live item's neighbours. Profile p is `slots[starts[p]:starts[p + 1]]`.

    `live` are the slots of the catalogue's items; what a profile has beside them is left out.
    """
    profiles, size = len(starts) - 1, int(live.max(initial=-1)) + 1
    allowed = np.zeros(max(size, int(slots.max(initial=-1)) + 1), dtype=bool)
    allowed[live] = True
    kept = allowed[slots]
    items = slots[kept]
    if not len(items):
        return ItemSimilarities.untrained(size)
    owners = np.repeat(np.arange(profiles), np.diff(starts))[kept]
    counts = np.bincount(items, minlength=size)
    sizes = np.bincount(owners, minlength=profiles)
    weights = np.log1p(len(live) / sizes[owners])
    lengths = np.sqrt(np.bincount(items, weights=weights**2, minlength=size))
    # Imported here: workers pack profiles for this process, and need neither.
    csr_matrix = importlib.import_module("scipy.sparse").csr_matrix
    matrix = csr_matrix((weights / lengths[items], (owners, items)), shape=(profiles, size))
    # Asked for one more, because every item is its own nearest neighbour.
    library = importlib.import_module("implicit.nearest_neighbours")
    model = library.ItemItemRecommender(K=neighbours + 1, num_threads=1)
    model.fit(matrix, show_progress=False)
    near = model.similarity.tocoo()
    useful = (near.row != near.col) & (near.data > 0)
    speaks = csr_matrix(
        (near.data[useful], (near.col[useful], near.row[useful])), shape=(size, size)
    )
    return ItemSimilarities(
        starts=speaks.indptr.astype(np.int64),
        slots=speaks.indices.astype(np.int64),
        weights=speaks.data.astype(np.float64),
        counts=counts.astype(np.int64),
        profiles=profiles,
    )


def pack_profiles(*, starts: Ints, slots: Ints, live: Ints) -> bytes:
    """Return what the process reads."""
    buffer = io.BytesIO()
    for array in (starts, slots, live):
        np.save(buffer, array.astype("<i8"), allow_pickle=False)
    return buffer.getvalue()


def trained(content: bytes, neighbours: int) -> bytes:
    """Return the packed similarities of what `pack_profiles` packed."""
    source = io.BytesIO(content)
    starts, slots, live = (np.load(source, allow_pickle=False) for _ in range(3))
    return pack(fit(starts=starts, slots=slots, live=live, neighbours=neighbours).arrays())


def main() -> None:
    """Read profiles from the standard input, write similarities to the standard output."""
    os.nice(_NICENESS)
    sys.stdout.buffer.write(trained(sys.stdin.buffer.read(), int(sys.argv[1])))


if __name__ == "__main__":
    main()
