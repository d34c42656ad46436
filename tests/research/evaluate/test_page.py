"""The page says what was found, in words that follow from the figures, and stands alone."""

import re
from typing import Any

import pytest

from discreet.research.evaluate.page import headline, page


def interval(mean: float, half: float = 0.01) -> dict[str, float | None]:
    return {"mean": mean, "low": mean - half, "high": mean + half}


def policy(name: str, mean: float, **more: object) -> dict[str, Any]:
    return {
        "policy": name,
        "dr": interval(mean),
        "ips": interval(mean),
        "snips": interval(mean),
        "replay": None,
        "dr_last_quarter": interval(mean + 0.05),
        "effective_sample_size": 5_000.0,
        "reliable": True,
        "replay_rows": 0,
        "degraded_answers": 0.0,
        "feedback_not_learned": 0.0,
        **more,
    }


def found(over: float = 0.1, **main: object) -> dict[str, Any]:
    return {
        "recommender": "<films>",
        "algorithm": "contextual",
        "log": {"rows": 60_000, "items": 40, "clients": 900, "rate": None},
        "dials": {"answers": 0.5, "feedback": None},
        "refusals": [],
        "warnings": ["3 of 40 items were never shown"],
        "notes": ["columns that were not used: colour"],
        "policies": [policy("<films>", 0.4, **main), policy("most popular", 0.3)],
        "differences": [{"over": "most popular", **interval(over)}],
        "curve": [
            {
                "answers_epsilon": epsilon,
                "feedback_epsilon": None,
                "rows": 50_000,
                "dr": interval(mean),
                "dr_last_quarter": interval(mean),
            }
            for epsilon, mean in ((None, 0.5), (0.5, 0.4), (2.0, 0.45))
        ],
    }


def test_the_page_stands_alone_and_escapes_names() -> None:
    text = page(found())
    assert "<films>" not in text
    assert "&lt;films&gt;" in text
    assert not re.search(r"<script|https?://|<link|<img|@import", text)
    assert text.count("<svg") == 1 + 2
    for part in ("0.400", "3 of 40 items were never shown", "60,000 logged visits", "±0.010"):
        assert part in text
    assert "Without any protection a visit would earn 0.500" in text
    assert "as configured, with budgets that never run out, 0.400" in text


@pytest.mark.parametrize(
    ("over", "said"),
    [(0.1, "more than always"), (-0.1, "less than always"), (0.001, "cannot tell")],
)
def test_the_headline_follows_from_the_difference(over: float, said: str) -> None:
    assert said in headline(found(over))


def test_what_weakens_the_figure_is_said() -> None:
    text = page(found(reliable=False, degraded_answers=0.25, feedback_not_learned=0.5))
    assert "too little evidence" in text
    assert "25.0% of the answers were not personalised" in text
    assert "50.0% of the feedback was not learned" in text
    plain = page({**found(), "curve": []})
    assert "What privacy costs" not in plain
    assert "too little evidence" not in plain
