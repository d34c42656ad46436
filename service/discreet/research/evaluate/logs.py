"""A log to evaluate with: what was asked, shown and earned, a row a decision.

CSV (also .csv.gz), JSON lines (.jsonl, .jsonl.gz; the decision log of `discreet serve` is one) or
Parquet. docs/evaluate.md has the columns. Rows are kept in columns of numbers, contexts once each,
so that a million rows fit in a few hundred megabytes.
"""

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.documents import RecommenderDocument
from discreet.families.questions import Ask
from discreet.families.rewards import ANY_REWARD, RewardDocument
from discreet.research.evaluate.described import Described, described_by
from discreet.research.evaluate.rows import LogRow, open_rows
from discreet.research.worlds.environments import Floats

MOST_ROWS = 10_000_000
PLAIN_COLUMNS = ("item", "action", "reward", "propensity", "client", "time", "candidates")

Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How a log is read.

    `uniform` states that its choices were uniformly random, so that it needs no propensities.
    `missing` is the reward of a row without one; NaN leaves such rows out, and None refuses them
    unless the document says what silence counts as.
    """

    uniform: bool = False
    missing: float | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationLog:
    """Rows by time, or in the order of the file if it has no times.

    `actions` are positions in `items`. `offers` says which of the sets of positions in `offered`
    could be shown, -1 for the whole catalogue. `clients` are numbers; None if the log does not say
    who came. `times` are seconds, None if it does not say when.
    """

    items: tuple[str, ...]
    described: Described
    contexts: npt.NDArray[np.int32]
    actions: Places
    rewards: Floats
    propensities: Floats
    offers: npt.NDArray[np.int32]
    offered: Sequence[Places]
    clients: npt.NDArray[np.int32] | None
    times: Floats | None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rewards)

    def choices(self, rows: slice) -> Floats:
        """Return how many items could have been shown."""
        sizes = np.array([len(one) for one in self.offered] + [len(self.items)], dtype=np.float64)
        return sizes[self.offers[rows]]  # -1 is the last one

    def available(self, rows: slice) -> npt.NDArray[np.bool_]:
        """Return which items could be shown: a row each, a column an item."""
        allowed = np.ones((len(self.offered) + 1, len(self.items)), dtype=np.bool_)
        for place, positions in enumerate(self.offered):
            allowed[place] = False
            allowed[place, positions] = True
        return allowed[self.offers[rows]]

    def features(self, rows: slice) -> Floats:
        """Return what was asked as numbers, for a model of rewards."""
        return self.described.features(self.contexts[rows])

    def ask(self, recommender: str, row: int, *, only_logged: bool = False) -> Ask:
        """Return the row's question; with `only_logged`, for what was shown and nothing else."""
        candidates: Sequence[str] | None = None
        if only_logged:
            candidates = [self.items[self.actions[row]]]
        elif self.offers[row] >= 0:
            candidates = [self.items[at] for at in self.offered[self.offers[row]]]
        who = f"row {row}" if self.clients is None else f"client {self.clients[row]}"
        ask = Ask(recommender, who, candidates=candidates)
        return ask._replace(**self.described.fields(int(self.contexts[row])))


