"""What a node's document may say, and what must not change in it."""

from typing import Any

import pytest

from discreet.families.mirror_descent.document import MirrorDescentDocument
from tests.families.mirror_descent.nodes import node


def plain(**changes: Any) -> MirrorDescentDocument:
    fields = {"algorithm": "mirror-descent", "features": {"dimension": 10}, **changes}
    return MirrorDescentDocument.model_validate(fields)


def test_both_dials_are_on_unless_the_document_turns_them_off() -> None:
    privacy = plain().privacy
    assert privacy.answers != "exact"
    assert privacy.feedback != "exact"
    off = plain(privacy={"answers": "exact", "feedback": "exact"}).privacy
    assert (off.answers, off.feedback) == ("exact", "exact")


def test_pauses_double_and_end_at_a_day_also_in_a_document_that_says_less() -> None:
    releases = plain(releases={"seconds": 10}).releases
    assert [releases.pause(age) for age in (0.0, 10.0, 1_000.0, 1e6)] == [10, 10, 1_000, 86_400]


@pytest.mark.parametrize(
    "changes",
    [
        {"features": {"dimension": 5, "clients": 2}},
        {"features": {"clients": 2}},
        {"features": {"clients": 10_000, "items": 10_000}},
        {"features": {"dimension": 2_000_000}},
        {"privacy": {"feedback": {"budget": {"epsilon": 1.0, "delta": 0.0}}}},
        {"privacy": {"feedback": "none"}},
        {"privacy": {"epsilon": 1.0}},
        {"items": [{"id": "a", "features": [1.0, 2.0]}]},
        {"items": [{"id": "a", "categories": ["A"]}]},
        {"neighbours": [{"name": "b", "url": "http://b"}] * 2},
        {"broadcasts": {"records": 5}},
    ],
)
def test_documents_that_cannot_be_served_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        plain(**changes)


@pytest.mark.parametrize(
    "change",
    [
        {"features": {"dimension": 20}},
        {"features": {"clients": 2, "items": 3}},
        {"learning": {"clip": 2.0}},
        {"privacy": {"feedback": {"epsilon": 2.0}}},
        {"privacy": {"feedback": {"delta": 1e-7}}},
        {"privacy": {"feedback": "exact"}},
    ],
)
def test_what_sums_and_noise_depend_on_is_fixed(change: dict[str, Any]) -> None:
    assert node(**change).fixed() != node().fixed()


@pytest.mark.parametrize(
    "change",
    [
        {"privacy": {"feedback": {"budget": {"epsilon": 2.0}}}},
        {"privacy": {"answers": {"epsilon": 2.0}}},
        {"learning": {"truncation": 1.0, "ridge": 0.01}},
        {"releases": {"growth": 0.0}},
        {"exploration": {"rate": 0.5}},
        {"neighbours": [{"name": "b", "url": "http://b"}]},
    ],
)
def test_everything_else_may_change(change: dict[str, Any]) -> None:
    assert node(**change).fixed() == node().fixed()
