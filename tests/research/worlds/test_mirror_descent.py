"""The records that sparse mirror descent is played on."""

from pathlib import Path

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.mirror_descent.sparse import norms
from discreet.research.worlds.mirror_descent import movielens, social


def test_social_records_are_sparse_and_decided_by_few_features() -> None:
    world = social(3, records=4_000, dimension=1_000, interests=10)
    rows = world.rows
    assert (rows.lengths == 50).all()
    assert (np.diff(rows.indices.reshape(4_000, 50), axis=1) > 0).all()
    assert norms(rows).max() <= 1
    assert norms(rows).min() > 0.999
    # Labels are balanced, and the truth is right about 4 times in 5.
    assert world.majority < 0.55
    assert 0.75 < world.ceiling < 0.87
    assert 20 < world.norm < 70
    correlation = np.zeros(1_000)
    np.add.at(correlation, rows.indices, rows.steps * world.labels[rows.row_of])
    strongest = np.sort(np.abs(correlation))[::-1]
    # Ten features stand out from the chance of all others.
    assert strongest[9] > 1.3 * strongest[10]


def test_the_same_seed_gives_the_same_records() -> None:
    one, two, other = (
        social.__wrapped__(seed, records=200, dimension=400, interests=10) for seed in (1, 1, 2)
    )
    assert (one.rows.indices == two.rows.indices).all()
    assert (one.labels == two.labels).all()
    assert (one.rows.indices != other.rows.indices).any()


def test_a_world_needs_irrelevant_features() -> None:
    with pytest.raises(InvalidArgument, match="nonzeros"):
        social(0, records=10, dimension=60)


def test_movielens_ratings_are_crossed_with_their_users(tmp_path: Path) -> None:
    folder = tmp_path / "ml-1m"
    folder.mkdir()
    rng = np.random.default_rng(0)
    people = [
        f"{number}::{'FM'[number % 2]}::{(1, 18, 25)[number % 3]}::{number % 21}::0"
        for number in range(1, 41)
    ]
    (folder / "users.dat").write_text("\n".join(people) + "\n")
    films = [f"{film}::Film {film}::{'Drama|War' if film % 2 else 'Comedy'}" for film in range(30)]
    (folder / "movies.dat").write_text("\n".join(films) + "\n", encoding="latin-1")
    ratings = [
        f"{rng.integers(1, 41)}::{film}::{5 if film % 2 else rng.integers(1, 4)}::0"
        for film in range(30)
        for _ in range(40 - film)
    ]
    (folder / "ratings.dat").write_text("\n".join(ratings) + "\n")
    world = movielens(1, tmp_path, records=300)
    # Every fifth film of thirty is known: 6 films, 18 genres, 30 client features.
    assert world.dimension == 30 + 24 + 30 * 24
    assert len(world.labels) <= 300
    assert norms(world.rows).max() <= 1
    # Three client features, 2 or 3 of the item's, and their products.
    assert set(world.rows.lengths.tolist()) <= {3 + 2 * 4, 3 + 3 * 4}
    assert world.ceiling > 0.95, "the genre decides, and the comparator sees it"
    (folder / "movies.dat").write_text("x::y::z\n")
    with pytest.raises(InvalidArgument, match=r"movies\.dat"):
        movielens(2, folder, records=300)
