"""docs/shop.md: what is printed there runs, on a small MovieLens made up here."""

import random
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.cli import main

PAGE = Path(__file__).parent.parent / "docs" / "shop.md"
GENRES = ("Action", "Children's", "Comedy", "Drama", "Romance", "Sci-Fi")


def block(language: str, marker: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (found,) = [text for text in blocks if marker in text]
    return str(found)


def make_movielens(folder: Path) -> None:
    """Write 50 films and 40 people, each of whom likes one genre; in Latin-1, as the real one."""
    rng = random.Random(0)
    folder.mkdir()
    films = {str(n): GENRES[n % len(GENRES)] for n in range(1, 51)}
    lines = [f"{film}::Film d'été {film}::{genre}|Drama" for film, genre in films.items()]
    (folder / "movies.dat").write_text("\n".join(lines) + "\n", encoding="latin-1")
    people = [str(n) for n in range(1, 41)]
    lines = [f"{user}::{rng.choice('FM')}::{rng.choice((18, 25, 45))}::4::02460" for user in people]
    (folder / "users.dat").write_text("\n".join(lines) + "\n")
    lines = []
    for user in people:
        favourite = rng.choice(GENRES)
        for film in rng.sample(sorted(films), 30):
            stars = 5 if films[film] == favourite else rng.choice((1, 2, 3, 4))
            lines.append(f"{user}::{film}::{stars}::978300760")
    (folder / "ratings.dat").write_text("\n".join(lines) + "\n")


def test_a_newcomer_can_follow_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_movielens(tmp_path / "ml-1m")
    script = block("python", "random.seed")
    assert "200_000" in script
    (tmp_path / "make_log.py").write_text(script.replace("200_000", "800"), encoding="utf-8")
    (tmp_path / "shop.yaml").write_text(block("yaml", "recommenders:"))
    commands = block("sh", "discreet evaluate").splitlines()
    (make,) = [line for line in commands if line.startswith("python")]
    subprocess.run([sys.executable, *shlex.split(make)[1:]], cwd=tmp_path, check=True, timeout=600)
    (evaluate,) = [line for line in commands if line.startswith("discreet evaluate")]
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(evaluate)[1:]) == 0
    shown = capsys.readouterr().out
    assert "shelf: 800 rows, 40 items" in shown
    assert "most popular" in shown
    assert "a visit" in (tmp_path / "shop.html").read_text(encoding="utf-8")
