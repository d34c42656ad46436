"""Results as plain data."""

import json

from discreet.research.reproduce.tables import Reproduction


def test_the_summary_is_what_programs_read() -> None:
    found = Reproduction(
        name="paper",
        seeds=2,
        results=[{"regret_mean": 1.0}],
        published={"table": 3},
        details={"rounds": 9},
        extras={"example": [1]},
    )
    summary = found.summary()
    assert list(summary) == ["name", "seeds", "quick", "claims", "results", "published", "example"]
    assert json.loads(json.dumps(summary)) == summary
