"""Answers under a caller's event id: a retry gets the stored answer, unchanged and free.

Three steps, each of which may be repeated after a crash without paying or answering twice. The
event is claimed first. The debit is made once, under the event's mark in the client's ledger. The
first answer to be stored is the answer for everybody; a draw that came second is thrown away
unseen.

A retry is known by its event and its client, and by nothing that is private. Were the context
compared, the comparison would be an oracle, free and unlimited: refused for a wrong context,
answered for the right one. So contexts, features, candidates and the rest are not looked at. What
is compared, and refused as a mistake of the caller, is public: recommender, client and `limit`.

What is stored is sealed: the store sees neither the items nor how the ledger stands.

An answer belongs to the time between two erasures of its client, and says which (`erasures`). One
that a request from before an erasure stores late, into a claim from after it, is refused to
whoever reads it, and whoever wrote it takes back that answer and no other: were another retry's
answer taken away, its debit would pay for a second draw.

A caller who gives no event id is debited under one that is made up, and forgotten after
`MADE_UP_SECONDS`. Should the store's answer be lost, nobody knows whether the debit was made. Then
the caller is told that id, and a retry under it is not debited again.

A mark must not outlive the answer that it paid for: with the mark there and the answer gone, the
same event would be answered again, from a fresh draw, for nothing. A mark is made before its answer
is stored, and lasts no longer; no answer is kept for less than `MADE_UP_SECONDS`. How long answers
are kept is part of the mark, so that a document which keeps them for a shorter time finds none.
"""

import json
import os
import struct
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from discreet.decisions.tokens import Sealer
from discreet.errors import (
    ClientErased,
    DiscreetError,
    EventReused,
    StoreDamaged,
    UnknownDecision,
)
from discreet.families.budgets import PrivacyReport
from discreet.families.contract import Recommender
from discreet.families.questions import Ask, Recommendation, RetryMark
from discreet.privacy.accountants import Budget
from discreet.state.principals import Principals
from discreet.state.stores import Debit, Store
from discreet.state.tombstones import Tombstones

_PURPOSE = b"discreet answer"
MADE_UP = "retry-"
"""How event ids begin that callers are told, and did not choose."""
MADE_UP_SECONDS = 120
_MADE_UP_BYTES = 16
_LENGTH = struct.Struct("<Q")
_MADE_UP_LENGTH = len(MADE_UP) + 2 * _MADE_UP_BYTES
_STORED = Recommendation._fields.index("described")
"""Fields of an answer that are stored: the catalogue may have changed by the next time."""


class StoredAnswer(NamedTuple):
    """The answer that stands under an event id, and whether it had been given before."""

    answer: Recommendation
    repeated: bool


