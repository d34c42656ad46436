"""Last.fm (HetRec 2011): which of the most heard artists each user listened to.

`user_artists.dat`, plain or compressed, has a line for each artist that a user heard.
The table has a row for each user and a column for each of the artists that most users heard.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.research.worlds.environments import Floats
from discreet.research.worlds.files import read_text, subfolder

_FILES = ("user_artists.dat", "user_artists.dat.gz")
_FOLDERS = ("hetrec2011-lastfm-2k", "lastfm")


def listened(folder: Path, *, artists: int = 1_000) -> Floats:
    """Return 1 where a user listened to an artist, 0 elsewhere."""
    folder = subfolder(folder, *_FOLDERS)
    path = next((folder / name for name in _FILES if (folder / name).exists()), None)
    if path is None:
        raise InvalidArgument("data", f"{folder} has none of {', '.join(_FILES)}")
    return popular(_pairs(path), columns=artists)


def _pairs(path: Path) -> npt.NDArray[np.int64]:
    rows = [line.split("\t")[:2] for line in read_text(path).splitlines()[1:] if line]
    try:
        return np.array(rows, dtype=np.int64).reshape(len(rows), 2)
    except ValueError as error:
        raise InvalidArgument("data", f"{path} cannot be read: {error}") from None


def popular(pairs: npt.NDArray[np.int64], *, columns: int) -> Floats:
    """Return the table of the most frequent second entries, a row for each first entry."""
    if len(pairs) == 0:
        raise InvalidArgument("data", "the table is empty")
    numbers, counts = np.unique(pairs[:, 1], return_counts=True)
    kept = np.sort(numbers[np.argsort(-counts, kind="stable")][:columns])
    pairs = pairs[np.isin(pairs[:, 1], kept)]
    _, rows = np.unique(pairs[:, 0], return_inverse=True)
    table = np.zeros((int(rows.max()) + 1, len(kept)))
    table[rows.reshape(-1), np.searchsorted(kept, pairs[:, 1])] = 1.0
    return table
