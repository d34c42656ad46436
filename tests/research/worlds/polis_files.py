"""Writes a conversation as Polis exports it."""

import gzip
from pathlib import Path

import numpy as np


def write_conversation(folder: Path, *, people: int, statements: int, packed: bool) -> None:
    rng = np.random.default_rng(5)
    camps = np.arange(people) % 2
    lines = ["participant,group-id,n-votes," + ",".join(map(str, range(statements)))]
    for person in range(people):
        stance = np.where(rng.random(statements) < 0.9, 1 - 2 * camps[person], 0)
        cells = ["" if rng.random() < 0.05 else str(vote) for vote in stance]
        lines.append(f"{person},{camps[person]},{statements}," + ",".join(cells))
    folder.mkdir(parents=True)
    text = ("\n".join(lines) + "\n").encode()
    name = "participants-votes.csv" + (".gz" if packed else "")
    (folder / name).write_bytes(gzip.compress(text) if packed else text)
