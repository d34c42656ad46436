"""Small logs whose truth is known: two kinds of visitors, and items that each kind likes."""

import csv
from pathlib import Path

import numpy as np

from discreet.families.documents import RecommenderDocument
from discreet.families.registration import read_document
from discreet.research.evaluate.logs import EvaluationLog, LogOptions, read_log

ITEMS = ("a", "b", "c", "d")
MEANS = np.array([[0.7, 0.2, 0.5, 0.1], [0.2, 0.7, 0.5, 0.1]])
"""What each kind of visitor likes; the best item for all of them is the third."""


def document(algorithm: str = "contextual", **fields: object) -> RecommenderDocument:
    """Return a recommender of these items."""
    privacy = {"answers": "exact", "feedback": "exact"}
    return read_document(
        {
            "algorithm": algorithm,
            "items": list(ITEMS),
            "context": {"dimensions": 1},
            "privacy": privacy,
            **fields,
        }
    )


def rows(count: int, *, seed: int = 0, law: np.ndarray | None = None) -> list[dict[str, object]]:
    """Return rows whose items were drawn by `law` (a row a kind), uniformly by default."""
    rng = np.random.default_rng(seed)
    law = np.full((2, len(ITEMS)), 1 / len(ITEMS)) if law is None else law
    made: list[dict[str, object]] = []
    for number in range(count):
        kind = int(rng.integers(2))
        item = int(rng.choice(len(ITEMS), p=law[kind]))
        made.append(
            {
                "context_0": kind,
                "item": ITEMS[item],
                "reward": int(rng.random() < MEANS[kind, item]),
                "propensity": law[kind, item],
                "client": f"client {rng.integers(count)}",
                "time": number / 10,
            }
        )
    return made


def write(path: Path, made: list[dict[str, object]], *without: str) -> Path:
    """Write rows as CSV, without some columns."""
    columns = [name for name in made[0] if name not in without]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(made)
    return path


def read(path: Path, *, uniform: bool = False, **options: object) -> EvaluationLog:
    """Read a log of these items."""
    return read_log(path, document(), LogOptions(uniform=uniform, **options))  # type: ignore[arg-type]


def log_of(folder: Path, count: int, *without: str, **options: object) -> EvaluationLog:
    """Return a log of so many rows."""
    return read(write(folder / "log.csv", rows(count, **options), *without))  # type: ignore[arg-type]
