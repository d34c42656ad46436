"""Without peers nobody is reachable, and nobody answers."""

import pytest

from discreet.errors import PeerUnavailable
from discreet.families.peering import NoPeers


@pytest.mark.anyio
async def test_nobody_answers() -> None:
    peers = NoPeers()
    assert not peers.reachable("anybody")
    with pytest.raises(PeerUnavailable):
        await peers.post(peer="anybody", url="http://anybody", content=b"")
    peers.distrust(peer="anybody")
