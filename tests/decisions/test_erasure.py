"""Erasing while something is on its way, and certificates of it."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from discreet.decisions.erasure import REMAINS, is_seal, sealed_content
from discreet.decisions.services import DecisionServices
from discreet.errors import ClientErased, InvalidArgument, UnknownDecision
from discreet.families.collaborative.profiles import Profiles
from discreet.families.questions import Ask, Feedback, Recommendation
from discreet.families.registration import read_document
from discreet.state.memory import MemoryStore
from discreet.state.store_values import Stamp
from discreet.state.tombstones import Tombstones
from tests.contracts.samples import SAMPLES
from tests.decisions.conftest import Clock, ask, opened
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

CLIENT = "somebody"


@pytest.fixture
async def two(store: MemoryStore, clock: Clock) -> AsyncIterator[tuple[DecisionServices, ...]]:
    """Two workers on one store, with a recommender of every family that keeps clients."""
    workers = (await opened(store, clock), await opened(store, clock))
    for algorithm in ("p-dap", "fclub", "collaborative", "p-rec"):
        sample = SAMPLES[algorithm]
        written = read_document({"algorithm": algorithm, **sample.document})
        await workers[0].registry.put(algorithm, written)
        await workers[1].registry.settle()
        await sample.prepare(await workers[0].registry.find(algorithm))
    yield workers
    for worker in workers:
        await worker.close()


def meanwhile(
    store: MemoryStore,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    act: Callable[[], Awaitable[Any]],
) -> None:
    """Let `act` happen right before the next call of a store's method, once."""
    shipped = getattr(store, method)

    async def raced(*args: Any, **given: Any) -> Any:
        monkeypatch.setattr(store, method, shipped)
        await act()
        return await shipped(*args, **given)

    monkeypatch.setattr(store, method, raced)


async def stored_answer(worker: DecisionServices) -> bool:
    try:
        await worker.feedback.record(Feedback(1.0, event_id="click"))
    except UnknownDecision:
        return False
    return True


async def retried(worker: DecisionServices) -> None:
    await worker.recommend.recommend(Ask("p-dap", CLIENT, (0.1, 0.2), event_id="click"))


async def profiled(worker: DecisionServices) -> None:
    found = await worker.registry.find("collaborative")
    await found.part(Profiles).keep(client=CLIENT, items=["i1", "i2"])


async def has_profile(worker: DecisionServices) -> bool:
    found = await worker.registry.find("collaborative")
    (profile,) = await found.part(Profiles).read([found.principal(CLIENT)])
    return len(profile) > 0


async def answered(worker: DecisionServices) -> None:
    await worker.recommend.recommend(Ask("p-rec", CLIENT))


async def has_history(worker: DecisionServices) -> bool:
    found: Any = await worker.registry.find("p-rec")
    page = found.clients.page(found.principal(CLIENT))
    return len(await worker.store.read_page(page=page)) > 0


async def fed_back(worker: DecisionServices) -> None:
    answer = await worker.recommend.recommend(Ask("fclub", CLIENT))
    told = Feedback(1.0, recommendation_id=answer.recommendation_id)
    receipt = await worker.feedback.record(told)
    if not receipt.learned:
        raise ClientErased("not learned")


async def has_own_sums(worker: DecisionServices) -> bool:
    found = await worker.registry.find("fclub")
    (own,) = await worker.store.own(
        generation=found.generation, principals=[found.principal(CLIENT)]
    )
    return bool(own.any())


WRITERS = [
    (retried, "answer_event", stored_answer),
    (profiled, "save", has_profile),
    (answered, "write_pages", has_history),
    (fed_back, "learn", has_own_sums),
]


@pytest.mark.parametrize(("write", "method", "is_left"), WRITERS)
async def test_what_was_on_its_way_is_not_there_after_an_erasure(
    two: tuple[DecisionServices, ...],
    store: MemoryStore,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[DecisionServices], Awaitable[None]],
    method: str,
    is_left: Callable[[DecisionServices], Awaitable[bool]],
) -> None:
    ours, theirs = two
    meanwhile(store, monkeypatch, method, lambda: theirs.clients.erase(CLIENT))
    with pytest.raises((ClientErased, UnknownDecision)):
        await write(ours)
    assert not await is_left(ours)
    # Whoever comes back a second later is served, and kept, like anybody.
    clock.now += 1
    await write(ours)
    assert await is_left(theirs)


