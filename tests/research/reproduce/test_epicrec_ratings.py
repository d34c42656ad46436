"""Factors over ratings: what people differ by is found, and what says nothing changes nothing."""

import numpy as np
import pytest

from discreet.research.reproduce.epicrec_ratings import predict_by_factors, public_means
from discreet.research.reproduce.epicrec_server import RatedPairs


def ratings(seed: int) -> tuple[RatedPairs, RatedPairs]:
    """60 people, half of whom like even items and half of whom odd ones; a fifth is asked."""
    rng = np.random.default_rng(seed)
    rows, columns = (each.reshape(-1) for each in np.meshgrid(np.arange(60), np.arange(40)))
    likes = np.where(rows % 2 == columns % 2, 4.5, 1.5)
    stars = np.clip(likes + rng.normal(scale=0.3, size=len(rows)), 1, 5)
    asked = rng.random(len(rows)) < 0.2
    every = RatedPairs(rows, columns, stars)
    return every.where(~asked), every.where(asked)


def test_tastes_are_found() -> None:
    sent, asked = ratings(0)
    means = public_means(sent, 40)
    error = np.abs(predict_by_factors(sent, asked, means, people=60) - asked.stars).mean()
    assert error < 0.5 * np.abs(means[asked.columns] - asked.stars).mean()


def test_public_means_say_that_somebody_is_like_everybody() -> None:
    sent, asked = ratings(1)
    means = public_means(sent, 40)
    empty = RatedPairs(sent.rows, sent.columns, means[sent.columns])
    assert predict_by_factors(empty, asked, means, people=60) == pytest.approx(means[asked.columns])


def test_nothing_sent_gives_the_means() -> None:
    sent, asked = ratings(2)
    means = public_means(sent, 40)
    nothing = sent.where(np.zeros(len(sent.rows), dtype=np.bool_))
    found = predict_by_factors(nothing, asked, means, people=60)
    assert found == pytest.approx(means[asked.columns])


def test_means_are_shrunk() -> None:
    rated = RatedPairs(np.arange(2), np.zeros(2, dtype=np.int64), np.array([5.0, 5.0]))
    assert public_means(rated, 3) == pytest.approx([5.0, 5.0, 5.0])
    mixed = RatedPairs(np.arange(4), np.array([0, 0, 1, 1]), np.array([5.0, 5.0, 1.0, 1.0]))
    assert public_means(mixed, 2) == pytest.approx([3 + 4 / 12, 3 - 4 / 12])
