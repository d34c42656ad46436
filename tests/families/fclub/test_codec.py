"""Models as bytes: what was written is read, and what was not is refused."""

import io

import numpy as np
import pytest

from discreet.families.fclub.codec import (
    kinds_as_arrays,
    pack,
    pack_principals,
    read_kinds,
    read_updates,
    unpack,
    unpack_principals,
    updates_as_arrays,
)
from discreet.families.fclub.evidence import Knowledge
from discreet.families.fclub.model import NumberedUpdate, UserKinds
from discreet.families.fclub.sums import NoisyUpdate
from discreet.state.principals import DIGEST_BYTES


def test_kinds_of_users() -> None:
    matrices = np.array([[[2.0, 0.5], [0.5, 1.0]], [[3.0, 0.0], [0.0, 1.0]]])
    kinds = UserKinds(Knowledge(matrices, np.arange(4.0).reshape(2, 2)), np.array([1.0, 4.0]), 0.1)
    again = read_kinds(unpack(pack(kinds_as_arrays(kinds))), dimensions=2, variety=0.1)
    assert np.array_equal(again.knowledge.matrix, matrices)
    assert np.array_equal(again.knowledge.vector, kinds.knowledge.vector)
    assert again.shares.tolist() == [1.0, 4.0]


@pytest.mark.parametrize("members", [[], [(3,)], [(3,), (0, 1, 9), (2, 4)]])
def test_updates_with_members(members: list[tuple[int, ...]]) -> None:
    updates = tuple(
        NumberedUpdate(7 + place, NoisyUpdate(whom, np.arange(6) + place, 0.5 * place))
        for place, whom in enumerate(members)
    )
    again = read_updates(unpack(pack(updates_as_arrays(updates))))
    assert [(one.number, one.update.members, one.update.deviation) for one in again] == [
        (one.number, one.update.members, one.update.deviation) for one in updates
    ]
    for one, other in zip(again, updates, strict=True):
        assert one.update.steps.tolist() == other.update.steps.tolist()


def test_principals() -> None:
    some = tuple(bytes([number]) * DIGEST_BYTES for number in range(3))
    assert unpack_principals(pack_principals(some)) == some
    assert unpack_principals(pack_principals(())) == ()


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, trap=np.array([object()], dtype=object))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"\x93NUMPY", pack({"a": np.zeros(9)})[:-40], pickled()]
)
def test_what_is_no_model_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  numpy says it in many ways
        unpack(content)
