"""Figures 2 to 5, with the two numbers that the paper prints."""

import numpy as np
import pytest

from discreet.research.reproduce.mirror_descent_figures import figures_of
from discreet.research.reproduce.mirror_descent_settings import MirrorOutcome, settings
from discreet.research.reproduce.mirror_descent_trials import MirrorRun


def test_what_the_paper_prints_is_drawn_in() -> None:
    rounds = np.arange(1, 5) * 100
    done = rounds.astype(np.float64)
    run = MirrorRun(rounds, done, 0.6 * done, 1.0, 1.0, 0.2, 7, 1.0)
    found = figures_of([MirrorOutcome(one, (run,)) for one in settings(100.0)], learns=100.0)
    assert [figure.name for figure in found] == [f"figure-{n}" for n in (2, 3, 4, 5)]
    lines = {
        figure.name: [line for panel in figure.panels for line in panel.lines] for figure in found
    }
    for many in lines.values():
        assert any(line.label.startswith("published") for line in many)
        assert any(line.label.startswith("served") for line in many)
    (sparsity,) = [line for line in lines["figure-4"] if line.published]
    assert sparsity.y == pytest.approx([1.18 * 0.6] * 2)
    (nodes,) = [line for line in lines["figure-5"] if line.published]
    assert nodes.y == pytest.approx([0.6, 0.56, 0.52, 0.48])
    assert not any(line.published for line in lines["figure-2"] + lines["figure-3"])
