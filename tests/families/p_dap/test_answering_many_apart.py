"""What is wrong with one question, or with one lot, stays with it."""

import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from discreet.families.p_dap.contract import Decision
from discreet.families.questions import Ask
from discreet.decisions.runtime import Runtime
from discreet.privacy.events import RandomisedResponse
from tests.decisions.conftest import document
from tests.families.p_dap.patchy import WAYS, Watch, Way, in_a_batch, kinds, open_patchy

pytestmark = pytest.mark.anyio


@pytest.fixture
async def runtime(anyio_backend: str) -> AsyncIterator[Runtime]:
    opened = await open_patchy()
    await opened.registry.put("films", document(items=list("abcd")))
    yield opened
    await opened.close()


def asks(contexts: Sequence[Sequence[float]], **changes: Any) -> list[Ask]:
    return [
        Ask("films", f"client {number}", context, **changes)
        for number, context in enumerate(contexts)
    ]


@WAYS
@pytest.mark.parametrize("wrong", [math.nan, -0.1, 1.1, math.inf])
@pytest.mark.parametrize("place", [0, 1])
async def test_a_context_outside_the_cube_is_its_own_error(
    runtime: Runtime, ask_all: Way, wrong: float, place: int
) -> None:
    bad = [0.5, 0.5]
    bad[place] = wrong
    answers = await ask_all(runtime, asks([[0.2, 0.3], bad, [0.4, 0.1]]))
    assert kinds(answers) == ["personalised", "InvalidArgument", "personalised"]


async def test_a_lot_that_is_withheld_takes_no_other_with_it(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(monkeypatch)
    seen = 0

    def greedy_at_first(one: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen > 250:
            return one
        assert isinstance(one, Decision)
        return replace(one, events=(RandomisedResponse(2.0),))

    watch.change = greedy_at_first
    many = asks([[0.5, 0.5]] * 300) + asks([[0.5, 0.5]], limit=2)
    answers = await in_a_batch(runtime, many)
    assert kinds(answers) == ["Underpaid"] * 250 + ["personalised"] * 51
