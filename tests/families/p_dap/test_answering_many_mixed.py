"""Batches of all sorts of questions: each is answered its own way, in order, and counted alike."""

import math
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from discreet.families.questions import Ask
from discreet.decisions.clients import budget_of
from discreet.families.p_dap.answering_many import joins
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.decisions.recommend import recommend
from discreet.decisions.runtime import Runtime
from discreet.errors import DiscreetError
from discreet.metrics import Metrics
from tests.decisions.conftest import document
from tests.families.p_dap.patchy import (
    WAYS,
    Watch,
    Way,
    in_a_batch,
    kinds,
    open_patchy,
    principal,
    store_of,
)

pytestmark = pytest.mark.anyio

HERE = [0.2, 0.8]
OPEN = {"mode": "none"}
VENDOR = [{"name": "b", "url": "http://b.example"}]


async def fill(runtime: Runtime) -> Runtime:
    """Put recommenders that answer many at once, and others that cannot."""
    put = runtime.registry.put
    for name in ("films", "books"):
        await put(name, document(items=[f"{name} {each}" for each in "abcd"]))
    await put("open", document(items=["open a", "open b"], privacy=OPEN))
    await put("alone", document(items=["alone a", "alone b"]))
    await runtime.registry.hide_item("alone", "alone b", True)
    await put("shop", document(items=["shop a", "shop b"], vendors=VENDOR))
    await put("empty", document(items=["empty a"]))
    await runtime.registry.hide_item("empty", "empty a", True)
    refusing = {"epsilon": 1.0, "budget": {"epsilon": 1.0}, "on_exhausted": "refuse"}
    await put("strict", document(items=["strict a", "strict b"], privacy=refusing))
    return runtime


@pytest.fixture
async def runtime(anyio_backend: str) -> AsyncIterator[Runtime]:
    opened = await fill(await open_patchy())
    yield opened
    await opened.close()


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(monkeypatch)


def ask(recommender: str = "films", client: str = "ada", **changes: Any) -> Ask:
    fields: dict[str, Any] = {"context": HERE, **changes}
    return Ask(recommender=recommender, client=client, **fields)


MIXED: list[tuple[Ask, str]] = [
    (ask(), "films one"),
    (ask("open"), "open one"),
    (ask("books", limit=2), "books two"),
    (ask("shop"), "shop one"),
    (ask(client="bob", candidates=["films c"]), "films c"),
    (ask(client="bob"), "films one"),
    (ask("nobody"), "UnknownRecommender"),
    (ask("alone"), "alone a"),
    (ask(context=[0.2]), "InvalidArgument"),
    (ask(context=[0.2, 1.5]), "InvalidArgument"),
    (ask(context=[]), "InvalidArgument"),
    (ask("empty"), ""),
    (ask("books"), "books one"),
    (ask(client="cid", exclude=["films a", "films b", "films d"]), "films c"),
    (ask(client="cid", exclude=["never heard of"]), "films one"),
    (ask(features=(0.5,)), "InvalidArgument"),
    (ask(round="r"), "InvalidArgument"),
    (ask(category="c"), "InvalidArgument"),
    (ask(client="dot", event_id="click"), "films one"),
    (ask(client="dot", limit=9), "films four"),
    (ask("books", client="eve", context=[1, 0]), "books one"),
]
COUNTS = {1: "one", 2: "two", 4: "four"}


def told(answer: Any) -> str:
    """Return whose items these are and how many, or which, where there was one to choose."""
    if isinstance(answer, DiscreetError):
        return type(answer).__name__
    if not answer.items:
        return ""
    names = {item.split()[0] for item in answer.items}
    [name] = names
    return f"{name} {COUNTS[len(answer.items)]}"


@WAYS
async def test_each_question_is_answered_its_own_way_and_in_its_place(
    runtime: Runtime, watch: Watch, ask_all: Way
) -> None:
    answers = await ask_all(runtime, [one for one, _ in MIXED])
    for answer, (question, expected) in zip(answers, MIXED, strict=True):
        if expected in ("films c", "alone a"):
            assert answer.items == (expected,), question
            assert answer.privacy.epsilon == 0.0
        else:
            assert told(answer) == expected, question
    # Two questions to films and two to books were plain enough; nothing else may go that way.
    assert sorted(map(len, watch.lots)) == [2, 2]
    assert [answers[row].privacy.epsilon for row in (0, 2, 5, 12, 14, 18, 19)] == [
        1,
        2,
        1,
        1,
        1,
        1,
        3,
    ]
    assert answers[1].privacy.epsilon is None


