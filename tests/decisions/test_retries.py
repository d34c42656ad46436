"""Answers kept under event ids: sealed, erased with their client, and never another's."""

import json
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest

from discreet.decisions import retries
from discreet.decisions.retries import MADE_UP_SECONDS
from discreet.decisions.services import DecisionServices
from discreet.errors import DiscreetError, EventReused, StoreUnavailable, UnknownDecision
from discreet.families.questions import Ask, Candidate, Recommendation, Sparse
from discreet.families.registration import read_document
from discreet.state.memory import MemoryStore
from discreet.state.ready import Ready
from discreet.state.stores import Debit, Debited
from tests.contracts.samples import SAMPLES
from tests.decisions.conftest import Clock, ask, document, opened

pytestmark = pytest.mark.anyio


async def test_what_is_stored_shows_nothing(services: DecisionServices, store: MemoryStore) -> None:
    await services.registry.put("films", document(items=["a-very-telling-title", "another"]))
    await ask(services, event_id="click-1")
    assert "telling" not in repr(vars(store)["_events"]._entries)


async def test_an_answer_is_forgotten_in_time(services: DecisionServices, clock: Clock) -> None:
    first = await ask(services, event_id="click-1")
    clock.now += 86_400
    again = await ask(services, event_id="click-1")
    assert again.recommendation_id != first.recommendation_id


