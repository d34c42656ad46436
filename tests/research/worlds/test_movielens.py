"""MovieLens-1M as a world: read from files, modelled as the page says, and mistakes named."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.worlds.movielens import MovieLens

USERS = ["1::F::1::0::11111", "2::M::56::20::22222", "3::F::1::0::33333"]
RATINGS = [
    *("1::10::5", "2::10::4", "3::10::3"),
    *("1::20::1", "2::20::5"),
    *("1::30::4",),
]


def write(folder: Path, users: list[str] = USERS, ratings: list[str] = RATINGS) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "users.dat").write_text("\n".join(users) + "\n", encoding="latin-1")
    content = ("\n".join(ratings) + "\n").encode("latin-1")
    (folder / "ratings_notime.dat.gz").write_bytes(gzip.compress(content))
    return folder


def test_people_and_films_are_those_of_the_files(tmp_path: Path) -> None:
    write(tmp_path / "ml-1m")
    world = MovieLens.load(tmp_path, vendors=2, films=2)
    assert world.catalogues == (("film 10",), ("film 20",))
    assert world.people.tolist() == [[0, 0, 0], [1, 1, 1], [0, 0, 0]]
    block = next(world.arrivals(rounds=50, seed=1))
    assert set(map(tuple, block.contexts.tolist())) == {(0, 0, 0), (1, 1, 1)}
    assert (block.means[block.contexts[:, 0] == 1] == world.table[1]).all()


def test_means_are_shrunk_twice(tmp_path: Path) -> None:
    world = MovieLens.load(write(tmp_path), vendors=1, films=1)
    # Film 10: liked by 1 and 2, not by 3; users 1 and 3 are one group, 2 another.
    overall = 2.5 / 4
    women = (1 + 20 * overall) / 22
    men = (1 + 20 * overall) / 21
    women, men = (1 + 20 * women) / 22, (1 + 20 * men) / 21
    assert world.table[:, 0] == pytest.approx([women, men, women])


@pytest.mark.parametrize(
    ("users", "ratings", "message"),
    [
        (["1::X::1::0::1"], RATINGS, "users.dat line 1"),
        (["1::F"], RATINGS, "users.dat line 1"),
        (USERS, ["1::10::5", "1::10"], "line 2"),
        (USERS, ["1::10::5", "1::ten::5"], "line 2"),
    ],
)
def test_a_broken_file_is_named_with_its_line(
    tmp_path: Path, users: list[str], ratings: list[str], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        MovieLens.load(write(tmp_path, users, ratings), vendors=1, films=1)


def test_a_folder_without_the_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"users\.dat"):
        MovieLens.load(tmp_path)
    write(tmp_path)
    (tmp_path / "ratings_notime.dat.gz").unlink()
    with pytest.raises(InvalidArgument, match=r"ratings\.dat"):
        MovieLens.load(tmp_path, vendors=2, films=2)


def test_the_real_one(data_set: Callable[[str], Path]) -> None:
    world = MovieLens.load(data_set("ml-1m"), vendors=4, films=20)
    assert world.people.shape == (6_040, 3)
    assert world.table.shape == (6_040, 20)
    # The most rated film of all, American Beauty, is the first vendor's first.
    assert world.catalogues[0][0] == "film 2858"
    assert 0.9 < np.mean(world.table.max(axis=1)) < 0.97
