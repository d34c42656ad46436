"""Where a peer's key may be sent: to addresses that the operator has named, and nowhere else.

A document may be changed over the API, by whoever has an administrator's key; a peer's key is a
secret between two operators. So a document that names an address is not enough: it has to stand in
the settings (`peer_addresses`) or in the configuration file as well.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}

Origin = tuple[str, str, int]
"""Scheme, host and port."""


def origin_of(url: str) -> Origin | None:
    """Return where a message to this address would go; None if it is no address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or parts.username is not None:
        return None
    return parts.scheme, parts.hostname.lower(), port or _PORTS[parts.scheme]


def addresses_in(document: Any) -> dict[str, tuple[str, ...]]:
    """Return the peers that a document names, with their addresses: whatever has both."""
    found: dict[str, tuple[str, ...]] = {}
    if isinstance(document, Mapping):
        name, url = document.get("name"), document.get("url")
        if isinstance(name, str) and isinstance(url, str):
            found[name] = (url,)
        document = list(document.values())
    if isinstance(document, list | tuple):
        for each in document:
            found = joined(found, addresses_in(each))
    return found


def joined(
    some: Mapping[str, tuple[str, ...]], others: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return the addresses of both, by name."""
    return {name: (*some.get(name, ()), *others.get(name, ())) for name in {*some, *others}}
