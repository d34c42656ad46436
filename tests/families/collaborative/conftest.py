"""The library, and what stands in for the training process."""

from typing import Any

import pytest

from discreet.families.collaborative.processes import TrainingProcess
from discreet.families.collaborative.similarities import ItemSimilarities
from discreet.families.collaborative.training import fit
from tests.families.collaborative.library import Library


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train in this process: another one takes a second to begin, and does the same."""

    def train(self: TrainingProcess, **given: Any) -> ItemSimilarities:
        return fit(**given)

    monkeypatch.setattr(TrainingProcess, "train", train)
