"""The family behind its contract: prices, catalogues that change, models that are kept."""

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument, TokenForged
from discreet.families.budgets import FREE
from discreet.families.contextual import cells
from discreet.families.contextual.recommender import ContextualRecommender
from discreet.families.maps import ModelMap
from discreet.families.questions import Ask, Choice, PendingDecision
from discreet.research.noise import SeededNoise
from discreet.state.stores import EXACT
from tests.contracts.samples import NOW, build, play, release
from tests.decisions.conftest import Clock

CONTEXT = (0.1, 0.2, 0.9, 0.5, 0.3)


def contextual(**changes: Any) -> ContextualRecommender:
    made = build("contextual", **changes)
    assert isinstance(made, ContextualRecommender)
    return made


def test_each_personal_item_is_paid_for_and_the_rest_is_free() -> None:
    recommender = contextual()
    one = recommender.price(recommender.question(Ask("sample", "c", CONTEXT)))
    many = recommender.price(recommender.question(Ask("sample", "c", CONTEXT, limit=5)))
    assert one == many
    assert one.nano_epsilon == 10**9 // 4
    alone = Ask("sample", "c", CONTEXT, candidates=("i1",))
    assert recommender.price(recommender.question(alone)) == FREE
    exact = contextual(privacy={"answers": "exact"})
    assert exact.price(exact.question(Ask("sample", "c", CONTEXT))) == EXACT


@pytest.mark.parametrize("context", [(0.1,), (0.1, 0.2, 0.9, 0.5, 1.3)])
def test_contexts_of_another_shape_are_refused(context: Any) -> None:
    with pytest.raises(InvalidArgument, match="context"):
        contextual().question(Ask("sample", "c", context))


def test_a_token_of_another_catalogue_is_refused() -> None:
    recommender = contextual()
    pending = PendingDecision(
        recommender.generation, os.urandom(12), 1, b"c", True, (Choice(99, 1.0),), bytes(10)
    )
    with pytest.raises(TokenForged):
        recommender.learn(pending, 0, 1.0)


@pytest.mark.anyio
async def test_models_survive_being_stored_under_a_longer_catalogue() -> None:
    recommender = contextual(privacy={"feedback": "exact"})
    await play(recommender, "contextual", rounds=40, seed=0)
    await release(recommender, SeededNoise(0))
    kept = recommender.encode(recommender.current.model)
    longer = contextual(items=[f"i{n}" for n in range(8)], privacy={"feedback": "exact"})
    model = longer.decode(kept)
    assert model.sums.slots == 8
    assert model.sums.count.sum() == pytest.approx(40, abs=1e-3)
    assert set(model.outlook.odds.items.tolist()) == set(range(8))  # type: ignore[union-attr]


def test_a_model_of_another_shape_is_refused() -> None:
    other = contextual(context={"dimensions": 2})
    kept = other.encode(other.current.model)
    with pytest.raises(ValueError, match="shape"):
        contextual().decode(kept)


