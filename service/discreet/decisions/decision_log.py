"""The decision log: what was asked, shown and earned, in the clear, where a document asks for it.

It is for `discreet evaluate`, and outside of every promise: whoever reads it sees contexts and
rewards, and knows people again by a keyed digest. So it is off unless a document has `log:`, the
card says where it goes, and a warning does when a worker begins.

Requests do not wait for it. They put what happened into a queue of bounded length; what finds no
room is lost, and the log says how much. A task writes the queue out, a few times a second. Lost
decisions are counted in a metric as well; lost feedback is not, because whether feedback came is
private.

`item` is the first of `items`, and `propensity` the probability with which it was drawn, over all
that the mechanism might have done.

Which decisions are sampled follows from a hash of the decision's id, so that feedback on them,
which may come to another worker, is sampled alike. Lines:

    {"kind": "decision", "id", "recommender", "time", "client", "context" or "features",
     "candidates" (if not the whole catalogue), "item", "propensity", "items", "personalised",
     "shadow" (in an experiment with shadows: by name, what each would have shown)}
    {"kind": "feedback", "id", "recommender", "time", "client", "position", "reward"}
    {"kind": "lost", "recommender", "time", "decisions", "feedback"}
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, NamedTuple

from discreet.decisions.log_sinks import LogSink
from discreet.errors import DiscreetError
from discreet.families.contract import Recommender
from discreet.families.documents import DecisionLogDocument
from discreet.families.observer import FamilyCounter, Observer
from discreet.families.questions import (
    Ask,
    Candidate,
    Decision,
    PendingDecision,
    PendingFeedback,
    Receipt,
    Sparse,
)
from discreet.privacy.noise import SystemNoise

log = logging.getLogger(__name__)

MOST_WAITING = 20_000
"""Lines of either kind that a worker keeps in memory."""
WRITE_SECONDS = 0.25
TIDY_SECONDS = 60.0
_SAMPLES = 2**64


class _Waiting(NamedTuple):
    """What becomes a line; `happened` makes its fields, off the way of requests."""

    recommender: Recommender[Any]
    happened: Callable[[], dict[str, Any]]


class DecisionLog:
    """Takes down what happens, for the recommenders whose documents ask for it."""

    def __init__(
        self,
        *,
        sinks: Mapping[str, LogSink],
        observer: Observer,
        clock: Callable[[], float],
        recommenders: Callable[[], Sequence[Recommender[Any]]],
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._sinks = sinks
        self._observer = observer
        self._clock = clock
        self._recommenders = recommenders
        self._most = most_waiting
        # Apart, so that how many decisions are lost tells nothing about feedback.
        self._decisions: list[_Waiting] = []
        self._feedback: list[_Waiting] = []
        self._lost: dict[Recommender[Any], Counter[str]] = {}
        self._announced: set[bytes] = set()
        self._failing = False
        self._task: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._ending = asyncio.Event()

    def decided(
        self,
        recommender: Recommender[Any],
        ask: Ask,
        decision: Decision,
        pending: PendingDecision,
        shadows: Sequence[Recommender[Any]] = (),
    ) -> None:
        """Take down an answer, if it is sampled, and what shadows make of it. Does not wait."""
        if not _sampled(recommender, pending):
            return
        now = self._clock()

        def line() -> dict[str, Any]:
            made = _decision_line(recommender, ask, decision, pending, now)
            if shadows:
                made["shadow"] = {one.name: _would_show(one, ask) for one in shadows}
            return made

        waiting = _Waiting(recommender, line)
        if not self._put(self._decisions, waiting, "decisions"):
            self._observer.count(recommender=recommender.name, what=FamilyCounter.NOT_LOGGED)

    def fed_back(
        self,
        recommender: Recommender[Any],
        many: Sequence[PendingFeedback],
        receipts: Sequence[Receipt | DiscreetError],
    ) -> None:
        """Take down feedback that was counted for the first time. Does not wait."""
        now = self._clock()
        for one, receipt in zip(many, receipts, strict=True):
            counted = isinstance(receipt, Receipt) and not receipt.duplicate
            if counted and _sampled(recommender, one.pending):

                def line(one: PendingFeedback = one) -> dict[str, Any]:
                    return _feedback_line(recommender, one, now)

                self._put(self._feedback, _Waiting(recommender, line), "feedback")

    def _put(self, queue: list[_Waiting], waiting: _Waiting, kind: str) -> bool:
        if len(queue) < self._most:
            queue.append(waiting)
            return True
        self._lost.setdefault(waiting.recommender, Counter())[kind] += 1
        return False

    def start(self) -> None:
        """Begin to write."""
        self._ending.clear()
        self._task = asyncio.create_task(self._run(), name="decision log")

    async def stop(self) -> None:
        """Write what is left, and end."""
        if self._task is not None:
            # Not cancelled: it may be writing what is in no queue any more.
            self._ending.set()
            await self._task
            await self.write()

    async def _run(self) -> None:
        tidied = float("-inf")
        loop = asyncio.get_running_loop()
        while not self._ending.is_set():
            self._announce()
            await self.write()
            if loop.time() - tidied >= TIDY_SECONDS:
                tidied = loop.time()
                await self._tidy()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), WRITE_SECONDS)

    def _announce(self) -> None:
        """Say aloud, once for every recommender, that it gives decisions away."""
        for one in self._recommenders():
            document = one.stored.document.log
            if document is not None and one.generation not in self._announced:
                self._announced.add(one.generation)
                log.warning("%s: not covered by its guarantee: %s", one.name, document.reveals())

    async def write(self) -> None:
        """Write everything that waits, after what is being written."""
        async with self._writing:
            await self._write()

    async def _write(self) -> None:
        queues = {"decisions": self._decisions, "feedback": self._feedback}
        self._decisions, self._feedback = [], []
        lost, self._lost = self._lost, {}
        lines: dict[Recommender[Any], list[bytes]] = {}
        if any(queues.values()):
            waiting = [*queues["decisions"], *queues["feedback"]]
            lines = await asyncio.to_thread(_written, waiting)
        for recommender, counts in lost.items():
            fields = {"kind": "lost", "recommender": recommender.name, "time": self._clock()}
            lines.setdefault(recommender, []).append(_encoded({**fields, **counts}))
        for recommender, some in lines.items():
            document = recommender.stored.document.log
            assert document is not None, "what is not logged puts nothing into a queue"
            try:
                await self._sinks[document.to].write(recommender, document.keep, some)
                self._failing = False
            except (OSError, DiscreetError) as error:
                if not self._failing:
                    log.error("the decision log cannot be written: %s", _reason(error))
                self._failing = True
                unwritten = {
                    kind: sum(one.recommender is recommender for one in queue)
                    for kind, queue in queues.items()
                }
                self._lost.setdefault(recommender, Counter()).update(unwritten)
                self._lost[recommender].update(lost.get(recommender, {}))
                if unwritten["decisions"]:
                    self._observer.count(
                        recommender=recommender.name,
                        what=FamilyCounter.NOT_LOGGED,
                        amount=unwritten["decisions"],
                    )

    async def _tidy(self) -> None:
        for sink in self._sinks.values():
            try:
                await sink.tidy(self._recommenders())
            except (OSError, DiscreetError) as error:
                log.error("old lines of the decision log cannot be removed: %s", _reason(error))

    async def forget(self, recommender: Recommender[Any], client: str) -> int:
        """Remove a client's lines from where that can be done; return how many."""
        document = recommender.stored.document.log
        if document is None:
            return 0
        await self.write()
        return await self._sinks[document.to].forget(recommender, _pseudonym(recommender, client))


