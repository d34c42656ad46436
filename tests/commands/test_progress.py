"""Progress: a bar on a terminal, nothing elsewhere."""

import pytest

from discreet.commands.progress import progress_bar


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("name") as watch:
        watch(1, 2, "half")
    shown = capsys.readouterr()
    assert shown.out == shown.err == ""
