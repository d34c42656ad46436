"""What is kept about one client, shown and erased."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.decisions.decision_log import DecisionLog, pseudonym_of
from discreet.decisions.devices import Devices
from discreet.decisions.erasure import REMAINS, ErasureCertificate, is_seal, sealed_content
from discreet.decisions.registry import RecommenderRegistry
from discreet.families.budgets import PrivacyReport
from discreet.families.contract import Recommender
from discreet.state.principals import Principals
from discreet.state.stores import Store
from discreet.state.tombstones import Tombstones


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """How a client stands with a recommender: the account of answers, and that of feedback."""

    answers: PrivacyReport
    feedback: PrivacyReport


@dataclass(frozen=True, slots=True)
class Erased:
    """A certificate, and its seal in hexadecimal."""

    certificate: ErasureCertificate
    seal: str


class Clients:
    """Shows and erases what is kept by client."""

    def __init__(
        self,
        *,
        store: Store,
        registry: RecommenderRegistry,
        devices: Devices,
        principals: Principals,
        clock: Callable[[], float],
        decision_log: DecisionLog,
    ) -> None:
        self._store = store
        self._registry = registry
        self._devices = devices
        self._principals = principals
        self._clock = clock
        self._decision_log = decision_log
        self._tombstones = Tombstones(store)

    async def budget(self, *, recommender: str, client: str) -> BudgetReport:
        """Return how a client stands. Unknown clients have spent nothing."""
        found = await self._registry.find(recommender)
        return BudgetReport(*await found.budgets(client))

    async def erase(self, client: str) -> Erased:
        """Erase what is stored about a client: answers kept for retries, profiles, histories, keys.

        The erasure is counted first, so that whatever is on its way through any worker is taken
        back (`discreet.state.tombstones`). Nothing is erased while there is a recommender that this
        version cannot read: `RecommenderUnreadable`. What remains, and why, is in the certificate.
        What was spent by day is erased: it tells when somebody was here.
        """
        snapshot = await self._registry.current()
        if snapshot.unserved:
            # What it keeps of the client cannot be found, and a certificate would be false.
            raise self._registry.absent(snapshot.unserved[0])
        recommenders = list(snapshot.recommenders.values())
        principals = {one.name: one.principal(client) for one in recommenders}
        stamps = await asyncio.gather(
            *(self._tombstones.mark(principal) for principal in set(principals.values()))
        )
        marked = await asyncio.gather(
            *(self._store.forget_markers(principal) for principal in set(principals.values()))
        )
        events = {event for markers in marked for event in markers}
        # A marker may be of an event id that was made up, under which no answer was stored.
        found = await asyncio.gather(*(self._store.find_event(event=event) for event in events))
        await asyncio.gather(*(self._store.forget_event(event=event) for event in events))
        devices = await self._devices.revoke_all(client)
        await asyncio.gather(
            *(self._store.forget_days(principal) for principal in set(principals.values()))
        )
        forgotten = await asyncio.gather(*(one.forget(client) for one in recommenders))
        awaited = await asyncio.gather(
            *(
                self._store.forget_open(generation=one.generation, principal=principals[one.name])
                for one in recommenders
            )
        )
        lines = await asyncio.gather(
            *(self._decision_log.forget(one, client) for one in recommenders)
        )
        certificate = ErasureCertificate(
            client=client,
            # By the store's clock, once all were marked. Without recommenders nothing is.
            at=max((stamp.at for stamp in stamps), default=round(self._clock(), 3)),
            erasure=max((stamp.version for stamp in stamps), default=0),
            events=sum(event is not None for event in found),
            devices=devices,
            open_decisions=sum(awaited),
            logged=sum(lines),
            records={
                one.name: count for one, count in zip(recommenders, forgotten, strict=True) if count
            },
            remains={
                **REMAINS,
                **_left_in_logs(recommenders, principals),
                **{
                    f"elsewhere_{one.name}": left
                    for one in recommenders
                    if (left := one.left_elsewhere()) is not None
                },
            },
        )
        content = sealed_content(certificate.content())
        return Erased(certificate, self._principals.certificate(content).hex())

    def verify(self, *, certificate: object, seal: str) -> bool:
        """Tell whether this service made this certificate, and nobody changed it since."""
        return is_seal(seal, self._principals.certificate(sealed_content(certificate)))


def _left_in_logs(
    recommenders: Sequence[Recommender[Any]], principals: Mapping[str, bytes]
) -> dict[str, str]:
    """Return what decision logs keep that an erasure cannot reach, with what to look for."""
    left = {}
    for one in recommenders:
        log = one.stored.document.log
        if log is not None and log.to != "stream":
            until = f"until it is {log.keep} old" if log.to == "file" else "for its own time"
            left[f"decision_log_{one.name}"] = (
                f"lines about the client in what {one.name} wrote to {log.to}, {until}; they have "
                f'"client":"{pseudonym_of(one, principals[one.name])}"'
            )
    return left