def pseudonym_of(recommender: Recommender[Any], principal: bytes) -> str:
    """Return what the log calls a client."""
    return recommender.principals.pseudonym(principal).hex()


def _pseudonym(recommender: Recommender[Any], client: str) -> str:
    return pseudonym_of(recommender, recommender.principal(client))


def _sampled(recommender: Recommender[Any], pending: PendingDecision) -> bool:
    document: DecisionLogDocument | None = recommender.stored.document.log
    if document is None:
        return False
    digest = blake2b(pending.decision_id, digest_size=8, person=b"decision log").digest()
    return int.from_bytes(digest, "little") < document.sample * _SAMPLES


def _decision_line(
    recommender: Recommender[Any],
    ask: Ask,
    decision: Decision,
    pending: PendingDecision,
    now: float,
) -> dict[str, Any]:
    line: dict[str, Any] = {
        "kind": "decision",
        "id": pending.decision_id.hex(),
        "recommender": recommender.name,
        "time": round(now, 3),
        "client": pseudonym_of(recommender, pending.principal),
    }
    if len(ask.context):
        line["context"] = ask.context
    if ask.features is not None:
        features = ask.features
        line["features"] = (
            {"indices": list(features.indices), "values": list(features.values)}
            if isinstance(features, Sparse)
            else list(features)
        )
    if ask.candidates is not None or ask.exclude:
        offered = ask.candidates
        if offered is None:
            offered = [recommender.id_of[slot] for slot in recommender.visible.tolist()]
        names = [one.id if isinstance(one, Candidate) else one for one in offered]
        out = set(ask.exclude)
        line["candidates"] = [name for name in names if name not in out]
    return {
        **line,
        "item": decision.items[0] if decision.items else None,
        "propensity": decision.choices[0].propensity if decision.choices else None,
        "items": list(decision.items),
        "personalised": decision.personalised,
    }


def _would_show(shadow: Recommender[Any], ask: Ask) -> list[str] | None:
    """Return what a recommender that is not shown would answer, None to what it cannot read.

    Nobody pays: the line holds the question itself in the clear, and this is made from it and from
    a released model. It is no answer, so nothing awaits feedback and nobody is remembered.
    """
    try:
        question = shadow.question(ask._replace(recommender=shadow.name))
    except DiscreetError:
        return None
    (decision,) = shadow.decide(shadow.current.model, [question], [None], SystemNoise())
    return list(decision.items)


def _feedback_line(
    recommender: Recommender[Any], one: PendingFeedback, now: float
) -> dict[str, Any]:
    position = one.position
    if position is None:
        position = recommender.position_of(one.pending, one.feedback.item)
    low, high = recommender.reward.range
    return {
        "kind": "feedback",
        "id": one.pending.decision_id.hex(),
        "recommender": recommender.name,
        "time": round(now, 3),
        "client": pseudonym_of(recommender, one.pending.principal),
        "position": position,
        "reward": low + one.feedback.reward * (high - low),
    }


def _written(waiting: Sequence[_Waiting]) -> dict[Recommender[Any], list[bytes]]:
    lines: dict[Recommender[Any], list[bytes]] = {}
    for one in waiting:
        lines.setdefault(one.recommender, []).append(_encoded(one.happened()))
    return lines


def _encoded(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
