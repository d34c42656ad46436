"""The decision log: complete, sampled alike, bounded, and never in the way of a request."""

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from discreet.decisions import decision_log
from discreet.decisions.services import DecisionServices
from discreet.errors import StoreUnavailable
from discreet.families.contract import Recommender
from discreet.families.experiments import ExperimentDocument
from discreet.families.observer import FamilyCounter, NullObserver
from discreet.families.questions import Ask, Feedback, Recommendation
from discreet.state.memory import MemoryStore
from tests.decisions.conftest import Clock, document, opened

pytestmark = pytest.mark.anyio


class Kept:
    """Keeps lines, or refuses them."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.broken = False
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def write(self, recommender: Recommender[Any], keep: str, lines: Sequence[bytes]) -> None:
        if self.broken:
            raise StoreUnavailable("gone")
        self.begun.set()
        await self.may_end.wait()
        self.lines += [json.loads(line) for line in lines]

    async def tidy(self, recommenders: Sequence[Recommender[Any]]) -> None: ...

    async def forget(self, recommender: Recommender[Any], pseudonym: str) -> int:
        return 0


class Counted(NullObserver):
    def __init__(self) -> None:
        self.lost = 0

    def count(
        self,
        *,
        recommender: str,
        what: FamilyCounter,
        label: str = "",
        amount: int = 1,
        peer: str = "",
    ) -> None:
        self.lost += amount if what is FamilyCounter.NOT_LOGGED else 0


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    found = Kept()
    monkeypatch.setattr("discreet.decisions.services.LogStream", lambda store: found)
    return found


@pytest.fixture
def observer() -> Counted:
    return Counted()


@pytest.fixture
async def services(
    anyio_backend: str, store: MemoryStore, clock: Clock, kept: Kept, observer: Counted
) -> Any:
    found = await opened(store, clock, observer=observer)
    await found.decision_log.stop()
    await found.registry.put("films", document(log={"to": "stream"}))
    yield found
    await found.close()


async def ask(services: DecisionServices, client: str = "ada", **fields: Any) -> Recommendation:
    return await services.recommend.recommend(Ask("films", client, (0.2, 0.8), **fields))


async def test_what_is_being_written_is_written_before_the_end(
    services: DecisionServices, kept: Kept
) -> None:
    kept.may_end.clear()
    await ask(services)
    services.decision_log.start()
    await kept.begun.wait()
    await ask(services, "bob")
    ending = asyncio.create_task(services.decision_log.stop())
    erasing = asyncio.create_task(
        services.decision_log.forget(await services.registry.find("films"), "ada")
    )
    for _ in range(10):
        await asyncio.sleep(0)
    assert kept.lines == []
    assert not ending.done()
    assert not erasing.done()  # or it would look through lines that are not there yet
    kept.may_end.set()
    await asyncio.gather(ending, erasing)
    assert len({line["id"] for line in kept.lines}) == len(kept.lines) == 2


async def test_a_decision_and_its_reward_are_two_lines(
    services: DecisionServices, kept: Kept, clock: Clock
) -> None:
    answer = await ask(services)
    clock.now += 5
    await services.feedback.record(Feedback(1.0, recommendation_id=answer.recommendation_id))
    again = Feedback(1.0, recommendation_id=answer.recommendation_id)
    assert (await services.feedback.record(again)).duplicate
    assert kept.lines == []  # nobody waited for them
    await services.decision_log.write()
    decision, feedback = kept.lines
    assert decision["kind"] == "decision"
    assert decision["context"] == [0.2, 0.8]
    assert decision["items"] == [decision["item"]] == list(answer.items)
    assert 0 < decision["propensity"] <= 1
    assert "candidates" not in decision
    assert feedback == {
        "kind": "feedback",
        "id": decision["id"],
        "recommender": "films",
        "time": decision["time"] + 5,
        "client": decision["client"],
        "position": 0,
        "reward": 1.0,
    }
    assert "ada" not in json.dumps(kept.lines)


async def test_propensities_are_of_the_mechanism_with_its_shortlist(
    services: DecisionServices, kept: Kept
) -> None:
    """Of a list it is the first item's."""
    for place in range(40):
        await ask(services, f"client {place}", limit=3, candidates=["a", "b", "c"])
        await ask(services, f"client {place}", exclude=["d"])
    await services.decision_log.write()
    for line in kept.lines:
        assert sorted(line["candidates"]) == ["a", "b", "c"]
        assert line["propensity"] == pytest.approx(1 / 3, abs=1e-6)  # nothing is learned yet
    assert sum(len(line["items"]) == 3 for line in kept.lines) == 40


async def test_a_retry_is_no_further_decision(services: DecisionServices, kept: Kept) -> None:
    for _ in range(2):
        await ask(services, event_id="once")
    await services.decision_log.write()
    assert len(kept.lines) == 1


