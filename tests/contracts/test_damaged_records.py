"""A stored record in which anything is anything else: refused in a sentence, or served soundly.

Every place of every family's record is replaced by something odd, or taken away. Whatever becomes
of that recommender, the one beside it is served from the same registry.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from discreet.decisions.registry import RECOMMENDER
from discreet.decisions.services import open_services
from discreet.errors import DiscreetError
from discreet.families.questions import Ask
from discreet.families.registration import read_document
from discreet.privacy.noise import SystemNoise
from discreet.state.memory import MemoryStore
from tests.contracts.samples import SAMPLES

pytestmark = pytest.mark.anyio

ODD = (None, [], {"a": 1}, "x", -1, 2**70, float("nan"), float("inf"), True, "\ud800")


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to everything in a tree."""
    children = node.items() if isinstance(node, dict) else enumerate(node)
    for step, child in children:
        yield (*path, step)
        if isinstance(child, dict | list):
            yield from places(child, (*path, step))


def damaged(fields: dict[str, Any]) -> Iterator[bytes]:
    """Yield the record with one thing wrong."""
    for *above, last in places(fields):
        for odd in (*ODD, ...):
            changed = copy.deepcopy(fields)
            holder: Any = changed
            for step in above:
                holder = holder[step]
            if odd is ...:
                del holder[last]
            else:
                holder[last] = odd
            yield json.dumps(changed).encode()


@pytest.mark.parametrize("algorithm", sorted(SAMPLES))
async def test_one_damaged_record_is_one_recommenders_trouble(algorithm: str) -> None:
    sample, store = SAMPLES[algorithm], MemoryStore()
    services = await open_services(store=store, noise=SystemNoise(), lease_seconds=1e-6)
    await services.background.stop()
    registry = services.registry
    await registry.put("sound", read_document({"algorithm": "collaborative", "items": ["a"]}))
    await registry.put("odd", read_document({"algorithm": algorithm, **sample.document}))
    standing = (await store.registry()).documents[RECOMMENDER + "odd"]
    refused = 0
    for content in damaged(json.loads(standing)):
        if not await store.put_document(
            name=RECOMMENDER + "odd", document=content, expected=standing
        ):
            continue
        standing = content
        await registry.find("sound")
        reason = (await registry.unreadable()).get("odd")
        if reason is not None:
            assert reason
            assert "\n" not in reason
            refused += 1
            continue
        # What was read has to be sound: an answer, or an error that tells the caller why not.
        recommender = await registry.find("odd")
        recommender.guarantee()
        try:
            questions = [recommender.question(Ask("odd", "x", **ask)) for ask in sample.asks]
        except DiscreetError:
            continue
        for answer in await recommender.answer(questions, [None] * len(questions)):
            assert isinstance(answer, DiscreetError) or answer.decision is not None
    assert refused > 100
    await services.close()
