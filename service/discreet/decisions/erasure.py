"""Erasing a client, and a certificate of it: what was erased, what remains and why.

The certificate is sealed with the service's own key (`Principals.certificate`), which is never
rotated: whoever holds one can have it checked later, by any worker on the same store. It names the
client, so it is as private as that name; the service keeps no copy.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.errors import InvalidArgument

CERTIFICATE_VERSION = 1

REMAINS: Mapping[str, str] = {
    "ledger": "what the client's answers and feedback have cost, under a keyed digest: forgetting "
    "it would let the budget be spent again",
    "released_models": "models that were released stay released; the feedback budget bounds what "
    "all of them together tell about the client",
    "sums": "feedback that was counted and not yet released is in sums as a number without a name, "
    "and goes into the next release with its noise",
    "claims": "which feedback was counted, by random decision ids, until those recommendations "
    "expire",
    "erasures": "how often this client was erased, and when last, as numbers under a keyed digest, "
    "so that requests which were on their way cannot bring anything back",
    "removed_recommenders": "of recommenders that had been removed before, and shared their "
    "ledgers with none that is left: stored answers, sealed, until they expire, and what was spent "
    "by day, both under keyed digests",
    "backups": "copies that the operator made of the store, its append-only file among them, until "
    "they are rewritten",
}
"""What an erasure leaves, for every family; a family adds what only it has."""


@dataclass(frozen=True, slots=True)
class ErasureCertificate:
    """What one erasure did; `records` is by recommender, `erasure` how many there were by now."""

    client: str
    at: float
    erasure: int
    events: int
    devices: int
    open_decisions: int
    logged: int
    records: Mapping[str, int]
    remains: Mapping[str, str] = field(default_factory=lambda: dict(REMAINS))

    def content(self) -> dict[str, Any]:
        """Return the certificate as it is shown and sealed."""
        return {
            "version": CERTIFICATE_VERSION,
            "client": self.client,
            "erased_at": self.at,
            "erasure": self.erasure,
            "erased": {
                "stored_answers": self.events,
                "device_keys": self.devices,
                "open_decisions": self.open_decisions,
                "logged_lines": self.logged,
                "records": dict(self.records),
            },
            "remains": dict(self.remains),
        }


def sealed_content(certificate: object) -> bytes:
    """Return the bytes that a seal is about: the same for equal certificates, however written."""
    try:
        return json.dumps(
            certificate, sort_keys=True, separators=(",", ":"), allow_nan=False
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument("certificate", "must be a JSON object as it was answered") from error


def is_seal(given: str, wanted: bytes) -> bool:
    """Tell, in constant time, whether a seal is the wanted one."""
    return hmac.compare_digest(given.encode(errors="replace"), wanted.hex().encode())
