"""The Open Bandit Dataset (Saito et al. 2021) as a world: fashion items, and very few clicks.

From `random/CAMPAIGN/CAMPAIGN.csv[.gz]` below the folder, or below `open-bandit-small` or
`open_bandit_dataset` in it, and from `bts` in the place of `random` if it is there. Neither policy
looked at the visitor, so who saw an item is chance in both.

Who comes: the visitors of the random log, equally likely, with their four hashed features, one-hot.

What they like: fitted, because replaying 10,000 rows with 80 items would leave 125 rows that count
and hardly a click. The chance of a click is the overall one times a factor of the item, one of
every feature's value, and one of every item and value together, in this order. A factor is the
clicks over those expected, shrunk to 1 as though it had seen `s` more clicks of `s` expected; `s`
is what makes the clicks likeliest (Poisson counts, Gamma factors: empirical Bayes). So items and
visitors differ as much as the log shows that they do, which is little in its small sample.
"""

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from pathlib import Path

import numpy as np

from discreet.errors import InvalidArgument
from discreet.research.suite.stretches import Places, Stretch
from discreet.research.suite.worlds import stretch_sizes
from discreet.research.worlds.environments import Floats, seeded
from discreet.research.worlds.files import read_text, subfolder

OPEN_BANDIT_FOLDERS = ("open-bandit-small", "open_bandit_dataset")
CAMPAIGNS = ("all", "men", "women")
FEATURES = tuple(f"user_feature_{number}" for number in range(4))
_STRENGTHS = np.geomspace(0.3, 300.0, 31)
_log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


@dataclass(frozen=True, slots=True, eq=False)
class ClickLog:
    """Rows of a log: the columns of `contexts` that are 1, the item shown, and the click."""

    values: Places
    shown: Places
    clicks: Floats


@dataclass(frozen=True, slots=True, eq=False)
class OpenBandit:
    """The world: a row a visitor in both."""

    contexts: Floats
    means: Floats

    @property
    def dimensions(self) -> int:
        """Return how many values the four features have together."""
        return int(self.contexts.shape[1])

    @property
    def items(self) -> int:
        """Return how many items are on offer."""
        return int(self.means.shape[1])

    @classmethod
    def load(cls, data: Path, campaign: str) -> "OpenBandit":
        """Read a campaign's logs."""
        return _load(data, campaign)

    def stretches(self, *, rounds: int, seed: int) -> Iterator[Stretch]:
        """Yield the rounds."""
        rng = seeded("open bandit", seed)
        for count in stretch_sizes(rounds):
            who = rng.integers(0, len(self.contexts), count)
            yield Stretch(
                self.contexts[who], np.arange(self.items), self.means[who], rng.random(count)
            )


def shrunken_factors(groups: Places, clicks: Floats, expected: Floats, count: int) -> Floats:
    """Return a factor for each of `count` groups of rows."""
    seen = np.bincount(groups, clicks, count)
    due = np.bincount(groups, expected, count)
    s = _STRENGTHS[:, None]
    likelihood = _log_gamma(s + seen) - _log_gamma(s) + s * np.log(s) - (s + seen) * np.log(s + due)
    best = _STRENGTHS[int(likelihood.sum(axis=1).argmax())]
    factors: Floats = (seen + best) / (due + best)
    return factors


@dataclass(frozen=True, slots=True, eq=False)
class ClickChances:
    """Fitted factors: of every item, of every value, and of both together."""

    overall: float
    items: Floats
    values: Floats
    pairs: Floats

    @classmethod
    def fit(cls, log: ClickLog, *, dimensions: int, items: int) -> "ClickChances":
        """Return the factors that the log supports."""
        clicks = log.clicks
        overall = (clicks.sum() + 0.5) / (len(clicks) + 1.0)
        expected = np.full(len(clicks), overall)
        of_items = shrunken_factors(log.shown, clicks, expected, items)
        expected *= of_items[log.shown]
        of_values, of_pairs = np.ones(dimensions), np.ones((items, dimensions))
        for column in log.values.T:
            of_values *= shrunken_factors(column, clicks, expected, dimensions)
            expected *= of_values[column]
        for column in log.values.T:
            pairs = log.shown * dimensions + column
            of_pairs *= shrunken_factors(pairs, clicks, expected, items * dimensions).reshape(
                items, dimensions
            )
            expected *= of_pairs[log.shown, column]
        return cls(float(overall), of_items, of_values, of_pairs)

    def at(self, values: Places) -> Floats:
        """Return every item's chance of a click for visitors with these values."""
        means = self.overall * self.items * self.values[values].prod(axis=1)[:, None]
        for column in values.T:
            means = means * self.pairs[:, column].T
        chances: Floats = np.clip(means, 0.0, 1.0)
        return chances


@lru_cache(maxsize=4)
def _load(data: Path, campaign: str) -> OpenBandit:
    root = subfolder(data, *OPEN_BANDIT_FOLDERS)
    rows = _rows(root / "random" / campaign, campaign)
    visitors = len(rows)
    if (root / "bts" / campaign).is_dir():
        rows += _rows(root / "bts" / campaign, campaign)
    shown = np.array([item for item, _, _ in rows], dtype=np.intp)
    clicks = np.array([click for _, click, _ in rows])
    place: dict[tuple[int, str], int] = {}
    values = np.array(
        [
            [place.setdefault((at, value), len(place)) for at, value in enumerate(features)]
            for _, _, features in rows
        ]
    )
    dimensions, items = len(place), int(shown.max()) + 1
    contexts = np.zeros((visitors, dimensions))
    contexts[np.arange(visitors)[:, None], values[:visitors]] = 1.0
    chances = ClickChances.fit(ClickLog(values, shown, clicks), dimensions=dimensions, items=items)
    return OpenBandit(contexts, chances.at(values[:visitors]))


def _rows(folder: Path, campaign: str) -> list[tuple[int, float, list[str]]]:
    """Return the item, the click and the visitor's features of every row."""
    plain, packed = folder / f"{campaign}.csv", folder / f"{campaign}.csv.gz"
    path = plain if plain.exists() else packed
    try:
        rows = [
            (int(row["item_id"]), float(row["click"]), [row[name] for name in FEATURES])
            for row in csv.DictReader(StringIO(read_text(path)))
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidArgument("--data", f"{path} is not of Open Bandit: {error}") from None
    if not rows:
        raise InvalidArgument("--data", f"{path} has no rows")
    return rows