@pytest.mark.parametrize(
    ("write", "method", "is_left"), [one for one in WRITERS if one[0] in (profiled, answered)]
)
async def test_without_the_count_it_would_be_left(
    two: tuple[DecisionServices, ...],
    store: MemoryStore,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[DecisionServices], Awaitable[None]],
    method: str,
    is_left: Callable[[DecisionServices], Awaitable[bool]],
) -> None:
    """The attack as it was: the same race with an erasure that does not count itself."""

    async def uncounted(self: Tombstones, principal: bytes) -> Stamp:
        return Stamp(1, 0.0)

    monkeypatch.setattr(Tombstones, "mark", uncounted)
    ours, theirs = two
    meanwhile(store, monkeypatch, method, lambda: theirs.clients.erase(CLIENT))
    await write(ours)
    assert await is_left(ours)


class Gates:
    """Holds calls of one method of an object, each at a gate of its own, until a test lets go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, method: str) -> None:
        self._shipped = getattr(owner, method)
        self._gates: list[asyncio.Event] = []
        self._arrived = asyncio.Event()
        self.closed = True

        async def held(*args: Any, **given: Any) -> Any:
            if self.closed:
                gate = asyncio.Event()
                self._gates.append(gate)
                self._arrived.set()
                await gate.wait()
            return await self._shipped(*args, **given)

        monkeypatch.setattr(owner, method, held)

    async def wait_for(self, calls: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(self._gates) < calls:
                self._arrived.clear()
                await self._arrived.wait()

    def let_go(self, call: int) -> None:
        self._gates[call].set()


def click(worker: DecisionServices) -> Awaitable[Recommendation]:
    return worker.recommend.recommend(Ask("p-dap", CLIENT, (0.1, 0.2), event_id="click"))


async def spent(worker: DecisionServices) -> float:
    report = (await worker.clients.budget(recommender="p-dap", client=CLIENT)).answers.spent
    assert report is not None
    return report.epsilon


async def test_a_late_retry_takes_no_other_retrys_answer_away(
    two: tuple[DecisionServices, ...], store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the debit of the other would pay for a second draw, and a third, as often as one likes."""
    ours, theirs = two
    gates = Gates(monkeypatch, store, "answer_event")
    late = asyncio.create_task(click(ours))
    await gates.wait_for(1)
    await theirs.clients.erase(CLIENT)
    gates.closed = False
    shown = await click(theirs)
    paid = await spent(theirs)
    gates.let_go(0)
    with pytest.raises(ClientErased):
        await late
    for worker in (ours, theirs):
        again = await click(worker)
        assert again == shown
    assert await spent(theirs) == paid


