"""Planning for many: what each row reads, inherits and pays is what it would be alone."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.families.p_dap.adaptive_partition import AdaptivePartition, CellPlan
from discreet.families.p_dap.adaptive_partition_many import ManyPlan, plan_many
from discreet.families.p_dap.contract import Request
from discreet.errors import InvalidArgument, NothingToRecommend
from discreet.privacy.events import RandomisedResponse
from discreet.research.noise import SeededNoise
from tests.families.p_dap.many import ARMS, EVERY, clustered, learner, learner_of, taught

SHAPES = [(1, 2), (1, 3), (2, 2), (2, 3), (20, 2), (20, 3), (60, 2)]
"""Dimensions and segments: names are places, or digests from 49 bytes on."""


@cache
def stages(dimensions: int, segments: int) -> dict[str, AdaptivePartition]:
    """Return learners before and after splits, surveyed or not, with memory cold and warm."""
    shape = {"dimensions": dimensions, "segments": segments}
    found = {"untaught": learner(**shape)}
    for survey in (False, True):
        name = "surveyed" if survey else "unsurveyed"
        found[f"{name}, cold"] = learner_of(taught(1, survey=survey, **shape))
        warm = taught(1, survey=survey, **shape)
        for context in clustered(1, 60, dimensions):
            warm.decide(Request(context, EVERY), SeededNoise(0))
        found[f"{name}, warm"] = learner_of(warm)
        assert len(found[f"{name}, warm"].memory.split) > 2
    return found


def borders(segments: int) -> list[float]:
    """Return 0, 1 and borders between cells, with their nearest neighbours."""
    exact = {k / segments**level for level in (1, 2, 5) for k in (0, 1, segments**level - 1)}
    beside = {float(np.nextafter(value, to)) for value in exact for to in (0.0, 1.0)}
    return sorted(exact | beside | {1.0})


def same(many: ManyPlan, row: int, alone: CellPlan) -> bool:
    by_itself = many.row(row)
    return (
        by_itself.reads == many.reads[row] == alone.reads
        and by_itself.events == many.events == alone.events
        and np.array_equal(by_itself.prior, alone.prior)
        and by_itself.outlook is alone.outlook
        and all(by_itself.route.name(level) == alone.route.name(level) for level in range(4))
    )


@pytest.mark.parametrize(("dimensions", "segments"), SHAPES, ids=str)
@settings(max_examples=25)
@given(data=st.data())
def test_a_row_is_planned_as_it_would_be_alone(
    dimensions: int, segments: int, data: st.DataObject
) -> None:
    value = st.sampled_from(borders(segments)) | st.floats(0.0, 1.0)
    row = st.lists(value, min_size=dimensions, max_size=dimensions)
    contexts = np.array(data.draw(st.lists(row, min_size=1, max_size=6)))
    for one in stages(dimensions, segments).values():
        many = plan_many(one, contexts=contexts, available=EVERY)
        for place, context in enumerate(contexts):
            assert same(many, place, one.plan(request=Request(context, EVERY)))


@pytest.mark.parametrize(("dimensions", "segments"), SHAPES, ids=str)
def test_where_people_are_a_row_is_planned_as_it_would_be_alone(
    dimensions: int, segments: int
) -> None:
    contexts = clustered(1, 80, dimensions)
    depths = set()
    for one in stages(dimensions, segments).values():
        many = plan_many(one, contexts=contexts, available=EVERY)
        for place, context in enumerate(contexts):
            assert same(many, place, one.plan(request=Request(context, EVERY)))
        depths |= {(reads[0].level, len(reads)) for reads in many.reads}
    assert len({level for level, _ in depths}) > 2
    assert max(ahead for _, ahead in depths) > 1


def test_everybody_pays_for_the_deepest_level_in_geometric_mode() -> None:
    played = taught(mode="geometric", epsilon=0.5)
    depth = learner_of(played).memory.outlook.depth
    assert depth > 1
    plan = plan_many(learner_of(played), contexts=clustered(0, 9, 2), available=EVERY)
    assert plan.events == (RandomisedResponse(learner_of(played).epsilons[depth]),)


@pytest.mark.parametrize(
    "wrong", [[[0.5, 1.1]], [[-0.1, 0.5]], [[0.5, np.nan]], [[0.5]], [0.5, 0.5]], ids=str
)
def test_contexts_that_are_no_places_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^context: "):
        plan_many(learner(), contexts=np.array(wrong), available=EVERY)


def test_an_offer_that_cannot_be_made_is_refused() -> None:
    contexts = np.array([[0.5, 0.5]])
    with pytest.raises(NothingToRecommend):
        plan_many(learner(), contexts=contexts, available=EVERY[:0])
    with pytest.raises(InvalidArgument, match=r"^available: "):
        plan_many(learner(), contexts=contexts, available=np.array([0, ARMS]))
