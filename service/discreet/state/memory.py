"""The store as dictionaries of one process: for simulations and for tests of what stands above.

It keeps the same promises as Redis, to the byte, except one: it is gone with its process, so it
must never hold a real person's ledger. Nothing here waits, so one event loop's calls are atomic by
themselves; it is not meant for several threads.
"""

import random
import time
from collections.abc import Awaitable, Callable, Mapping

from discreet.errors import UnknownDecision
from discreet.state import checks
from discreet.state.expiring import Expiring
from discreet.state.memory_streams import MemoryStreams
from discreet.state.memory_sums import MemorySums
from discreet.state.ready import Failed, Ready
from discreet.state.stores import Event, Registry


class MemoryStore(MemorySums, MemoryStreams):
    """Every method of `stores.Store`; `clock` counts seconds since the epoch: it
    decides what has expired and which window it is."""

    def __init__(
        self, *, clock: Callable[[], float] = time.time, rng: random.Random | None = None
    ) -> None:
        MemorySums.__init__(self, clock=clock)
        MemoryStreams.__init__(self, clock=clock)
        self._events: Expiring[bytes, Event] = Expiring(clock)
        self._queues: dict[bytes, dict[bytes, bytes]] = {}
        self._documents: dict[str, bytes] = {}
        self._secrets: dict[str, bytes] = {}
        self._epoch = 0
        self._rng = rng or random.Random()  # noqa: S311  which messages are sampled is public

    def claim_event(self, *, event: bytes, fingerprint: bytes, ttl: int) -> Awaitable[Event]:
        checks.digest("event", event)
        checks.digest("fingerprint", fingerprint)
        checks.ttl("ttl", ttl)
        standing = self._events.get(event)
        if standing is None:
            standing = Event(fingerprint=fingerprint, answer=None)
            self._events.put(event, standing, ttl)
        return Ready(standing)

    def answer_event(self, *, event: bytes, answer: bytes, ttl: int) -> Awaitable[bytes]:
        checks.digest("event", event)
        checks.document("answer", answer)
        checks.ttl("ttl", ttl)
        standing = self._events.get(event)
        if standing is None:
            return Failed(UnknownDecision("the event was forgotten before it was answered"))
        if standing.answer is None:
            standing = Event(fingerprint=standing.fingerprint, answer=answer)
            self._events.put(event, standing, ttl)
        assert standing.answer is not None
        return Ready(standing.answer)

    def find_event(self, *, event: bytes) -> Awaitable[Event | None]:
        return Ready(self._events.get(checks.digest("event", event)))

    def forget_event(self, *, event: bytes) -> Awaitable[None]:
        self._events.remove(checks.digest("event", event))
        return Ready(None)

    def forget_answer(self, *, event: bytes, answer: bytes) -> Awaitable[None]:
        checks.document("answer", answer)
        standing = self._events.get(checks.digest("event", event))
        if standing is not None and standing.answer == answer:
            self._events.remove(event)
        return Ready(None)

    def put_message(self, *, queue: bytes, name: bytes, content: bytes) -> Awaitable[None]:
        messages = self._queues.setdefault(checks.digest("queue", queue), {})
        messages[checks.digest("name", name)] = checks.document("content", content)
        return Ready(None)

    def messages(self, *, queue: bytes, most: int) -> Awaitable[Mapping[bytes, bytes]]:
        messages = self._queues.get(checks.digest("queue", queue), {})
        if len(messages) <= checks.most(most):
            return Ready(dict(messages))
        return Ready({each: messages[each] for each in self._rng.sample(list(messages), most)})

    def remove_message(self, *, queue: bytes, name: bytes) -> Awaitable[None]:
        messages = self._queues.get(checks.digest("queue", queue), {})
        messages.pop(checks.digest("name", name), None)
        return Ready(None)

    def count_messages(self, *, queue: bytes) -> Awaitable[int]:
        return Ready(len(self._queues.get(checks.digest("queue", queue), ())))

    def epoch(self) -> Awaitable[int]:
        return Ready(self._epoch)

    def registry(self) -> Awaitable[Registry]:
        return Ready(Registry(epoch=self._epoch, documents=dict(self._documents)))

    def put_document(
        self, *, name: str, document: bytes, expected: bytes | None
    ) -> Awaitable[bool]:
        checks.name(name)
        checks.document("document", document)
        if expected is not None:
            checks.document("expected", expected)
        if self._documents.get(name) != expected:
            return Ready(False)
        self._documents[name] = document
        self._epoch += 1
        return Ready(True)

    def remove_document(self, *, name: str, expected: bytes) -> Awaitable[bool]:
        checks.document("expected", expected)
        if self._documents.get(checks.name(name)) != expected:
            return Ready(False)
        del self._documents[name]
        self._epoch += 1
        return Ready(True)

    def secret(self, *, name: str, proposal: bytes) -> Awaitable[bytes]:
        checks.document("proposal", proposal)
        return Ready(self._secrets.setdefault(checks.name(name), proposal))

    def ping(self) -> Awaitable[None]:
        return Ready(None)

    def clock(self) -> float:
        return time.time()

    def superseded(self) -> bool:
        return False

    async def open(self) -> None:
        """Nothing to connect to."""

    async def close(self) -> None:
        """Nothing to let go of; what is stored stays until the object goes."""
