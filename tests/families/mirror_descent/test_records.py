"""What records add to the sums is the same whether they are few or many, short or long."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.mirror_descent.learning import SLICE, MirrorLearner
from discreet.families.mirror_descent.model import NodeSums
from discreet.families.mirror_descent.reading import NO_FEATURES, QuestionReader, RecordParts
from discreet.families.mirror_descent.records import FEW_FEATURES, FEW_RECORDS, record_increments
from discreet.families.mirror_descent.sparse import SparseRow, steps_on_grid
from tests.families.mirror_descent.test_reading import built, node

ITEMS = [
    {"id": "plain", "features": {"indices": [0, 2], "values": [1.0, 0.5]}},
    {"id": "long", "features": {"indices": list(range(300)), "values": [0.7] * 300}},
    {"id": "none", "features": {"indices": [], "values": []}},
]


def some_row(rng: np.random.Generator, most: int, dimension: int) -> SparseRow:
    indices = np.sort(rng.choice(dimension, rng.integers(0, most + 1), replace=False))
    return SparseRow(indices.tolist(), rng.normal(size=len(indices)).tolist())


def some_records(
    *, crossed: bool, seed: int
) -> tuple[QuestionReader, MirrorLearner, list[RecordParts], list[float]]:
    rng = np.random.default_rng(seed)
    shape = {"clients": 90, "items": 400} if crossed else {"dimension": 2 * SLICE}
    features = {**shape, "most_nonzeros": 300}
    recommender = built(node(features=features, items=ITEMS))
    dimension = 400 if crossed else 2 * SLICE
    parts: list[RecordParts] = []
    for _ in range(40):
        client = some_row(rng, 5, 90) if crossed else NO_FEATURES
        item = [0, 2, some_row(rng, 8, dimension)][int(rng.integers(3))]
        parts.append((client, item))
    return recommender._reader, recommender.learner, parts, rng.random(40).round(1).tolist()


@pytest.mark.parametrize("crossed", [True, False])
@pytest.mark.parametrize("seed", [0, 1])
def test_one_by_one_and_together_are_the_same(crossed: bool, seed: int) -> None:
    reader, learner, parts, rewards = some_records(crossed=crossed, seed=seed)
    weights = np.random.default_rng(9).normal(size=learner.dimension) * 1e6
    model = learner.model(NodeSums(weights, 1000.0, 1000.0))
    assert model.nonzeros
    together = record_increments(reader, learner, model, parts, rewards)
    assert len(together) > FEW_RECORDS
    for many, part, reward in zip(together, parts, rewards, strict=True):
        (one,) = record_increments(reader, learner, model, [part], [reward])
        assert reader.features_of(part) <= FEW_FEATURES
        assert list(one) == list(many)
        for block, pairs in many.items():
            assert one[block].dtype == np.int32
            # The last bit of a norm may differ, and a step with it.
            assert np.abs(one[block] - pairs).max() <= 1


def test_a_long_record_goes_with_the_many() -> None:
    reader, learner, _, _ = some_records(crossed=True, seed=0)
    long: RecordParts = (SparseRow([3], [1.0]), 1)
    assert reader.features_of(long) == 2 * 301 - 1
    (found,) = record_increments(
        reader, learner, learner.model(NodeSums(np.zeros(learner.dimension))), [long], [1.0]
    )
    assert sum(map(len, found.values())) == 1 + 601


@pytest.mark.parametrize("reward", [-0.1, 1.1, float("nan")])
@pytest.mark.parametrize("count", [1, FEW_RECORDS + 1])
def test_a_reward_out_of_range_is_refused_either_way(reward: float, count: int) -> None:
    reader, learner, parts, _ = some_records(crossed=True, seed=0)
    model = learner.model(NodeSums(np.zeros(learner.dimension)))
    with pytest.raises(InvalidArgument, match="reward"):
        record_increments(reader, learner, model, parts[:count], [reward] * count)


@pytest.mark.parametrize("bound", [0.5, 1.0, 64.0])
def test_steps_on_the_grid_are_never_longer_than_the_bound(bound: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        values = (rng.normal(size=rng.integers(1, 60)) * 10.0 ** rng.integers(-3, 6)).tolist()
        steps = steps_on_grid(values, bound=bound)
        assert sum(step * step for step in steps) <= int(bound * 2**20) ** 2
