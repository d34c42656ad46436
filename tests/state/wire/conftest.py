"""A server of its own for each test of a connection."""

from collections.abc import AsyncIterator

import pytest

from tests.state.wire.peers import Peer, listening


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with listening() as one:
        yield one