@pytest.mark.parametrize("name", ["open", "alone", "shop", "empty"])
async def test_who_cannot_answer_many_says_so(runtime: Runtime, name: str) -> None:
    recommender = await runtime.registry.find(name)
    assert isinstance(recommender, PartitionRecommender)
    assert not joins(recommender, ask(name))
    plain = await runtime.registry.find("films")
    assert isinstance(plain, PartitionRecommender)
    assert joins(plain, ask())


@pytest.mark.parametrize(
    ("arms", "lots"), [(4, [250, 250, 100]), (1_000, [200, 200, 200]), (4_000, [50] * 12)], ids=str
)
async def test_long_batches_are_answered_in_lots_that_fit_the_catalogue(
    runtime: Runtime, watch: Watch, arms: int, lots: list[int]
) -> None:
    items = [f"item {number}" for number in range(arms)]
    await runtime.registry.put("long", document(items=items))
    store = store_of(runtime)
    store.refusing = {principal(runtime, f"client {row}", "long") for row in (0, 249, 250, 599)}
    many = [
        ask("long", "poor" if row % 100 == 7 else f"client {row}", context=[row / 600, 0.5])
        for row in range(600)
    ]
    answers = await in_a_batch(runtime, many)
    assert store.lots == lots
    expected = [
        "StoreUnavailable"
        if row in (0, 249, 250, 599)
        else "plain"
        if row == 507  # the sixth of a client who can pay for five
        else "personalised"
        for row in range(600)
    ]
    assert kinds(answers) == expected
    assert sum(map(len, watch.lots)) == 600 - 5
    assert len({answer.recommendation_id for answer in answers if hasattr(answer, "items")}) == 596


SERIES = re.compile(
    r"^(discreet_(?:recommendations|recommended_items|items|epsilon|rho|budgets?_exhausted)\w*"
    r"\{[^}]*\}) (\S+)$",
    re.MULTILINE,
)


async def counted(asks: Sequence[Ask], ask_all: Way) -> dict[str, float]:
    """Return what the metrics say after these questions, asked in one way."""
    metrics = Metrics(version="1")
    runtime = await fill(await open_patchy(metrics, turns=ask_all is not one_by_one))
    store_of(runtime).refusing = {principal(runtime, "unlucky")}
    await ask_all(runtime, asks)
    await runtime.close()
    metrics.flush()
    return {name: float(value) for name, value in SERIES.findall(metrics.render().decode())}


async def one_by_one(runtime: Runtime, asks: Sequence[Ask]) -> list[Any]:
    assert runtime.asked is None  # or each of them would be a batch of one
    answers: list[Any] = []
    for each in asks:
        try:
            answers.append(await recommend(runtime, each))
        except DiscreetError as error:
            answers.append(error)
    return answers


@WAYS
async def test_metrics_count_many_as_they_count_each(anyio_backend: str, ask_all: Way) -> None:
    """Whatever became of them: answers, refusals, items, and every epsilon that was spent."""
    asks = [one for one, _ in MIXED]
    asks += [ask("films", "greedy") for _ in range(9)]
    asks += [ask("strict", "greedy") for _ in range(4)]
    asks += [ask("films", client) for client in ("x", "y", "z")]
    many, single = await counted(asks, ask_all), await counted(asks, one_by_one)
    assert many.keys() == single.keys()
    for name, value in single.items():
        assert math.isclose(many[name], value), name
    by_outcome = {
        outcome: sum(value for name, value in many.items() if f'outcome="{outcome}"' in name)
        for outcome in ("personalised", "degraded", "refused", "unprotected", "empty")
    }
    assert by_outcome == {
        "personalised": 21.0,
        "degraded": 4.0,
        "refused": 3.0,
        "unprotected": 1.0,
        "empty": 1.0,
    }


@WAYS
async def test_a_failed_debit_is_not_counted_as_an_answer(anyio_backend: str, ask_all: Way) -> None:
    with_it = await counted([ask(client="x"), ask(client="unlucky"), ask(client="y")], ask_all)
    without = await counted([ask(client="x"), ask(client="y")], ask_all)
    assert with_it == without
    assert sum(value for name, value in with_it.items() if "epsilon" in name) == 2.0


async def test_ledgers_say_the_same_after_a_batch_as_after_the_same_questions_one_by_one(
    anyio_backend: str,
) -> None:
    spent = []
    for way in (in_a_batch, one_by_one):
        runtime = await fill(await open_patchy(turns=way is not one_by_one))
        await way(runtime, [one for one, _ in MIXED])
        reports = [
            await budget_of(runtime, recommender=name, client=client)
            for name in ("films", "books", "alone", "shop")
            for client in ("ada", "bob", "cid", "dot", "eve")
        ]
        spent.append([report.spent for report in reports])
        await runtime.close()
    assert spent[0] == spent[1]
    assert len(set(spent[0])) > 3