async def test_an_answer_of_a_newer_version_is_read(
    services: DecisionServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = retries._encode

    def newer(answer: Recommendation, erasures: int) -> bytes:
        values = json.loads(encode(answer, erasures))
        values[Recommendation._fields.index("privacy")].append("more about it")
        return json.dumps([*values, {"novelty": 1}]).encode()

    monkeypatch.setattr(retries, "_encode", newer)
    first = await ask(services, event_id="e")
    assert await ask(services, event_id="e") == first
    monkeypatch.setattr(retries, "_encode", lambda *_: b'{"another": "layout"}')
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await ask(services, event_id="f")


async def test_the_reason_is_kept(services: DecisionServices) -> None:
    for _ in range(5):
        await ask(services)
    first = await ask(services, event_id="click-1")
    assert first.reason is not None
    assert await ask(services, event_id="click-1") == first


@pytest.mark.parametrize(
    "change",
    [
        {"context": [0.9, 0.1]},
        {"candidates": ["b", "a"]},
        {"exclude": ["c"]},
        {"candidates": ["a", "b"], "exclude": ["a"]},
    ],
)
async def test_a_retry_gets_the_stored_answer_whatever_else_it_says(
    services: DecisionServices, change: dict[str, Any]
) -> None:
    first = await ask(services, event_id="click-1")
    assert await ask(services, event_id="click-1", **change) == first


async def test_guessing_the_context_of_an_event_teaches_nothing(
    services: DecisionServices,
) -> None:
    """The attack: ask again under a known event id with every context on a grid.

    If a retry were compared with the first question, the one context that is not refused would be
    the visitor's.
    """
    secret = [0.3, 0.7]
    first = await ask(services, event_id="click-1", context=secret)
    seen = set()
    for x in range(11):
        for y in range(11):
            try:
                seen.add(await ask(services, event_id="click-1", context=[x / 10, y / 10]))
            except EventReused:
                seen.add("refused")
    assert seen == {first}


@pytest.mark.parametrize("change", [{"limit": 2}, {"client": "another"}, {"recommender": "books"}])
async def test_what_is_public_is_compared(
    services: DecisionServices, change: dict[str, Any]
) -> None:
    await services.registry.put("books", document())
    await ask(services, event_id="click-1")
    with pytest.raises(EventReused, match="client, recommender or limit"):
        await ask(services, event_id="click-1", **change)


async def test_the_event_ids_of_a_persons_key_meet_nobody_elses(
    services: DecisionServices,
) -> None:
    shops = await ask(services, event_id="order-1")
    own = await ask(services, client="eve", event_id="order-1", personal=True)
    assert await ask(services, client="eve", event_id="order-1", personal=True) == own
    await ask(services, client="eve", event_id="order-2", personal=True)
    assert (await ask(services, event_id="order-2")).items
    assert await ask(services, event_id="order-1") == shops
    # Erasing the client finds them all the same.
    assert (await services.clients.erase("eve")).certificate.events == 2
    again = await ask(services, client="eve", event_id="order-1", personal=True)
    assert again.recommendation_id != own.recommendation_id


async def test_nothing_private_is_in_the_fingerprint(services: DecisionServices) -> None:
    fingerprint = services.recommend._stored._fingerprint
    plain = Ask("films", "c", candidates=["a"])
    others = [
        plain._replace(context=(0.5,)),
        plain._replace(features=Sparse((1,), (0.5,))),
        plain._replace(candidates=[Candidate("a", (0.5,))]),
        plain._replace(exclude=("b",)),
        plain._replace(category="crime"),
        plain._replace(round="monday"),
    ]
    assert {fingerprint(one) for one in others} == {fingerprint(plain)}


async def test_an_event_that_was_not_answered_has_no_recommendation(
    services: DecisionServices,
) -> None:
    with pytest.raises(UnknownDecision):
        await services.recommend._stored.recommendation_id("never")


class ForgetfulStore(MemoryStore):
    """Makes every debit, and loses the answer while `losing`."""

    losing = False

    def spend(self, debits: Sequence[Debit]) -> Awaitable[Sequence[Debited | DiscreetError]]:
        made = super().spend(debits)
        return Ready([StoreUnavailable("lost")] * len(debits)) if self.losing else made


@pytest.mark.parametrize("personal", [False, True])
@pytest.mark.parametrize("event_id", [None, "mine"])
async def test_a_debit_whose_answer_was_lost_is_made_once(
    event_id: str | None, personal: bool
) -> None:
    store = ForgetfulStore()
    services = await opened(store)
    await services.registry.put("films", document())

    async def spent() -> Any:
        report = (await services.clients.budget(recommender="films", client="someone")).answers
        return report.spent and report.spent.epsilon

    store.losing = True
    with pytest.raises(StoreUnavailable) as lost:
        await ask(services, event_id=event_id, personal=personal)
    store.losing = False
    assert await spent() == 1.0
    named = lost.value.event_id
    assert named is not None
    assert event_id in (None, named)
    answer = await ask(services, event_id=named, personal=personal)
    assert answer.personalised
    assert await spent() == 1.0, "the retry was free"
    assert await ask(services, event_id=named, personal=personal) == answer
    assert (await ask(services)).personalised
    assert await spent() == 2.0
    await services.close()


@pytest.mark.parametrize("event_id", [None, "mine"])
@pytest.mark.parametrize(("first", "later"), [(1, 1), (86_400, 1)])
async def test_no_mark_outlives_the_answer_that_it_paid_for(
    clock: Clock, event_id: str | None, first: int, later: int
) -> None:
    """The attack: answers that are soon forgotten, and one event again and again with other
    contexts, each answered from a fresh draw under the mark of a debit whose answer was lost."""
    store = ForgetfulStore(clock=clock)
    services = await opened(store, clock)
    await services.registry.put("films", document(decision_ttl_seconds=first))
    store.losing = True
    with pytest.raises(StoreUnavailable) as lost:
        await ask(services, event_id=event_id)
    store.losing = False
    await services.registry.put("films", document(decision_ttl_seconds=later))
    drawn = set()
    for place in range(0, 600, 2):
        clock.now += 2
        answer = await ask(services, event_id=lost.value.event_id, context=[place / 600, 0.5])
        if answer.personalised:
            drawn.add(answer.recommendation_id)
    report = await services.clients.budget(recommender="films", client="someone")
    assert report.answers.spent is not None
    assert len(drawn) <= report.answers.spent.epsilon
    await services.close()


async def test_each_of_a_batch_is_told_an_event_id_of_its_own() -> None:
    store = ForgetfulStore()
    services = await opened(store)
    await services.registry.put("films", document())
    store.losing = True
    asks = [Ask("films", f"client {number}", [0.2, 0.8]) for number in range(3)]
    outcomes = await services.recommend.recommend_many(asks)
    store.losing = False
    named = [one.event_id for one in outcomes if isinstance(one, StoreUnavailable)]
    assert len(set(named)) == 3
    for ask_, event_id in zip(asks, named, strict=True):
        answer = await services.recommend.recommend(ask_._replace(event_id=event_id))
        assert answer.privacy.spent is not None
        assert answer.privacy.spent.epsilon == 1.0
    await services.close()


async def test_a_made_up_id_is_forgotten_soon(
    services: DecisionServices, store: MemoryStore, clock: Clock
) -> None:
    await ask(services)
    (markers,) = store._markers.values()
    assert len(markers) == 1
    clock.now += MADE_UP_SECONDS
    assert len(markers) == 0


async def test_what_is_not_paid_for_leaves_no_mark(
    services: DecisionServices, store: MemoryStore
) -> None:
    while (await ask(services)).personalised:
        pass
    (markers,) = store._markers.values()
    before = len(markers)
    assert not (await ask(services)).personalised
    assert len(markers) == before


@pytest.mark.parametrize("algorithm", sorted(SAMPLES))
async def test_in_every_family_a_retry_tells_nothing_about_what_was_private(
    services: DecisionServices, algorithm: str
) -> None:
    """The attack, one by one and in a batch: the other private data under the same event id."""
    sample = SAMPLES[algorithm]
    written = read_document({"algorithm": algorithm, **sample.document})
    await services.registry.put("sample", written)
    await sample.prepare(await services.registry.find("sample"))
    first, other = (Ask("sample", "someone", event_id="e", **each) for each in sample.asks)
    answer = await services.recommend.recommend(first)
    principal = (await services.registry.find("sample")).principal("someone")
    before = await services.store.ledgers([principal])
    guesses = [other, first, other._replace(exclude=("i0",)), first._replace(exclude=("i1",))]
    if algorithm == "p-rec":
        guesses = [other, first, other._replace(round="round 7")]
    for guess in guesses:
        assert await services.recommend.recommend(guess) == answer
    assert await services.recommend.recommend_many(guesses) == [answer] * len(guesses)
    assert await services.store.ledgers([principal]) == before
