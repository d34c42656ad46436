"""Readers of ratings, and the crowd that stands in for them."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.calibration import calibrate
from discreet.families.collaborative.on_device.catalogue import PERTURBED, scope_of
from discreet.research.worlds.rated import crowd, movielens, yelp

FindData = Callable[[str], Path]


def write_films(folder: Path) -> None:
    (folder / "ml-1m").mkdir()
    (folder / "ml-1m" / "movies.dat").write_text(
        "1::One (1999)::Drama|War\n7::Seven (1995)::Crime\n9::Nine (2009)::Drama|War\n"
    )
    (folder / "ml-1m" / "ratings.dat").write_text("5::1::4::0\n5::7::2::0\n8::9::5::0\n")


def test_films_are_read(tmp_path: Path) -> None:
    write_films(tmp_path)
    rated = movielens(tmp_path)
    assert rated.catalogue.items == ("1", "7", "9")
    assert rated.catalogue.categories == ("Crime", "Drama", "War")
    assert rated.people == 2
    assert rated.rows.tolist() == [0, 0, 1]
    assert rated.columns.tolist() == [0, 1, 2]
    assert rated.stars.tolist() == [4, 2, 5]
    assert rated.typical == 2


def test_a_broken_film_is_named_by_its_line(tmp_path: Path) -> None:
    write_films(tmp_path)
    (tmp_path / "ml-1m" / "movies.dat").write_text("1::One::Drama\n2::Two\n")
    with pytest.raises(InvalidArgument, match="line 2"):
        movielens(tmp_path)


def write_businesses(folder: Path, categories: str, ratings: str) -> None:
    (folder / "yelp-hin").mkdir()
    for name, text in (("business_category", categories), ("user_business", ratings)):
        (folder / "yelp-hin" / f"{name}.dat.gz").write_bytes(gzip.compress(text.encode()))


def test_businesses_of_the_largest_categories_are_read(tmp_path: Path) -> None:
    # Categories 1 to 21 have two businesses each, category 22 has one that has no other.
    pairs = [(10 + category, category) for category in range(1, 22)]
    pairs += [(50 + category, category) for category in range(1, 22)] + [(99, 22)]
    text = "".join(f"{business}\t{category}\t1\n" for business, category in pairs)
    write_businesses(tmp_path, text, "1\t11\t5\n1\t99\t4\n2\t52\t3\n")
    rated = yelp(tmp_path)
    assert len(rated.catalogue.categories) == 21
    assert "99" not in rated.catalogue.items
    assert len(rated.stars) == 2  # the rating of 99 is left out
    assert rated.people == 2


def test_a_broken_table_is_named(tmp_path: Path) -> None:
    write_businesses(tmp_path, "1\t2\n", "")
    with pytest.raises(InvalidArgument, match=r"business_category\.dat\.gz"):
        yelp(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"movies\.dat"):
        movielens(tmp_path)


def test_the_crowd_is_the_same_for_the_same_seed_and_has_tastes() -> None:
    one, same, other = crowd(seed=1), crowd(seed=1), crowd(seed=2)
    assert np.array_equal(one.columns, same.columns)
    assert np.array_equal(one.stars, same.stars)
    assert len(one.columns) != len(other.columns) or not np.array_equal(one.columns, other.columns)
    assert set(one.stars.tolist()) == {1, 2, 3, 4, 5}
    # Items that a person met share categories more than items drawn from everybody's do.
    incidence = one.catalogue.incidence[
        [one.catalogue.group_of[item] for item in one.catalogue.items]
    ].astype(float)
    profiles = np.array(
        [incidence[one.columns[one.rows == who]].mean(axis=0) for who in range(one.people)]
    )
    lengths = np.bincount(one.rows)
    expected = profiles.mean(axis=0) * (1 - profiles.mean(axis=0)) / lengths.mean()
    assert (profiles.var(axis=0) > 2 * expected).mean() > 0.5


def test_movielens_has_the_published_shape(data_set: FindData) -> None:
    rated = movielens(data_set("ml-1m").parent)
    assert (len(rated.catalogue.items), rated.people, len(rated.stars)) == (3_883, 6_040, 1_000_209)
    assert len(rated.catalogue.members) == 301
    assert len(scope_of(rated.catalogue, PERTURBED).rows) == 101
    assert calibrate(catalogue=rated.catalogue, epsilon=1.0).mean == pytest.approx(4.5365, abs=5e-5)


def test_yelp_has_the_stated_shape(data_set: FindData) -> None:
    rated = yelp(data_set("yelp-hin").parent)
    assert len(rated.catalogue.items) == 13_330
    assert len(rated.catalogue.categories) == 21
    assert rated.people <= 16_239
