"""What a person writes for p-dap."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.families.p_dap.places import document


def test_both_dials_protect_by_default() -> None:
    privacy = document().privacy
    assert privacy.answers != "exact"
    assert privacy.feedback != "exact"


@pytest.mark.parametrize(
    "change",
    [
        {"privacy": {"answers": {"epsilon": 0}}},
        {"privacy": {"answers": "none"}},
        {"privacy": {"feedback": {"budget": {"epsilon": 1, "delta": 0}}}},
        {"privacy": {"epsilon": 1}},
        {"partition": {"segments": 1}},
        {"context": {"dimensions": 0}},
        {"vendors": [{"name": "v", "url": "http://v"}] * 2},
        {"vendors": [{"name": "v", "url": "ftp://v"}]},
        {"releases": {"seconds": 0}},
    ],
)
def test_what_cannot_be_used_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        document(**change)


def test_what_waiting_feedback_was_priced_for_is_fixed() -> None:
    one = document(privacy={"feedback": {"epsilon": 1.0}}).fixed()
    other = document(privacy={"feedback": {"epsilon": 2.0}}).fixed()
    exact = document(privacy={"feedback": "exact"}).fixed()
    assert len({str(each["privacy.feedback"]) for each in (one, other, exact)}) == 3
    same = document(privacy={"feedback": {"epsilon": 1.0, "budget": {"epsilon": 3.0}}}).fixed()
    assert same == one


def test_releases_become_rarer_with_age() -> None:
    releases = document(releases={"seconds": 2, "growth": 0.1, "longest": 50}).releases
    assert [releases.pause(age) for age in (0, 10, 100, 400, 10_000)] == [2, 2, 10, 40, 50]