class StoredAnswers:
    """Keeps answers under event ids, sealed."""

    def __init__(self, *, store: Store, principals: Principals, sealer: Sealer) -> None:
        self._store = store
        self._principals = principals
        self._sealer = sealer
        self._tombstones = Tombstones(store)

    async def answer_once(
        self,
        recommender: Recommender[Any],
        ask: Ask,
        client: bytes,
        fresh: Callable[[RetryMark], Awaitable[Recommendation]],
    ) -> StoredAnswer:
        """Return the answer under the question's event id, making it with `fresh` if need be."""
        name, ttl = self._name(ask, client), _kept(recommender)
        event = self._principals.event(name)
        fingerprint = self._fingerprint(ask)
        claiming = self._store.claim_event(event=event, fingerprint=fingerprint, ttl=ttl)
        erasures = await self._tombstones.count(client)
        found = await claiming
        if found.fingerprint != fingerprint:
            raise EventReused(
                "event_id already names a request of another client, recommender or limit; "
                "use a new one"
            )
        stands = found.answer
        sealed = b""
        if stands is None:
            # Listed with the client, whoever pays: erasing the client finds it.
            listed = self._store.spend([Debit(client, marker=event, marker_ttl=ttl)])
            (mark,) = self._marks([name], ttl)
            answer = await fresh(RetryMark(mark, ttl))
            for outcome in await listed:
                if isinstance(outcome, DiscreetError):
                    raise outcome
            (sealed,) = self._sealer.seal([_encode(answer, erasures)], purpose=_PURPOSE)
            stands = await self._store.answer_event(event=event, answer=sealed, ttl=ttl)
        try:
            await self._tombstones.refuse_if_erased(client, since=erasures)
        except ClientErased:
            if stands == sealed:
                await self._store.forget_answer(event=event, answer=sealed)
            raise
        opened, belongs = self._open(stands)
        if belongs != erasures:
            raise ClientErased("the answer under this event_id is from before an erasure")
        return StoredAnswer(opened, repeated=stands != sealed)

    def make_up(
        self, recommender: Recommender[Any], count: int
    ) -> tuple[list[str], list[RetryMark]]:
        """Return event ids that nobody has used, and the marks under which to debit."""
        content = os.urandom(_MADE_UP_BYTES * count).hex()
        size = 2 * _MADE_UP_BYTES
        ids = [MADE_UP + content[start : start + size] for start in range(0, len(content), size)]
        marks = self._marks(ids, _kept(recommender))
        return ids, [RetryMark(mark, MADE_UP_SECONDS) for mark in marks]

    async def recommendation_id(self, event_id: str) -> str:
        """Return the id of the recommendation that was made under an event id."""
        event = await self._store.find_event(event=self._principals.event(event_id))
        if event is None or event.answer is None:
            raise UnknownDecision(
                "no recommendation was made under that event_id, or it has expired"
            )
        return self._open(event.answer)[0].recommendation_id

    def _name(self, ask: Ask, client: bytes) -> str:
        """Return what an event is called: a person's own key has names of its own, so that it can
        neither find out which event ids others use nor take one before they do."""
        assert ask.event_id is not None
        told = ask.event_id.startswith(MADE_UP) and len(ask.event_id) == _MADE_UP_LENGTH
        own = ask.personal and not told  # what we made up, nobody can guess
        return f"\0{client.hex()} {ask.event_id}" if own else ask.event_id

    def _open(self, sealed: bytes) -> tuple[Recommendation, int]:
        """Return a stored answer, and after how many erasures of its client it was made."""
        content = self._sealer.open(sealed, purpose=_PURPOSE)
        try:
            return _decode(content)
        except Exception:  # readers fail in many ways
            raise StoreDamaged("a stored answer is nothing that this version can read") from None

    def _marks(self, names: Sequence[str], ttl: int) -> list[bytes]:
        """Return under what events are debited whose answers are kept for so many seconds."""
        return self._principals.marks(names, _LENGTH.pack(ttl))

    def _fingerprint(self, ask: Ask) -> bytes:
        public = [ask.recommender, ask.client, ask.limit]
        return self._principals.request([json.dumps(public).encode()])


def _kept(recommender: Recommender[Any]) -> int:
    """Return for how many seconds answers are kept under event ids."""
    return max(recommender.ttl, MADE_UP_SECONDS)


def _encode(answer: Recommendation, erasures: int) -> bytes:
    privacy = answer.privacy
    report = [
        privacy.epsilon,
        privacy.spent and [privacy.spent.epsilon, privacy.spent.delta],
        privacy.remaining and [privacy.remaining.epsilon, privacy.remaining.delta],
        privacy.resets_at,
    ]
    shown = answer._replace(privacy=report)[:_STORED]  # type: ignore[arg-type]
    # Clients who were never erased are most: their answers stand alone, as they always did.
    return json.dumps([erasures, shown] if erasures else shown).encode()


def _vendors(stored: Any) -> tuple[str | None, ...]:
    """Return the vendor of every item; answers of one item were once stored with its name."""
    return (stored,) if isinstance(stored, str) else tuple(stored or ())


def _decode(content: bytes) -> tuple[Recommendation, int]:
    values = json.loads(content)
    erasures, values = values if isinstance(values[0], int) else (0, values)
    # Answers of an earlier version have fewer fields, and those of a newer one may have more.
    fields = Recommendation(*values[:_STORED])
    epsilon, spent, remaining, resets_at, *_ = values[Recommendation._fields.index("privacy")]
    privacy = PrivacyReport(
        epsilon=epsilon,
        spent=spent and Budget(*spent),
        remaining=remaining and Budget(*remaining),
        resets_at=resets_at,
    )
    shown = fields._replace(
        items=tuple(fields.items), vendors=_vendors(fields.vendors), privacy=privacy
    )
    return shown, erasures
