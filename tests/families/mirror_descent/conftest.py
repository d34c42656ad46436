"""A runtime with one node of sparse mirror descent."""

import pytest

from discreet.decisions.runtime import Runtime
from tests.families.mirror_descent.scenes import node


@pytest.fixture
async def feed(runtime: Runtime) -> Runtime:
    await runtime.registry.put("feed", node())
    return runtime
