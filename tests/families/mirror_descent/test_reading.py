"""Questions to a node: what is refused, what is personal, what an id has room for."""

import math
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from discreet.errors import InvalidArgument
from discreet.families.mirror_descent.document import MirrorDescentDocument
from discreet.families.mirror_descent.notes import MOST_NOTE
from discreet.families.mirror_descent.reading import NO_FEATURES, without_client
from discreet.families.mirror_descent.sparse import SparseRow
from discreet.families.questions import Candidate, Feedback, PendingFeedback, Receipt, Sparse
from tests.families.mirror_descent.nodes import (
    PAIR,
    answer,
    ask,
    built,
    candidate,
    node,
    pending,
)

PLAIN = built()
CROSSED = {
    "features": {"clients": 3, "items": 4},
    "items": [
        {"id": "opera", "features": {"indices": [0, 2], "values": [1.0, 0.5]}},
        {"id": "rock", "features": {"indices": [1], "values": [1.0]}},
        {"id": "unknown"},
        {"id": "secret", "hidden": True, "features": {"indices": [1], "values": [1.0]}},
    ],
}


def full(item: str, features: int = 100) -> Candidate:
    return candidate(item, *((f, 1.0) for f in range(features)))


@pytest.mark.parametrize(
    ("changes", "argument", "reason"),
    [
        ({"candidates": [candidate("x", (10_000, 1.0))]}, "candidates.0.features.indices", "9999"),
        ({"candidates": [candidate("x", (5, 1.0), (5, 1.0))]}, "candidates.0.features", "repeat"),
        ({"candidates": [candidate("x", (5, 1.0), (3, 1.0))]}, "candidates.0.features", "ascend"),
        ({"candidates": [candidate("x", (5, math.nan))]}, "candidates.0.features", "finite"),
        ({"candidates": [full("x", 101)]}, "candidates.0.features", "at most 100"),
        ({"candidates": [*PAIR, PAIR[0]]}, "candidates", "distinct"),
        ({"candidates": ["tea", PAIR[0]]}, "candidates", "all have features"),
        ({"candidates": [Candidate("x", (1.0, 2.0))]}, "candidates.0.features", "indices"),
        ({"features": Sparse([1], [1.0])}, "features", "no features of clients"),
        ({"context": [0.5]}, "context", "not used"),
        ({"candidates": [full(str(n)) for n in range(20)], "limit": 20}, "limit", "smaller"),
    ],
)
def test_what_is_wrong_with_a_question_is_named(
    changes: dict[str, Any], argument: str, reason: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        PLAIN.question(ask(**changes))
    assert caught.value.argument.startswith(argument)
    assert reason in caught.value.reason


def test_the_catalogue_has_what_is_shown_and_has_features() -> None:
    recommender = built(node(**CROSSED))
    everything = recommender.question(ask(candidates=None))
    assert [recommender.id_of[slot] for slot in everything.slots] == ["opera", "rock"]
    assert not everything.personal
    one = recommender.question(ask(candidates=None, exclude=["rock"]))
    assert [recommender.id_of[slot] for slot in one.slots] == ["opera"]
    with pytest.raises(InvalidArgument, match="from 0 to 2"):
        recommender.question(ask(candidates=None, features=Sparse([3], [1.0])))


def test_a_catalogue_that_cannot_be_read_is_refused() -> None:
    wrong = {"id": "a", "features": {"indices": [10_000], "values": [1.0]}}
    with pytest.raises(ValidationError, match=r"items\[0\]\.features\.indices: .* 9999"):
        node(items=[wrong])


def test_excluded_candidates_are_left_out() -> None:
    assert PLAIN.question(ask(exclude=["tea"])).ids == ("milk",)
    assert len(PLAIN.question(ask(exclude=["tea", "milk"]))) == 0


def test_what_may_be_about_the_client_is_personal_also_when_it_is_empty() -> None:
    recommender = built(node(**CROSSED))
    assert recommender.question(ask(candidates=None, features=Sparse([], []))).personal
    assert recommender.question(ask(candidates=[candidate("x")])).personal
    assert not recommender.question(ask(candidates=["rock"])).personal


def test_without_the_client_nothing_of_its_features_is_left() -> None:
    recommender = built(node(**CROSSED))
    client = Sparse([0], [1.0])
    shown = without_client(recommender.question(ask(candidates=None, features=client)))
    assert (len(shown), len(shown.features.indices), shown.personal) == (2, 0, False)
    assert len(shown.rows.indices) == 3
    own = without_client(recommender.question(ask(candidates=[candidate("x", (0, 1.0))])))
    assert (len(own), len(own.rows.indices), own.ids) == (1, 0, ("x",))


@pytest.mark.parametrize("features", [0, 1, 100])
def test_how_long_an_id_is_does_not_depend_on_features_where_answers_are_private(
    features: int,
) -> None:
    recommender = built(node(privacy={"answers": {"epsilon": 1.0}}))
    question = recommender.question(ask(candidates=[full("a", features), full("b", 3)], limit=1))
    assert recommender._reader.note_size(question) == 3 + 2 + 10 + 100 * (2 + 4)
    crossed = built(node(**CROSSED, privacy={"answers": {"epsilon": 1.0}}))
    for client in (Sparse([], []), Sparse([0, 1, 2], [1.0, 1.0, 1.0])):
        asked = crossed.question(ask(candidates=None, features=client))
        assert crossed._reader.note_size(asked) == 3 + 2 + 3 * (1 + 4)
    nobody = crossed.question(ask(candidates=None))
    assert crossed._reader.note_size(nobody) == 3 + 2


@pytest.mark.parametrize("answers", ["exact", {"epsilon": 1.0}])
def test_thirteen_candidates_of_a_hundred_features_fit_an_id(answers: Any) -> None:
    recommender = built(node(privacy={"answers": answers}))
    question = recommender.question(ask(candidates=[full(str(n)) for n in range(13)], limit=13))
    assert recommender._reader.note_size(question) <= MOST_NOTE
    short = [full(str(n), 12) for n in range(100)]
    if answers == "exact":
        recommender.question(ask(candidates=short, limit=100))
    else:
        with pytest.raises(InvalidArgument, match="limit"):
            recommender.question(ask(candidates=short, limit=100))


def test_a_record_is_crossed_and_clipped() -> None:
    recommender = built(node(**CROSSED))
    question = recommender.question(ask(candidates=["opera"], features=Sparse([1], [2.0])))
    row = recommender._reader.records([(question.features, question.rows.row(0))])
    expected = np.zeros(19)
    expected[[1, 3, 5, 11, 13]] = [2, 1, 0.5, 2, 1]
    found = np.zeros(19)
    found[row.indices] = row.values
    assert found == pytest.approx(expected / np.linalg.norm(expected), abs=1e-5)


def test_records_of_the_catalogue_and_of_candidates_are_learned_beside_each_other() -> None:
    reader = built(node(**CROSSED))._reader
    client = SparseRow([1], [2.0])
    parts = [(client, 0), (NO_FEATURES, SparseRow([2], [0.5])), (client, 1)]
    together = reader.records(parts)
    for place, part in enumerate(parts):
        alone, among = reader.records([part]), together.row(place)
        assert (alone.row(0).indices, alone.row(0).values) == (among.indices, among.values)


def test_too_many_products_are_refused() -> None:
    recommender = built(node(features={"clients": 100, "items": 100}))
    client = Sparse(list(range(40)), [1.0] * 40)
    with pytest.raises(InvalidArgument, match="products"):
        recommender.question(ask(candidates=[full("x", 40)], features=client))


@pytest.mark.anyio
async def test_feedback_on_an_item_that_has_grown_too_long_fails_alone() -> None:
    """A record has at most 1,024 features; others in the same turn are learned all the same."""

    def grown(features: int) -> MirrorDescentDocument:
        long = {"indices": list(range(features)), "values": [1.0] * features}
        short = {"indices": [1], "values": [1.0]}
        items = [{"id": "tea", "features": long}, {"id": "milk", "features": short}]
        return node(features={"clients": 200, "items": 200}, items=items)

    before = built(grown(5))
    asked = {"tea": Sparse(list(range(100)), [0.1] * 100), "milk": Sparse([1], [1.0])}
    shown = {
        item: await answer(before, client=item, candidates=[item], features=features)
        for item, features in asked.items()
    }
    after = built(grown(90), like=before)
    tea, milk = await after.record_feedback(
        [
            PendingFeedback(pending(after, one, item), Feedback(reward=1.0), 60)
            for item, one in shown.items()
        ]
    )
    assert isinstance(tea, InvalidArgument)
    assert tea.argument == "recommendation_id"
    assert milk == Receipt(duplicate=False, learned=True)
