"""Models as bytes: named arrays, of which nothing is ever executed."""

import io
from collections.abc import Mapping, Sequence
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from discreet.families.fclub.evidence import Knowledge
from discreet.families.fclub.model import NumberedUpdate, UserKinds
from discreet.families.fclub.sums import NoisyUpdate, folded, unfolded
from discreet.state.principals import DIGEST_BYTES

Arrays = Mapping[str, npt.NDArray[Any]]


def pack(arrays: Arrays) -> bytes:
    """Return arrays as bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(content: bytes) -> Arrays:
    """Return what `pack` wrote, or raise `ValueError`."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as held:
            return dict(held)
    except (OSError, EOFError, TypeError, BadZipFile) as error:
        raise ValueError("a model of fclub cannot be read") from error


def kinds_as_arrays(kinds: UserKinds) -> Arrays:
    """Return what is known about kinds of users."""
    return {
        "kind_matrices": folded(kinds.knowledge.matrix),
        "kind_vectors": kinds.knowledge.vector,
        "kind_shares": kinds.shares,
    }


def read_kinds(arrays: Arrays, *, dimensions: int, variety: float) -> UserKinds:
    """Return what `kinds_as_arrays` wrote."""
    matrices = unfolded(arrays["kind_matrices"], dimensions)
    return UserKinds(Knowledge(matrices, arrays["kind_vectors"]), arrays["kind_shares"], variety)


def updates_as_arrays(updates: Sequence[NumberedUpdate]) -> Arrays:
    """Return updates with their numbers."""
    members = [each.update.members for each in updates]
    return {
        "update_numbers": np.array([each.number for each in updates], dtype=np.int64),
        "update_sizes": np.array([len(each) for each in members], dtype=np.int64),
        "update_members": np.array([one for each in members for one in each], dtype=np.int64),
        "update_steps": np.array([each.update.steps for each in updates], dtype=np.int64),
        "update_deviations": np.array([each.update.deviation for each in updates]),
    }


def read_updates(arrays: Arrays) -> tuple[NumberedUpdate, ...]:
    """Return what `updates_as_arrays` wrote."""
    sizes = arrays["update_sizes"]
    members = np.split(arrays["update_members"], np.cumsum(sizes)[:-1]) if len(sizes) else []
    rows = zip(
        arrays["update_numbers"].tolist(),
        members,
        arrays["update_steps"],
        arrays["update_deviations"].tolist(),
        strict=True,
    )
    return tuple(
        NumberedUpdate(number, NoisyUpdate(tuple(whom.tolist()), steps, deviation))
        for number, whom, steps, deviation in rows
    )


def pack_principals(principals: Sequence[bytes]) -> npt.NDArray[np.uint8]:
    """Return principals, all of one length, as an array."""
    return np.frombuffer(b"".join(principals), dtype=np.uint8)


def unpack_principals(packed: npt.NDArray[np.uint8]) -> tuple[bytes, ...]:
    """Return what `pack_principals` wrote."""
    content = packed.tobytes()
    return tuple(
        content[start : start + DIGEST_BYTES] for start in range(0, len(content), DIGEST_BYTES)
    )
