"""Believing nothing that another instance sends: sizes, shapes, types, ranges."""

import json
from typing import Any

from discreet.families.p_dap.forwarding import Forwarded, RunningSum
from discreet.errors import PeerUnavailable

MOST_BYTES = 16_384
"""Of a whole answer. An honest one has a few hundred."""
LONGEST_HANDLE = 2_048
_HANDLE_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_MOST_COUNT = 2**40
_MOST_DEVIATION = 1e9
_LAST_MOMENT = 2**32


def read_forwarded(body: bytes) -> Forwarded:
    """Return a vendor's answer, or raise `PeerUnavailable` for one that cannot be believed."""
    fields = _object(body)
    if set(fields) != {"handle", "expires_at", "sums"}:
        raise _malformed()
    handle = fields["handle"]
    if not (isinstance(handle, str) and 1 <= len(handle) <= LONGEST_HANDLE):
        raise _malformed()
    if not _HANDLE_LETTERS.issuperset(handle):
        raise _malformed()
    sums = fields["sums"]
    return Forwarded(
        handle=handle,
        expires_at=_whole(fields["expires_at"], most=_LAST_MOMENT - 1),
        sums=None if sums is None else _sums(sums),
    )


def _sums(fields: Any) -> RunningSum:
    if not isinstance(fields, dict) or set(fields) != {"releases", "count", "total", "deviation"}:
        raise _malformed()
    return RunningSum(
        releases=_whole(fields["releases"], most=_MOST_COUNT),
        count=_whole(fields["count"], most=_MOST_COUNT),
        total=_real(fields["total"], least=-1e15, most=1e15),
        deviation=_real(fields["deviation"], least=0.0, most=_MOST_DEVIATION),
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise _malformed() from None
    if not isinstance(fields, dict):
        raise _malformed()
    return fields


def _refuse(name: str) -> float:
    raise ValueError(name)  # NaN and the infinities are not JSON, whatever json.loads thinks


def _whole(value: Any, *, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise _malformed()
    return value


def _real(value: Any, *, least: float, most: float) -> float:
    # Comparing before converting: a NaN is in no range, and an integer may be too long to convert.
    if type(value) not in (int, float) or not least <= value <= most:
        raise _malformed()
    return float(value)


def _malformed() -> PeerUnavailable:
    return PeerUnavailable("an answer that cannot be read", reason="malformed")