async def test_an_answer_from_before_an_erasure_is_shown_to_nobody_after_it(
    two: tuple[DecisionServices, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored late, and read before its writer takes it back."""
    ours, theirs = two
    counted = Gates(monkeypatch, Tombstones, "refuse_if_erased")
    writing = Gates(monkeypatch, ours.store, "claim_event")
    late = asyncio.create_task(click(ours))
    await writing.wait_for(1)
    await theirs.clients.erase(CLIENT)
    writing.closed = False
    writing.let_go(0)
    await counted.wait_for(1)  # its answer is stored, after the erasure
    counted.closed = False
    with pytest.raises(ClientErased):
        await click(theirs)
    counted.let_go(0)
    with pytest.raises(ClientErased):
        await late
    shown = await click(theirs)
    assert (await click(ours)) == shown


async def test_a_retry_that_was_on_its_way_gets_no_answer_after_an_erasure(
    two: tuple[DecisionServices, ...], store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = two
    await click(ours)
    counted = Gates(monkeypatch, Tombstones, "refuse_if_erased")
    again = asyncio.create_task(click(ours))
    await counted.wait_for(1)  # it has read the stored answer
    await theirs.clients.erase(CLIENT)
    counted.let_go(0)
    with pytest.raises(ClientErased):
        await again


async def test_two_late_retries_and_one_after_the_erasure_show_one_answer(
    two: tuple[DecisionServices, ...], store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every order in which three answers can be stored."""
    ours, theirs = two
    for number, order in enumerate(itertools.permutations(range(3))):
        client = f"{CLIENT} {number}"

        async def once(worker: DecisionServices, client: str = client) -> Recommendation:
            ask = Ask("p-dap", client, (0.1, 0.2), event_id=f"of {client}")
            return await worker.recommend.recommend(ask)

        with monkeypatch.context() as patch:
            gates = Gates(patch, store, "answer_event")
            asked = [asyncio.create_task(once(worker)) for worker in (ours, theirs)]
            await gates.wait_for(2)
            await theirs.clients.erase(client)
            asked.append(asyncio.create_task(once(theirs)))
            await gates.wait_for(3)
            for call in order:
                gates.let_go(call)
                await asyncio.wait([asked[call]])
        for late in asked[:2]:
            assert isinstance(late.exception(), (ClientErased, UnknownDecision))
        after = await once(ours)
        if asked[2].exception() is None:
            assert asked[2].result() == after
        assert await once(theirs) == after


async def test_feedback_on_an_answer_from_before_teaches_nothing(
    two: tuple[DecisionServices, ...], clock: Clock
) -> None:
    ours, theirs = two
    answer = await ours.recommend.recommend(Ask("fclub", CLIENT))
    await theirs.clients.erase(CLIENT)
    clock.now += 5
    told = Feedback(1.0, recommendation_id=answer.recommendation_id)
    assert not (await ours.feedback.record(told)).learned
    assert not await has_own_sums(ours)
    await fed_back(ours)
    assert await has_own_sums(ours)


@pytest.mark.parametrize("others", [1, 30 * 86_400])
async def test_one_erasure_serves_a_whole_ledger_group(
    store: MemoryStore, clock: Clock, others: int
) -> None:
    """Its members share a principal, and keep decisions for times of their own."""
    services = await opened(store, clock)
    for name, algorithm, seconds in (("a", "fclub", 3_600), ("b", "p-dap", others)):
        written = {"algorithm": algorithm, **SAMPLES[algorithm].document}
        written |= {"ledger": "shared", "decision_ttl_seconds": seconds}
        await services.registry.put(name, read_document(written))
    learned = []
    before = await services.recommend.recommend(Ask("a", CLIENT))
    assert (await services.clients.erase(CLIENT)).certificate.erasure == 1
    clock.now += 60
    for answer in (before, await services.recommend.recommend(Ask("a", CLIENT))):
        told = Feedback(1.0, recommendation_id=answer.recommendation_id)
        learned.append((await services.feedback.record(told)).learned)
    assert learned == [False, True]
    await services.close()


async def test_a_certificate_has_the_stores_time_not_the_services(
    store: MemoryStore, clock: Clock
) -> None:
    astray = Clock()
    astray.now = 12.0
    services = await opened(store, astray)
    written = read_document({"algorithm": "p-dap", **SAMPLES["p-dap"].document})
    await services.registry.put("p-dap", written)
    certificate = (await services.clients.erase(CLIENT)).certificate
    assert certificate.at == clock.now != astray.now
    await services.close()


async def test_a_certificate_says_what_was_erased_and_what_remains(
    two: tuple[DecisionServices, ...], clock: Clock
) -> None:
    ours, theirs = two
    for write in (retried, profiled, answered, fed_back):
        await write(ours)
    erased = await ours.clients.erase(CLIENT)
    content = erased.certificate.content()
    assert content["client"] == CLIENT
    assert content["erased_at"] == clock.now
    assert content["erased"]["stored_answers"] == 1
    assert content["erased"]["records"] == {"fclub": 1, "collaborative": 1, "p-rec": 1}
    assert content["remains"] == REMAINS
    assert content["erased"]["device_keys"] == 0
    assert content["erasure"] == 1
    assert theirs.clients.verify(certificate=json.loads(json.dumps(content)), seal=erased.seal)
    # Nothing of it can be changed, and nobody else's seal will do.
    for change in ({"client": "another"}, {"erasure": 2}, {"erased": {}}, {"more": 1}):
        assert not ours.clients.verify(certificate={**content, **change}, seal=erased.seal)
    assert not ours.clients.verify(certificate=content, seal="")
    assert not ours.clients.verify(certificate=content, seal="\udcff" + erased.seal[1:])
    again = await ours.clients.erase(CLIENT)
    assert again.certificate.erasure == 2
    assert (again.certificate.events, again.certificate.records) == (0, {})
    other = await opened(MemoryStore(clock=clock), clock)
    assert not other.clients.verify(certificate=content, seal=erased.seal)
    await other.close()


async def test_keys_of_the_clients_devices_open_nothing_any_more(
    two: tuple[DecisionServices, ...],
) -> None:
    ours, _ = two
    await ours.devices.create(
        client=CLIENT, recommenders=frozenset({"collaborative"}), label="phone"
    )
    erased = await ours.clients.erase(CLIENT)
    assert erased.certificate.devices == 1
    assert (await ours.clients.erase(CLIENT)).certificate.devices == 0


async def test_the_ledger_remains(services: DecisionServices) -> None:
    await ask(services, event_id="one")
    await services.clients.erase("someone")
    report = await services.clients.budget(recommender="films", client="someone")
    assert report.answers.spent is not None
    assert report.answers.spent.epsilon == 1.0


def test_what_is_no_json_has_no_seal() -> None:
    assert sealed_content({"b": 1, "a": 2}) == b'{"a":2,"b":1}'
    with pytest.raises(InvalidArgument):
        sealed_content({"a": float("nan")})
    assert is_seal("0a", b"\n")
    assert not is_seal("0b", b"\n")
