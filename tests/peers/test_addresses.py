"""Where a peer's key may be sent."""

import pytest

from discreet.peers.addresses import addresses_in, joined, origin_of


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://B.example/x?y", ("https", "b.example", 443)),
        ("http://b.example", ("http", "b.example", 80)),
        ("http://[::1]:8002/", ("http", "::1", 8002)),
        ("http://b.example@evil.example", None),
        ("ftp://b.example", None),
        ("b.example", None),
        ("http://b:99999", None),
        ("", None),
    ],
)
def test_where_a_message_would_go(url: str, origin: object) -> None:
    assert origin_of(url) == origin


def test_whatever_a_document_names_with_an_address_is_found() -> None:
    document = {
        "algorithm": "p-dap",
        "items": [{"id": "a"}],
        "vendors": [{"name": "b", "url": "http://b"}, {"name": "c", "url": "http://c"}],
        "global_server": {"name": "b", "url": "http://hub", "recommender": None},
    }
    found = addresses_in([document])
    assert sorted(found["b"]) == ["http://b", "http://hub"]
    assert found["c"] == ("http://c",)
    assert joined(found, {"c": ("http://d",)})["c"] == ("http://c", "http://d")
    assert addresses_in({"name": "films", "items": ["a"]}) == {}
