"""`If-Match` and `If-None-Match`: a change is made to what the caller has seen, or not at all."""

import re
from typing import Annotated

from fastapi import Depends, Header

from discreet.decisions.changes import Precondition
from discreet.errors import InvalidArgument

_TAGS = re.compile(r'\s*(?:W/)?"[\x21\x23-\x7e]*"\s*(?:,\s*(?:W/)?"[\x21\x23-\x7e]*"\s*)*')
_TAG = re.compile(r'(W/)?"([^"]*)"')


async def condition(
    if_match: Annotated[
        str | None,
        Header(max_length=1_000, description="The ETag of the document that is to be changed."),
    ] = None,
    if_none_match: Annotated[
        str | None,
        Header(max_length=1_000, description="`*` changes nothing that is there already."),
    ] = None,
) -> Precondition:
    """Return what the headers ask for (RFC 9110, section 13)."""
    if if_none_match is not None and if_none_match.strip() != "*":
        raise InvalidArgument("If-None-Match", "must be *")
    return Precondition(
        tags=None if if_match is None else _tags(if_match), absent=if_none_match is not None
    )


def _tags(header: str) -> frozenset[str]:
    if header.strip() == "*":
        return frozenset({"*"})
    if not _TAGS.fullmatch(header):
        raise InvalidArgument("If-Match", "must be * or ETags, each in its quotation marks")
    # A weak tag says that something like it is there: that is not enough to change it.
    return frozenset(tag for weak, tag in _TAG.findall(header) if not weak)


Condition = Annotated[Precondition, Depends(condition)]
