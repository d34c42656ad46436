"""The reproduction of CDP-FCLUB-DC with few rounds: every part, rows and pictures."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from discreet.research.reproduce.fclub import STUDIES, planned, reproduce
from discreet.research.reproduce.papers import ReproductionOptions
from discreet.research.reproduce.tables import Reproduction

ROUNDS = 100


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synthetic ratings and listening in the files' own shape: 60 users, 30 things."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    liked = [(user, thing) for user in range(60) for thing in range(30) if rng.random() < 0.4]
    films, music = folder / "ml-1m", folder / "lastfm"
    films.mkdir()
    music.mkdir()
    ratings = "\n".join(f"{user + 1}::{thing + 1}::5" for user, thing in liked) + "\n"
    (films / "ratings_notime.dat.gz").write_bytes(gzip.compress(ratings.encode()))
    heard = "\n".join(f"{user}\t{thing}\t9" for user, thing in liked)
    (music / "user_artists.dat").write_text(f"userID\tartistID\tweight\n{heard}\n")
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
    assert names >= {
        *((name, None, None) for name in ("linucb", "club", "sclub", "fclub", "fclub-dc")),
        *((name, None, None) for name in ("homo", "homo-dc", "no sharing")),
        ("cdp-fclub-dc", None, 0.1),
        ("fclub", "person", 1e-6),
        ("fclub", "observation", 1e-6),
        ("fclub", "observation", 0.1),
    }
    for row in found.results:
        assert list(row) == [
            *("algorithm", "reading", "epsilon", "delta", "trigger", "protects"),
            *("regret_mean", "regret_std", "communications", "ms_per_round"),
        ]
        assert 0 < row["regret_mean"] < ROUNDS


def test_every_figure_and_table_is_there(found: Reproduction) -> None:
    names = {figure.name for figure in found.figures}
    assert names >= {
        *("figure-2a-blocks", "figure-2a-mixed", "figure-2b-movielens", "figure-2b-last.fm"),
        *("figure-3b", "figure-4", "sharing-pays"),
    }
    titles = " ".join(table.title for table in found.tables)
    assert "Table 3" in titles
    assert found.published["table_3_ms_per_round"]["fclub"] == 58.870
    assert {row["reading"] for row in found.details["mixed"]} == {"published", "served"}


def test_notes_compare_noise_with_the_published(found: Reproduction) -> None:
    assert any("published, (1, 0.1), 10 levels: 43.8" in note for note in found.notes)


def test_full_plan_has_every_parameter_study() -> None:
    names = {part.name for part in planned(ReproductionOptions())}
    for study, (_, values) in STUDIES.items():
        assert {f"{study}: {value:g}" for value in values} <= names
    assert max(part.seeds for part in planned(ReproductionOptions())) == 5
