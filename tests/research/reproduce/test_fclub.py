"""The reproduction of CDP-FCLUB-DC with few rounds: every part, rows and pictures."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from discreet.research.reproduce.fclub import (
    ALONE,
    EVERYBODY,
    PROGRAMMED,
    STUDIES,
    planned,
    reproduce,
)
from discreet.research.reproduce.fclub_claims import DISTINCT, MOVIELENS
from discreet.research.reproduce.papers import ReproductionOptions
from discreet.research.reproduce.tables import Reproduction

ROUNDS = 100


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synthetic ratings in the file's own shape: 60 users, 30 films."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    liked = [(user, thing) for user in range(60) for thing in range(30) if rng.random() < 0.4]
    films = folder / "ml-1m"
    films.mkdir()
    ratings = "\n".join(f"{user + 1}::{thing + 1}::5" for user, thing in liked) + "\n"
    (films / "ratings_notime.dat.gz").write_bytes(gzip.compress(ratings.encode()))
    return folder


@pytest.fixture(scope="module")
def found(data: Path) -> Reproduction:
    seen: list[tuple[int, int]] = []
    options = ReproductionOptions(quick=True, seeds=1, rounds=ROUNDS, data=data, processes=1)
    result = reproduce(options, lambda done, total, what: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    return result


def test_rows_are_those_that_programs_read(found: Reproduction) -> None:
    names = {(row["algorithm"], row["protects"], row["delta"]) for row in found.results}
    assert names == {
        *((one.algorithm, None, one.delta) for one in (*EVERYBODY, *PROGRAMMED, ALONE)),
        ("fclub", "person", 1e-6),
        ("fclub", "observation", 1e-6),
    }
    for row in found.results:
        assert list(row) == [
            *("algorithm", "reading", "epsilon", "delta", "trigger", "protects", "rounds"),
            *("regret_mean", "regret_std", "communications", "ms_per_round"),
        ]
        assert 0 < row["regret_mean"] < row["rounds"] == ROUNDS


def test_every_figure_and_table_is_there(found: Reproduction) -> None:
    names = {figure.name for figure in found.figures}
    assert names == {
        *("figure-2a-blocks", "figure-2a-mixed", "figure-2b-movielens-4-tastes"),
        *("figure-2b-movielens", "figure-3", "figure-4"),
        *("published-and-ours", "sharing-pays"),
    }
    titles = " ".join(table.title for table in found.tables)
    assert "Table 3, synthetic" in titles
    assert "Table 3, MovieLens" in titles
    assert {row["reading"] for row in found.details["mixed"]} == {"published", "served"}


def test_claims_are_those_of_every_figure_table_and_theorem(found: Reproduction) -> None:
    assert found.quick
    where = " ".join(claim.where for claim in found.claims)
    for one in (
        *(f"figure {name}" for name in ("2a", "2b", "3a", "3b", "3c", "3d", "3e", "4a", "4b")),
        *("table 3, synthetic", "table 3, MovieLens"),
        *(f"theorem {number}" for number in (1, 2, 3)),
    ):
        assert one in where
    assert all(all(claim.row().values()) for claim in found.claims)


def test_the_quick_run_makes_the_same_claims_without_data() -> None:
    options = ReproductionOptions(quick=True, seeds=1, rounds=ROUNDS, processes=1)
    assert not any(part.name in (MOVIELENS, DISTINCT) for part in planned(options))
    assert [part.name for part in planned(options)] == [
        part.name for part in planned(ReproductionOptions())
    ]


def test_notes_compare_noise_with_the_published(found: Reproduction) -> None:
    assert any("published, (1, 0.1), 10 levels: 43.8" in note for note in found.notes)


def test_full_plan_has_every_parameter_study() -> None:
    names = {part.name for part in planned(ReproductionOptions())}
    for study, (_, values) in STUDIES.items():
        assert {f"{study}: {value:g}" for value in values} <= names
    assert max(part.seeds for part in planned(ReproductionOptions())) == 3
