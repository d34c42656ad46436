"""Addresses with ids in them: an id is one segment of a path, percent-encoded.

`/clients/ada%2Fbudget` is about the client "ada/budget"; `/clients/ada/budget` is about the budget
of "ada". Servers decode a path before it is matched to a route, and then the two look the same. So
a slash that was encoded is matched as a character that no path can contain, and becomes a slash
again in the id.
"""

import re
from urllib.parse import unquote_to_bytes

from starlette.convertors import Convertor

from discreet.api.problems import BAD_REQUEST, Refused

_ENCODED_SLASH = "\0"
_HALF_ENCODED = re.compile(rb"%(?![0-9A-Fa-f]{2})")


class SegmentConvertor(Convertor[str]):
    """`{client:segment}` in a route: one segment, which may hold encoded slashes."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return value.replace(_ENCODED_SLASH, "/")

    def to_string(self, value: str) -> str:
        return value.replace("/", _ENCODED_SLASH)


def matched_path(raw: bytes) -> str:
    """Return a path as routes are matched to it, or refuse one that is no text."""
    if _HALF_ENCODED.search(raw):
        raise Refused(BAD_REQUEST, "a % in the address must be encoded (%25)")
    try:
        segments = [unquote_to_bytes(segment).decode() for segment in raw.split(b"/")]
    except UnicodeDecodeError:
        raise Refused(BAD_REQUEST, "the address must be percent-encoded UTF-8") from None
    if any(_ENCODED_SLASH in segment for segment in segments):
        raise Refused(BAD_REQUEST, "the address has a character that no id may have (%00)")
    return "/".join(segment.replace("/", _ENCODED_SLASH) for segment in segments)
