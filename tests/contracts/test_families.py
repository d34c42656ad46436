"""Promises that every family keeps, found by reflection: a further one is held to them at once."""

import asyncio
import copy
import dataclasses
import gc
import inspect
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import pytest

import discreet.families
from discreet.decisions.release import Releaser
from discreet.decisions.services import DecisionServices, open_services
from discreet.errors import DiscreetError
from discreet.families.cards import GuaranteeCard
from discreet.families.contract import Recommender
from discreet.families.observer import NullObserver
from discreet.families.questions import Answered, Decision, Question
from discreet.families.registration import FAMILIES, read_document
from discreet.privacy.noise import SystemNoise
from discreet.research.noise import SeededNoise
from discreet.state.memory import MemoryStore
from discreet.store_metrics import measured
from tests.contracts.samples import SAMPLES, OftenAsked, asks, build, play, release
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

ALGORITHMS = sorted(name for name in FAMILIES if not name.startswith("stub"))
ROOMS = ("document", "model", "learning", "guarantee", "recommender")


def test_every_family_has_a_sample() -> None:
    assert sorted(SAMPLES) == ALGORITHMS


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_family_has_the_same_rooms(algorithm: str) -> None:
    package = Path(inspect.getfile(FAMILIES[algorithm])).parent
    assert package.parent == Path(discreet.families.__path__[0])
    assert set(ROOMS) <= {path.stem for path in package.glob("*.py")}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_family_is_one_class_of_the_contract(algorithm: str) -> None:
    family = FAMILIES[algorithm]
    assert issubclass(family, Recommender)
    assert family.algorithm == algorithm
    assert not inspect.isabstract(family)
    assert family.document_class.model_fields["algorithm"].annotation is not str


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_building_does_no_input_or_output(algorithm: str) -> None:
    class Untouchable(MemoryStore):
        def __getattribute__(self, name: str) -> Any:
            if not name.startswith("_"):
                raise AssertionError(f"building a recommender uses the store: {name}")
            return super().__getattribute__(name)

    build(algorithm, store=Untouchable())


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_card_is_complete(algorithm: str) -> None:
    card = build(algorithm).guarantee()
    assert isinstance(card, GuaranteeCard)
    assert card.algorithm == algorithm
    for text in (card.protected, card.against, card.neighbours, card.unit):
        assert len(text) > 5
    assert card.not_covered
    for price in (card.answers, card.feedback):
        assert price.protects
        assert price.mechanism
    assert set(card.as_json()) >= {"answers", "feedback", "not_covered", "closed_loop"}


