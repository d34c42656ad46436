"""MovieLens as a world of the suite."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.suite.film_ratings import FilmRatings, FilmTables, complete


def write_large(folder: Path) -> Path:
    """Write 40 users in the form of MovieLens-1M: women like film 1, men film 2."""
    folder.mkdir()
    (folder / "movies.dat").write_text("1::A (1990)::Comedy\n2::B (1991)::Drama\n3::C::Drama|War\n")
    users, ratings = [], []
    for user in range(1, 41):
        woman = user % 2
        users.append(f"{user}::{'F' if woman else 'M'}::{25 if user < 20 else 56}::{user % 21}::1")
        ratings += [f"{user}::1::{5 if woman else 1}", f"{user}::2::{1 if woman else 5}"]
        if user <= 10:
            ratings.append(f"{user}::3::{5 if woman else 2}")
    (folder / "users.dat").write_text("\n".join(users) + "\n")
    (folder / "ratings_notime.dat.gz").write_bytes(gzip.compress("\n".join(ratings).encode()))
    return folder.parent


def test_the_larger_set_is_read(tmp_path: Path) -> None:
    world = FilmRatings.load(write_large(tmp_path / "ml-1m"), "ml-1m")
    assert (world.dimensions, world.items) == (2 + 21 + 3, 3)
    assert world.contexts[:2, 0].tolist() == [0.0, 1.0]  # F, M
    assert world.contexts[0, 1] == pytest.approx(2 / 6)
    (stretch,) = world.stretches(rounds=1_000, seed=1)
    assert stretch.contexts.shape == (1_000, 26)
    women = world.contexts[:, 0] == 0.0
    means = world.means
    assert means[women, 0].mean() > 0.65 > 0.35 > means[~women, 0].mean()


def test_genres_are_told_by_films_that_are_not_on_offer() -> None:
    tables = FilmTables(
        people=np.zeros((2, 1)),
        genres=np.eye(3),
        rows=np.array([0, 1, 0, 1, 0]),
        columns=np.array([0, 0, 1, 1, 2]),
        liked=np.array([1.0, 0.0, 1.0, 0.0, 1.0]),
    )
    world = FilmRatings.of(tables, films=2)
    # Films 0 and 1 are on offer; the only rating that tells about genres is that of film 2.
    np.testing.assert_array_equal(world.contexts[:, 1:3], 0.5)
    assert world.contexts[0, 3] > 0.5
    assert world.contexts[1, 3] == 0.5


def test_completion_finds_a_hidden_taste() -> None:
    """Of a rank-one table three quarters are shown; the rest is told with error below 0.25."""
    rng = np.random.default_rng(2)
    taste = np.sign(rng.standard_normal(300))
    truth = 0.5 + 0.4 * taste[:, None] * np.tile([1.0, -1.0], 10)[None, :]
    shown = (rng.random(truth.shape) < 0.75).astype(float)
    liked = shown * (rng.random(truth.shape) < truth)
    found = complete(shown, liked)
    hidden = shown == 0
    assert np.abs(found - truth)[hidden].mean() < 0.25
    assert np.corrcoef(found[hidden], truth[hidden])[0, 1] > 0.8


def test_a_file_that_is_not_movielens_is_refused(tmp_path: Path) -> None:
    data = write_large(tmp_path / "ml-1m")
    (data / "ml-1m" / "users.dat").write_text("1::X::25::3::1\n")
    with pytest.raises(InvalidArgument, match="line 1: not a user"):
        FilmRatings.load(data, "ml-1m")
    (tmp_path / "ml-100k").mkdir()
    for name in ("u.occupation", "u.user", "u.item", "u.data"):
        (tmp_path / "ml-100k" / name).write_text("nothing of the kind\n")
    with pytest.raises(InvalidArgument, match="is not MovieLens-100K"):
        FilmRatings.load(tmp_path, "ml-100k")


def test_movielens_100k_itself(data_set: Callable[[str], Path]) -> None:
    world = FilmRatings.load(data_set("ml-100k").parent, "ml-100k")
    assert (world.dimensions, world.items) == (2 + 21 + 18, 50)
    assert len(world.contexts) == 943
    # People differ: the best film for each is better than the best one for all.
    assert world.means.max(axis=1).mean() > 1.05 * world.means.mean(axis=0).max()
