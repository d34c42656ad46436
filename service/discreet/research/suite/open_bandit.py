"""The Open Bandit Dataset (Saito et al. 2021): clicks on fashion items that were shown at random.

From `random/CAMPAIGN/CAMPAIGN.csv[.gz]` below the folder, or below `open-bandit-small` or
`open_bandit_dataset` in it. A context is the visitor's four hashed features, one-hot. Learners are
evaluated by replay: only where the answer is the item that was shown does the row count, and only
then is its click learned. A log knows no best answer, so there is no ceiling and no share of it.

A row counts once in as many as there are items, so the log is gone through several times, each time
in another order (bootstrapped replay, Mary, Preux and Nicol 2014).
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from pathlib import Path

import numpy as np

from discreet.errors import InvalidArgument
from discreet.research.suite.stretches import STRETCH, LoggedStretch, Places, Stretch
from discreet.research.worlds.environments import Floats, seeded
from discreet.research.worlds.files import read_text, subfolder

OPEN_BANDIT_FOLDERS = ("open-bandit-small", "open_bandit_dataset")
CAMPAIGNS = ("all", "men", "women")
FEATURES = tuple(f"user_feature_{number}" for number in range(4))


@dataclass(frozen=True, slots=True, eq=False)
class OpenBandit:
    """A campaign's log."""

    contexts: Floats
    shown: Places
    clicks: Floats
    items: int

    @property
    def dimensions(self) -> int:
        """Return how many values the four features have together."""
        return int(self.contexts.shape[1])

    @classmethod
    def load(cls, data: Path, campaign: str) -> "OpenBandit":
        """Read a campaign's uniformly random log."""
        return _load(data, campaign)

    def stretches(self, *, rounds: int, seed: int) -> Iterator[Stretch]:
        """Yield the rows in one random order after another."""
        rng = seeded("open bandit", seed)
        order = np.empty(0, dtype=np.intp)
        for _ in range(rounds // STRETCH):
            while len(order) < STRETCH:
                order = np.concatenate([order, rng.permutation(len(self.clicks))])
            rows, order = order[:STRETCH], order[STRETCH:]
            yield LoggedStretch(
                self.contexts[rows], np.arange(self.items), self.shown[rows], self.clicks[rows]
            )


@lru_cache(maxsize=4)
def _load(data: Path, campaign: str) -> OpenBandit:
    folder = subfolder(data, *OPEN_BANDIT_FOLDERS) / "random" / campaign
    plain, packed = folder / f"{campaign}.csv", folder / f"{campaign}.csv.gz"
    path = plain if plain.exists() else packed
    rows = list(csv.DictReader(StringIO(read_text(path))))
    if not rows:
        raise InvalidArgument("--data", f"{path} has no rows")
    try:
        shown = np.array([int(row["item_id"]) for row in rows], dtype=np.intp)
        clicks = np.array([float(row["click"]) for row in rows])
        shares = np.array([float(row["propensity_score"]) for row in rows])
        values = [[row[name] for name in FEATURES] for row in rows]
    except (KeyError, ValueError) as error:
        raise InvalidArgument("--data", f"{path.name} is not of Open Bandit: {error}") from None
    items = int(shown.max()) + 1
    if not np.allclose(shares, 1.0 / items):
        raise InvalidArgument("--data", f"{path.name}: choices must be uniformly random")
    columns = [sorted({row[at] for row in values}) for at in range(len(FEATURES))]
    place = {
        (at, value): column
        for column, (at, value) in enumerate(
            (at, value) for at, names in enumerate(columns) for value in names
        )
    }
    contexts = np.zeros((len(rows), len(place)))
    for row, features in enumerate(values):
        contexts[row, [place[at, value] for at, value in enumerate(features)]] = 1.0
    return OpenBandit(contexts=contexts, shown=shown, clicks=clicks, items=items)