@pytest.mark.parametrize("algorithm", [one for one in ALGORITHMS if SAMPLES[one].releases])
async def test_a_release_computes_beside_the_event_loop(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Making, writing and reading a model waits here until the loop has turned.

    On the loop itself it would wait in vain.
    """
    recommender = build(algorithm)
    calls: dict[str, list[bool]] = {}
    turning = asyncio.get_running_loop()

    def beside(name: str) -> None:
        method = getattr(recommender, name)

        def waiting(*given: Any) -> Any:
            turned = threading.Event()
            turning.call_soon_threadsafe(turned.set)
            calls.setdefault(name, []).append(turned.wait(PATIENCE))
            return method(*given)

        monkeypatch.setattr(recommender, name, waiting)

    for name in ("release", "encode", "figures", "decode"):
        beside(name)
    releaser = Releaser(
        store=recommender.store, noise=SystemNoise(), observer=NullObserver(), clock=time.time
    )
    await SAMPLES[algorithm].prepare(recommender)
    await play(recommender, algorithm, rounds=5, seed=0)
    assert await releaser.release(recommender)
    recommender.current = dataclasses.replace(recommender.current, number=0)
    await releaser.load(recommender)
    assert recommender.current.number == 1
    assert set(calls) == {"release", "encode", "figures", "decode"}
    assert all(turned for each in calls.values() for turned in each)


async def decided(recommender: Recommender[Any], questions: list[Question], seed: int) -> Any:
    own = await recommender.read_own(questions)
    return recommender.decide(recommender.current.model, questions, own, SeededNoise(seed))


async def prepared(algorithm: str, *, seed: int = 0, rounds: int = 30) -> Recommender[Any]:
    recommender = build(algorithm, noise=SeededNoise(seed))
    await SAMPLES[algorithm].prepare(recommender)
    await play(recommender, algorithm, rounds=rounds, seed=seed)
    if SAMPLES[algorithm].releases:
        await release(recommender, SeededNoise(seed))
    return recommender


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_the_same_seed_decides_the_same(algorithm: str) -> None:
    recommender = await prepared(algorithm)
    questions = [recommender.question(ask) for ask in asks(algorithm) * 5]
    first = await decided(recommender, questions, 3)
    assert all(isinstance(one, Decision) for one in first)
    assert await decided(recommender, questions, 3) == first


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_deciding_changes_neither_model_nor_questions(algorithm: str) -> None:
    recommender = await prepared(algorithm)
    questions = [recommender.question(ask) for ask in asks(algorithm)]
    before = copy.deepcopy(questions)
    encoded = recommender.encode(recommender.current.model)
    await decided(recommender, questions, 1)
    assert recommender.encode(recommender.current.model) == encoded
    assert [repr(one) for one in questions] == [repr(one) for one in before]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_a_model_is_read_as_it_was_written(algorithm: str) -> None:
    recommender = await prepared(algorithm)
    content = recommender.encode(recommender.current.model)
    assert recommender.encode(recommender.decode(content)) == content
    if SAMPLES[algorithm].releases:
        with pytest.raises(ValueError, match=r".*"):
            recommender.decode(b"\x93 not a model")


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if SAMPLES[name].releases])
async def test_answers_follow_the_model_and_not_the_sums_behind_it(algorithm: str) -> None:
    """Two stores with different sums of other people, and one model: the same answers."""
    recommender = await prepared(algorithm, seed=0)
    other = await prepared(algorithm, seed=5, rounds=45)
    other.adopt(number=9, released_at=0.0, model=recommender.current.model)
    asked = asks(algorithm, "a newcomer") * 10
    found = []
    for one in (recommender, other):
        questions = [one.question(ask) for ask in asked]
        decisions = await decided(one, questions, 4)
        found.append([(each.items, each.choices) for each in decisions])
    assert found[0] == found[1]


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if SAMPLES[name].releases])
async def test_what_a_release_asks_of_the_store_does_not_tell_about_feedback(
    algorithm: str,
) -> None:
    asked = OftenAsked()
    found = []
    for rounds in (0, 1, 60):
        recommender = build(algorithm, store=measured(MemoryStore(), asked))
        await SAMPLES[algorithm].prepare(recommender)
        await play(recommender, algorithm, rounds=rounds, seed=0)
        asked.operations.clear()
        await release(recommender, SeededNoise(1))
        await recommender.tend()
        found.append(asked.operations.copy())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_the_price_does_not_depend_on_private_data(algorithm: str) -> None:
    recommender = await prepared(algorithm)
    prices = {recommender.price(recommender.question(ask)) for ask in asks(algorithm)}
    assert len(prices) == 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_an_answer_that_costs_nothing_known_says_so(algorithm: str) -> None:
    """Whoever is told no epsilon is told why."""
    recommender = await prepared(algorithm)
    (answered,) = await recommender.answer(
        [recommender.question(asks(algorithm, "a newcomer")[0])], [None]
    )
    assert isinstance(answered, Answered)
    report = recommender.report(answered)
    if report.epsilon is None or not answered.decision.personalised:
        assert answered.decision.reason


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_each_question_fails_alone(algorithm: str) -> None:
    recommender = await prepared(algorithm)
    questions = [recommender.question(ask) for ask in asks(algorithm, "c")]
    answers = await recommender.answer(questions, [None] * len(questions))
    assert len(answers) == len(questions)
    assert all(isinstance(one, Answered | DiscreetError) for one in answers)


async def worker(store: MemoryStore) -> DecisionServices:
    return await open_services(store=store, noise=SystemNoise(), lease_seconds=0.05)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_every_worker_drops_a_recommender_with_its_memory(algorithm: str) -> None:
    store = MemoryStore()
    workers = [await worker(store), await worker(store)]
    document = read_document({"algorithm": algorithm, **SAMPLES[algorithm].document})
    await workers[0].registry.put("sample", document)
    held = []
    for each in workers:
        recommender = await each.registry.find("sample")
        if not held:
            await SAMPLES[algorithm].prepare(recommender)
        await play(recommender, algorithm, rounds=4, seed=len(held))
        held.append(weakref.ref(recommender))
        del recommender
    await workers[0].registry.remove("sample")
    await workers[1].registry.refresh()
    for each in workers:
        await each.background.stop()
    gc.collect()
    assert [reference() for reference in held] == [None, None]
    for each in workers:
        await each.close()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_a_removed_recommender_leaves_nothing_but_ledgers_and_claims(algorithm: str) -> None:
    store = MemoryStore()
    services = await worker(store)
    document = read_document({"algorithm": algorithm, **SAMPLES[algorithm].document})
    await services.registry.put("sample", document)
    recommender = await services.registry.find("sample")
    await SAMPLES[algorithm].prepare(recommender)
    await play(recommender, algorithm, rounds=10, seed=0)
    await services.background.stop()
    if SAMPLES[algorithm].releases:
        await services.releaser.release(recommender)
    await play(recommender, algorithm, rounds=5, seed=1)
    await services.registry.remove("sample")
    left = {
        name: value
        for name in ("_open", "_frozen", "_own", "_counts", "_blobs", "_pages", "_rosters")
        if (value := getattr(store, name))
    }
    queued = {name: held for name, held in store._queues.items() if held}
    assert (left, queued) == ({}, {})
    await services.close()
