"""What a key reaches: its recommenders, its client, and nothing beside them."""

import pytest

from discreet.decisions.grants import DEVICE_SCOPES, SCOPES, ClientBinding, KeyGrant, require_label
from discreet.errors import InvalidArgument, NotAllowed


def test_a_key_without_bounds_reaches_everything() -> None:
    grant = KeyGrant("id", frozenset({"serve"}))
    assert not grant.bound
    grant.require_recommender("any")
    grant.require_client("anybody")


def test_a_bound_key_reaches_what_it_is_bound_to() -> None:
    binding = ClientBinding(b"ada", str.encode)
    grant = KeyGrant("id", DEVICE_SCOPES, frozenset({"films"}), binding)
    assert grant.bound
    grant.require_recommender("films")
    grant.require_client("ada")
    with pytest.raises(NotAllowed):
        grant.require_recommender("books")
    with pytest.raises(NotAllowed, match="another client") as refused:
        grant.require_client("bob")
    assert "bob" not in str(refused.value)


def test_bound_to_no_recommender_reaches_none() -> None:
    with pytest.raises(NotAllowed):
        KeyGrant("id", frozenset({"serve"}), frozenset()).require_recommender("films")


def test_a_device_cannot_have_what_an_operator_has() -> None:
    assert SCOPES.isdisjoint(DEVICE_SCOPES)


@pytest.mark.parametrize(
    "label", ["", "  ", "a\nb", "\x1b[2J", "tab\t", "\u202eevil", "\x7f", "x" * 101]
)
def test_a_label_must_be_fit_to_be_shown(label: str) -> None:
    with pytest.raises(InvalidArgument, match="printable"):
        require_label(label)


def test_labels_may_be_in_any_language() -> None:
    require_label("Adas Küchen-Tablet 台所")
