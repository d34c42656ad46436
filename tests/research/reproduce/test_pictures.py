"""Figures are drawn as small files."""

from dataclasses import replace
from pathlib import Path

from discreet.research.reproduce.pictures import can_draw, draw
from discreet.research.reproduce.tables import Figure, Line, Panel


def test_pictures_are_small_png_files(tmp_path: Path) -> None:
    assert can_draw()
    line = Line("a", [1, 2, 3], [1.0, 4.0, 9.0], [0.1, 0.2, 0.3])
    panels = [Panel("p", "x", "y", [line] * 9, log_x=True), Panel("q", "x", "y", [line])]
    (path,) = draw([Figure("f", "title", panels)], tmp_path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) < 200_000


def test_published_numbers_do_not_look_like_ours(tmp_path: Path) -> None:
    line = Line("a", [1, 2, 3], [1.0, 4.0, 9.0])
    pictures = []
    for name, second in (("ours", line), ("published", replace(line, published=True))):
        figure = Figure(name, "title", [Panel("p", "x", "y", [line, second])])
        (path,) = draw([figure], tmp_path)
        pictures.append(path.read_bytes())
    assert pictures[0] != pictures[1]
