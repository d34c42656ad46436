"""Pictures are made of the report's own numbers."""

from typing import Any

from discreet.research.suite.figures import SIDE_BY_SIDE, suite_figures


def report(worlds: int) -> dict[str, Any]:
    rows, curves = [], []
    for world in (f"world {number}" for number in range(worlds)):
        for answers in (None, 1.0, 2.0):
            for feedback in (None, 1.0):
                common = {
                    "world": world,
                    "learner": "p-dap",
                    "answers_epsilon": answers,
                    "feedback_epsilon": feedback,
                }
                rows.append({**common, "rounds": 2_000, "reward_late": 0.1 * (answers or 4.0)})
                numbers = {"rounds": [1_000, 2_000], "share": [0.5, 0.6], "reward": [0.2, 0.3]}
                curves.append({**common, **numbers})
    return {"rows": rows, "curves": curves}


def test_worlds_stand_side_by_side() -> None:
    figures = {figure.name: figure for figure in suite_figures(report(SIDE_BY_SIDE + 1))}
    assert len(figures["suite-private-1"].panels) == SIDE_BY_SIDE
    assert len(figures["suite-private-2"].panels) == 1
    (line,) = figures["suite-unprotected-1"].panels[0].lines
    assert (line.label, line.x, line.y) == ("p-dap", [1_000, 2_000], [0.5, 0.6])


def test_the_cost_of_both_dials() -> None:
    (figure,) = [one for one in suite_figures(report(1)) if one.name.startswith("privacy-cost")]
    answers, traffic = figure.panels
    assert [line.label for line in answers.lines] == ["feedback exact", "feedback 1"]
    assert list(answers.lines[0].x) == [1.0, 2.0]
    assert list(answers.lines[0].y) == [0.1, 0.2]
    assert [line.label for line in traffic.lines] == [
        "answers exact, feedback exact",
        "answers 2, feedback exact",
        "answers 2, feedback 1",
    ]


def test_nothing_is_drawn_of_nothing() -> None:
    assert suite_figures({"rows": [], "curves": []}) == []