class _Reader:
    """Turns rows into columns; every complaint names the line and the column."""

    def __init__(self, document: RecommenderDocument, options: LogOptions) -> None:
        self.items = tuple(item.id for item in document.items if not item.hidden)
        if not self.items:
            raise InvalidArgument("--config", "the recommender has no items to recommend")
        self._position = {item: place for place, item in enumerate(self.items)}
        self._options = options
        # Rewards are mapped to [0, 1], and silence counts, as the document says.
        rewards: RewardDocument = getattr(document, "reward", ANY_REWARD)
        self._low, self._high = rewards.range
        self._missing = options.missing
        if self._missing is None and rewards.wait is not None:
            self._missing = rewards.default
        given = self._missing
        if given is not None and (given < self._low or given > self._high):
            span = f"{self._low:g} to {self._high:g}"
            raise InvalidArgument("--missing-reward", f"must be from {span}, as rewards are")
        self.described = described_by(document)
        self.contexts, self.offers, self.clients = array("i"), array("i"), array("i")
        self.actions = array("q")
        self.rewards, self.propensities, self.times = array("d"), array("d"), array("d")
        self.offered: list[Places] = []
        self._offer_of: dict[tuple[str, ...], int] = {}
        self._client_of: dict[str, int] = {}
        self.left_out = self.filled = 0

    def add(self, row: LogRow) -> None:
        reward = row.number("reward", self._low, self._high)
        if reward is None:
            reward = self._missing
            if reward is None:
                raise row.wrong(
                    "reward",
                    "is missing; say what such rows earned (--missing-reward 0), or leave them "
                    "out (--missing-reward skip), which is right only if chance left them out",
                )
            if math.isnan(reward):
                self.left_out += 1
                return
            self.filled += 1
        column = "item" if "item" in row.cells else "action"
        item = row.text(column)
        position = self._position.get(item or "")
        if position is None:
            raise row.wrong(column, f"{(item or '')[:100]!r} is not an item of the recommender")
        offer = self._offer(row, position)
        self.propensities.append(self._propensity(row, offer))
        self.contexts.append(self.described.add(row))
        self.offers.append(offer)
        self.actions.append(position)
        self.rewards.append((reward - self._low) / (self._high - self._low))
        client = row.text("client")
        if client is not None:
            self.clients.append(self._client_of.setdefault(client, len(self._client_of)))
        when = row.cells.get("time")
        if when not in (None, ""):
            self.times.append(_seconds(row, when))

    def _propensity(self, row: LogRow, offer: int) -> float:
        count = len(self.items) if offer < 0 else len(self.offered[offer])
        given = row.number("propensity", 0.0, 1.0)
        if self._options.uniform:
            if given is not None and not math.isclose(given, 1.0 / count, rel_tol=1e-3):
                raise row.wrong("propensity", f"is not 1/{count}: without --uniform it is used")
            return 1.0 / count
        if given is None:
            raise row.wrong(
                "propensity",
                "is missing: without the probability of what was shown nothing can be said about "
                "other choices; if every candidate was equally likely, say --uniform",
            )
        if given == 0.0:
            raise row.wrong("propensity", "must be greater than 0: it was shown")
        return given

    def _offer(self, row: LogRow, shown: int) -> int:
        names = row.texts("candidates")
        if names is None:
            return -1
        key = tuple(sorted(set(names)))
        known = self._offer_of.get(key)
        if known is None:
            places = [self._position[name] for name in key if name in self._position]
            self.offered.append(np.array(sorted(places), dtype=np.intp))
            known = self._offer_of[key] = len(self.offered) - 1
        if self.items[shown] not in key:
            raise row.wrong("candidates", "do not hold the item that was shown")
        return known

    def log(self, path: Path, ignored: Sequence[str]) -> EvaluationLog:
        count = len(self.rewards)
        if not count:
            raise InvalidArgument("--log", f"{path.name} has no rows")
        for name, cells in (("client", self.clients), ("time", self.times)):
            if 0 < len(cells) < count:
                raise InvalidArgument("--log", f"{path.name}: some rows have no {name}")
        notes = []
        if ignored:
            notes.append("columns that were not used: " + ", ".join(ignored))
        if self.filled:
            notes.append(f"{self.filled:,} rows without a reward count as {self._missing:g}")
        if (self._low, self._high) != (0.0, 1.0):
            notes.append(f"a reward of {self._low:g} is shown as 0, and one of {self._high:g} as 1")
        if self.left_out:
            notes.append(f"{self.left_out:,} rows without a reward were left out")
        times = np.frombuffer(self.times) if self.times else None
        order: Any = slice(None)
        if times is not None and (np.diff(times) < 0).any():
            order = np.argsort(times, kind="stable")
            notes.append("rows were put in the order of their times")
        return EvaluationLog(
            items=self.items,
            described=self.described,
            contexts=np.frombuffer(self.contexts, dtype=np.int32)[order],
            actions=np.frombuffer(self.actions, dtype=np.intp)[order],
            rewards=np.frombuffer(self.rewards)[order],
            propensities=np.frombuffer(self.propensities)[order],
            offers=np.frombuffer(self.offers, dtype=np.int32)[order],
            offered=self.offered,
            clients=np.frombuffer(self.clients, dtype=np.int32)[order] if self.clients else None,
            times=None if times is None else times[order],
            notes=tuple(notes),
        )


def read_log(path: Path, document: RecommenderDocument, options: LogOptions) -> EvaluationLog:
    """Return the log, or raise `InvalidArgument` naming the line and the column at fault."""
    reader = _Reader(document, options)
    ignored: list[str] = []
    for number, row in enumerate(_some(open_rows(path), options.most)):
        if number == 0:
            _require_columns(path, row.cells, reader.described.columns(row.cells))
            known = {*PLAIN_COLUMNS, *reader.described.columns(row.cells)}
            ignored = [name for name in row.cells if name not in known]
        reader.add(row)
    return reader.log(path, ignored)


def _some(rows: Iterator[LogRow], most: int | None) -> Iterator[LogRow]:
    for number, row in enumerate(rows):
        if number >= (most or MOST_ROWS):
            return
        yield row


def _require_columns(path: Path, cells: Mapping[str, Any], described: Sequence[str]) -> None:
    if "item" in cells and "action" in cells:
        raise InvalidArgument("--log", f"{path.name}: has both item and action; they are the same")
    needed = ["action" if "action" in cells else "item", "reward", *described]
    missing = [name for name in needed if name not in cells]
    if missing and missing != ["reward"]:
        there = ", ".join(cells)
        raise InvalidArgument(
            "--log", f"{path.name}: the column {missing[0]} is missing; there are: {there}"
        )


def _seconds(row: LogRow, when: Any) -> float:
    if isinstance(when, datetime):
        return when.replace(tzinfo=when.tzinfo or UTC).timestamp()
    try:
        seconds = float(when)
    except OverflowError:
        seconds = math.inf
    except (TypeError, ValueError):
        try:
            read = datetime.fromisoformat(str(when))
        except ValueError:
            raise row.wrong("time", "must be seconds since 1970, or 2026-01-31T12:00:00Z") from None
        return read.replace(tzinfo=read.tzinfo or UTC).timestamp()
    if not math.isfinite(seconds):
        raise row.wrong("time", "must be a finite number")
    return seconds
