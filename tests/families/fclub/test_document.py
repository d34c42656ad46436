"""Documents: one role each, the two dials, and what cannot change later."""

from typing import Any

import pytest
from pydantic import ValidationError

from discreet.families.fclub.document import FederatedClustersDocument
from tests.families.fclub.servers import HUB, local, merging


def test_a_person_is_protected_unless_the_document_says_otherwise() -> None:
    document = FederatedClustersDocument.model_validate(
        {"algorithm": "fclub", "role": "local", "dimensions": 3}
    )
    privacy = document.privacy
    assert (privacy.protects, privacy.answers) == ("person", "exact")
    assert privacy.feedback != "exact"
    assert (privacy.feedback.epsilon, privacy.feedback.budget.epsilon) == (1.0, 8.0)
    assert document.global_server is None


@pytest.mark.parametrize(
    "fields",
    [
        {"items": [{"id": "a", "features": [0.1, 0.1]}]},
        {"norms": "scale"},
        {"global_server": HUB},
        {"sharing": {"first_update": 5}},
        {"privacy": {"feedback": "exact"}},
    ],
)
def test_a_global_server_has_nothing_of_a_local_one(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="means nothing in the role global"):
        merging(**fields)


@pytest.mark.parametrize(
    "changes",
    [
        {"members": ["a"]},
        {"dimensions": 0},
        {"dimensions": 65},
        {"dimensions": 2.0},
        {"role": "both"},
        {"norms": "ignore"},
        {"items": [{"id": "a", "categories": ["A"], "features": [0.1, 0.1]}]},
        {"global_server": HUB | {"url": "ftp://hub"}},
        {"sharing": {"first_update": 0}},
        {"sharing": {"growth": 0}},
        {"sharing": {"epsilon": 1.0}},
        {"learning": {"baseline": 2}},
        {"learning": {"kinds": 0}},
        {"privacy": {"protects": "nobody"}},
        {"privacy": {"answers": "none"}},
        {"privacy": {"feedback": {"epsilon": 0}}},
        {"privacy": {"feedback": {"epsilon": 9.0}}},
        {"privacy": {"feedback": {"delta": 0}}},
    ],
)
def test_what_cannot_be_served_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        local(**changes)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"dimensions": 3, "items": []}, "dimensions"),
        ({"learning": {"baseline": 0.1}}, "learning.baseline"),
        ({"learning": {"kinds": 3}}, "learning.kinds"),
        ({"privacy": {"protects": "observation"}}, "privacy.protects"),
        ({"privacy": {"feedback": {"epsilon": 3.0}}}, "privacy.feedback"),
        ({"privacy": {"feedback": {"delta": 1e-3}}}, "privacy.feedback"),
        ({"privacy": {"feedback": "exact"}}, "privacy.feedback"),
    ],
)
def test_what_was_learned_under_one_promise_is_not_released_under_another(
    changes: dict[str, Any], field: str
) -> None:
    before, after = local().fixed(), local(**changes).fixed()
    assert [name for name in before if before[name] != after[name]] == [field]


def test_roles_cannot_change_and_budgets_can() -> None:
    assert local().fixed()["role"] != merging().fixed()["role"]
    dearer = local(privacy={"feedback": {"budget": {"epsilon": 20.0}}, "answers": {}})
    assert dearer.fixed() == local().fixed()