async def test_feedback_is_sampled_with_its_decision(
    services: DecisionServices, kept: Kept
) -> None:
    """900 decisions at one half: within 6 deviations of 450, but for a chance of 2e-9; a share
    wrong by 30% is nine off."""
    await services.registry.put("films", document(log={"to": "stream", "sample": 0.5}))
    asks = [Ask("films", f"client {n}", (0.5, 0.5)) for n in range(900)]
    for answer in await services.recommend.recommend_many(asks):
        assert isinstance(answer, Recommendation)
        await services.feedback.record(Feedback(0.0, recommendation_id=answer.recommendation_id))
    await services.decision_log.write()
    decisions = {line["id"] for line in kept.lines if line["kind"] == "decision"}
    assert decisions == {line["id"] for line in kept.lines if line["kind"] == "feedback"}
    assert 360 < len(decisions) < 540


async def test_what_finds_no_room_is_lost_aloud(
    services: DecisionServices, kept: Kept, observer: Counted
) -> None:
    services.decision_log._most = 2
    answers = [await ask(services, f"client {n}") for n in range(5)]
    for answer in answers:
        await services.feedback.record(Feedback(0.0, recommendation_id=answer.recommendation_id))
    await services.decision_log.write()
    assert [line["kind"] for line in kept.lines] == ["decision"] * 2 + ["feedback"] * 2 + ["lost"]
    assert (kept.lines[-1]["decisions"], kept.lines[-1]["feedback"]) == (3, 3)
    assert observer.lost == 3, "how much feedback came is not counted anywhere"


async def test_answers_go_on_while_the_log_cannot_be_written(
    services: DecisionServices,
    kept: Kept,
    observer: Counted,
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept.broken = True
    with caplog.at_level(logging.ERROR):
        for n in range(3):
            assert (await ask(services, f"client {n}")).items
            await services.decision_log.write()
    assert len([one for one in caplog.records if "cannot be written" in one.message]) == 1
    assert observer.lost == 3
    kept.broken = False
    await services.decision_log.write()
    assert kept.lines[-1]["decisions"] == 3


async def test_it_is_off_unless_a_document_asks_for_it(
    services: DecisionServices, kept: Kept
) -> None:
    await services.registry.put("films", document())
    answer = await ask(services)
    await services.feedback.record(Feedback(1.0, recommendation_id=answer.recommendation_id))
    await services.decision_log.write()
    assert kept.lines == []


async def test_it_is_said_aloud(
    services: DecisionServices, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger=decision_log.__name__):
        for _ in range(2):
            services.decision_log._announce()
    (said,) = caplog.messages
    assert "films: not covered by its guarantee" in said
    assert "logged in the clear to a stream in the store, for 30d" in said
    card = (await services.registry.find("films")).card()
    assert "decisions are logged in the clear" in card.not_covered[0]


async def test_an_erasure_says_what_it_cannot_reach(services: DecisionServices, kept: Kept) -> None:
    await services.registry.put("films", document(log={"to": "stdout"}))
    lines: list[bytes] = []

    async def write(recommender: object, keep: str, some: Sequence[bytes]) -> None:
        lines.extend(some)

    services.decision_log._sinks["stdout"].write = write  # type: ignore[method-assign]
    await ask(services)
    erased = await services.clients.erase("ada")
    remains = erased.certificate.content()["remains"]["decision_log_films"]
    assert json.loads(lines[0])["client"] in remains
    await services.registry.put("films", document())
    erased = await services.clients.erase("ada")
    assert "decision_log_films" not in erased.certificate.content()["remains"]


async def test_feedback_that_is_held_until_its_time_is_written_once(
    services: DecisionServices, kept: Kept
) -> None:
    changed = document(log={"to": "stream"}, reward={"wait": "30m", "default": 0})
    await services.registry.put("films", changed)
    answer = await ask(services)
    for _ in range(2):
        await services.feedback.record(Feedback(1.0, recommendation_id=answer.recommendation_id))
    await services.decision_log.write()
    assert [line["kind"] for line in kept.lines] == ["decision", "feedback"]
    assert kept.lines[1]["reward"] == 1.0


async def test_what_a_shadow_would_show_is_in_the_log_and_costs_nobody_anything(
    services: DecisionServices, kept: Kept
) -> None:
    logged = {"log": {"to": "stream"}, "ledger": "shop"}
    await services.registry.put("champion", document(**logged))
    await services.registry.put("newcomer", document(items=["only"], ledger="shop"))
    await services.registry.put("elsewhere", document(context={"dimensions": 3}))
    plain = ExperimentDocument(traffic={"champion": 1.0})
    beside = plain.model_copy(update={"shadow": ["newcomer", "elsewhere"]})
    spent = []
    for experiment in (plain, beside):
        await services.experiments.put("home", experiment)
        answer = await services.recommend.recommend(Ask("home", "ada", (0.2, 0.8)))
        assert answer.items[0] != "only"
        assert answer.privacy is not None
        spent.append(answer.privacy)
    await services.decision_log.write()
    before, after = (line for line in kept.lines if line["kind"] == "decision")
    assert "shadow" not in before
    assert after["recommender"] == "champion"
    # The second cannot read a context of two numbers.
    assert after["shadow"] == {"newcomer": ["only"], "elsewhere": None}
    assert spent[0].epsilon == spent[1].epsilon
    assert spent[1].spent.epsilon == pytest.approx(2 * spent[0].spent.epsilon)