@pytest.mark.anyio
async def test_a_model_of_the_coarse_grid_is_read_in_the_fine_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A catalogue that has shrunk, or an earlier version, which knew no fine cells."""
    shape = {"context": {"dimensions": 2}, "privacy": {"feedback": "exact"}}
    monkeypatch.setattr(cells, "MOST_FINE", 0)
    coarse = contextual(**shape)
    await play(coarse, "p-dap", rounds=40, seed=0)  # asks of two numbers
    await release(coarse, SeededNoise(0))
    monkeypatch.undo()
    model = contextual(**shape).decode(coarse.encode(coarse.current.model))
    assert model.sums.count.sum() == pytest.approx(40, abs=1e-3)
    assert model.sums.liked.shape[1] == 4 * coarse.space.entries
    assert coarse.decode(contextual(**shape).encode(model)).sums.count.sum() == pytest.approx(
        40, abs=1e-3
    )


@pytest.mark.anyio
async def test_hidden_and_removed_items_vanish_at_once() -> None:
    recommender = contextual()
    await play(recommender, "contextual", rounds=40, seed=0)
    await release(recommender, SeededNoise(0))
    kept = recommender.encode(recommender.current.model)
    hidden = contextual(items=[{"id": f"i{n}", "hidden": n < 4} for n in range(6)])
    hidden.adopt(number=1, released_at=0.0, model=hidden.decode(kept))
    question = hidden.question(Ask("sample", "c", CONTEXT))
    decided = hidden.decide(hidden.current.model, [question] * 300, [None] * 300, SeededNoise(0))
    assert {decision.items[0] for decision in decided} == {"i4", "i5"}


@pytest.mark.anyio
async def test_old_feedback_fades_by_the_clock() -> None:
    recommender = contextual(
        learning={"half_life_days": 1_000 / 86_400}, privacy={"feedback": "exact"}
    )
    # The sample was made 1,000 seconds ago: one half-life.
    sums = recommender.current.model.sums
    liked = np.ones_like(sums.liked)
    object.__setattr__(sums, "liked", liked)
    object.__setattr__(sums, "count", np.ones_like(sums.count))
    gathered = await recommender.gather(1)
    after = recommender.release(recommender.current.model, gathered, SeededNoise(0))
    assert np.allclose(after.sums.liked, 0.5)


def test_two_numbers_can_be_drawn_as_a_map() -> None:
    assert contextual(context={"dimensions": 2}).part(ModelMap) is not None
    age = {"fields": {"age": {"type": "number", "range": [0, 120]}}}
    one = contextual(context=age)
    assert one.document.context.size == 2  # its place in the range, and whether it is missing
    assert not one.offers(ModelMap)


@pytest.mark.anyio
async def test_after_new_items_came_releases_are_soon_where_they_cost_time_alone() -> None:
    """Or everybody sees them until the next one, which an old recommender makes in an hour."""
    exact = {"privacy": {"feedback": "exact"}}
    for changes, sooner in ((exact, True), ({}, False), ({**exact, "releases": {}}, False)):
        recommender = contextual(**changes)
        await play(recommender, "contextual", rounds=60, seed=0)
        await release(recommender, SeededNoise(0))
        kept = recommender.encode(recommender.current.model)
        for more in (0, 1):
            changed = contextual(items=[f"i{n}" for n in range(6 + more)], **changes)
            changed.stored = replace(changed.stored, created=NOW - 1e8)
            changed.adopt(number=1, released_at=NOW - 10.0, model=changed.decode(kept))
            assert changed.due(NOW) == (more > 0 and sooner), (changes, more)
            # A day after they came the schedule is the usual one.
            changed.adopt(number=2, released_at=NOW + 86_400.0, model=changed.current.model)
            assert not changed.due(NOW + 86_400.0 + 3_000.0)


@pytest.mark.anyio
async def test_the_more_items_a_release_takes_the_less_often_new_ones_bring_it() -> None:
    exact = {"privacy": {"feedback": "exact"}, "context": {"dimensions": 1}}
    recommender = contextual(items=[f"i{n}" for n in range(5_000)], **exact)
    recommender.stored = replace(recommender.stored, created=NOW - 1e8)
    recommender.adopt(number=1, released_at=NOW, model=recommender.current.model)
    assert [recommender.due(NOW + pause) for pause in (5.0, 5.5)] == [False, True]


@pytest.mark.anyio
async def test_what_fades_does_not_tell_how_long_gathering_took() -> None:
    """How much there was to gather is private, and a released number must not know it."""
    kept = []
    for pause, work in ((20.0, 0.0), (20.0, 7.0), (30.0, 0.0)):
        recommender = contextual(learning={"half_life_days": 0.001})
        await play(recommender, "contextual", rounds=40, seed=0)
        await release(recommender, SeededNoise(0))
        recommender.clock = clock = Clock()
        clock.now = recommender.current.released_at + pause
        gathered = await recommender.gather(2)
        clock.now += work
        made = recommender.release(recommender.current.model, gathered, SeededNoise(1))
        kept.append(recommender.encode(made))
    assert kept[0] == kept[1]
    assert kept[0] != kept[2]
