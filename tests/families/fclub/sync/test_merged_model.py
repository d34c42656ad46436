"""The merged model on the wire: what cannot be one is refused, and nothing is trusted."""

import json
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.families.fclub.evidence import Knowledge
from discreet.families.fclub.sync.merged_model import (
    MOST_CLUSTERS,
    MergedModel,
    MergedModelStore,
    read_merged_model,
)
from discreet.state.memory import MemoryStore

GOOD = MergedModel(3, Knowledge(np.eye(2)[None], np.ones((1, 2))), np.array([9.0]), {0: 0, 4: 0})
FIELDS: dict[str, Any] = json.loads(GOOD.encode())


def test_a_merged_model_survives_the_wire() -> None:
    found = read_merged_model(GOOD.encode(), dimensions=2)
    assert (found.version, found.groups) == (3, {0: 0, 4: 0})
    assert np.array_equal(found.foreign.matrix, GOOD.foreign.matrix)
    assert np.array_equal(found.foreign.vector, GOOD.foreign.vector)
    assert found.counts.tolist() == [9.0]


def test_one_that_tells_of_nobody_is_one() -> None:
    nobody = MergedModel(0, Knowledge.nothing(dimensions=2, pieces=0), np.zeros(0), {})
    assert len(read_merged_model(nobody.encode(), dimensions=2).foreign) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"more": 1},
        {"version": -1},
        {"version": True},
        {"version": 2**31},
        {"vectors": [[1.0]]},
        {"vectors": [[1.0, "2"]]},
        {"vectors": [[1.0, float("nan")]]},
        {"vectors": [[1.0, float("inf")]]},
        {"vectors": {"0": [1.0, 1.0]}},
        {"matrices": []},
        {"matrices": [[1e300, 0, 1]]},
        {"matrices": [[1.0, 0.0, True]]},
        {"counts": []},
        {"counts": 9},
        {"counts": ["9"]},
        {"members": [0]},
        {"members": [0, 0]},
        {"members": [0, -1]},
        {"labels": [0, 1]},
        {"labels": None},
        {"vectors": [[0.0, 0.0]] * (MOST_CLUSTERS + 1)},
    ],
)
def test_what_cannot_be_a_merged_model_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        read_merged_model(json.dumps(FIELDS | changes).encode(), dimensions=2)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[]", b"null", b"[" * 100_000])
def test_nonsense_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidArgument):
        read_merged_model(content, dimensions=2)


def test_what_is_no_information_is_made_one() -> None:
    odd = json.dumps(FIELDS | {"matrices": [[1.0, 5.0, 1.0]], "counts": [-4]}).encode()
    found = read_merged_model(odd, dimensions=2)
    assert np.linalg.eigvalsh(found.foreign.matrix[0]).min() > -1e-9
    assert found.counts.tolist() == [0.0]


@pytest.mark.anyio
async def test_a_local_server_keeps_the_last_one_that_it_can_read() -> None:
    kept = MergedModelStore(MemoryStore(), b"k" * 16, 2)
    assert await kept.load() is None
    await kept.save(GOOD.encode())
    found = await kept.load()
    assert found is not None
    assert found.version == 3
    await kept.save(b"written by another version")
    assert await kept.load() is None
