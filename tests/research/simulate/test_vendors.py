"""Served vendors in one process: they ask one another and learn from what comes back."""

import pytest

from discreet.errors import PeerUnavailable
from discreet.families.p_dap.recommender import PartitionRecommender
from discreet.research.reproduce.p_dap_algorithms import served_document
from discreet.research.simulate.runs import run
from discreet.research.simulate.vendors import InProcessVendors, ServedVendors
from discreet.research.worlds.contexts import ClusteredWorld, catalogues_of


@pytest.mark.anyio
async def test_vendors_ask_one_another_and_pass_feedback_on() -> None:
    world = ClusteredWorld(catalogues=catalogues_of(vendors=2, items=2), seed=0)
    documents = [
        served_document(own, dimensions=2, epsilon=2.0, feedback_epsilon=None)
        for own in world.catalogues
    ]
    network = await ServedVendors.open(documents=documents, seed=[0], rate=20.0)
    await run(player=network, world=world, rounds=300, seed=0)
    assert network.forwarded > 10
    for server in network.servers:
        (recommender,) = server.services.registry.loaded()
        assert isinstance(recommender, PartitionRecommender)
        # Feedback on own items and on forwards, and guests' feedback, has reached the models.
        assert recommender.current.model.own.statistics.arrivals().sum() > 60
        variance = recommender.current.model.guests.statistics.variance
        assert (variance > 0).any()
        assert await server.services.store.count_messages(queue=recommender.key(b"to vendors")) == 0
    await network.close()


@pytest.mark.anyio
async def test_a_vendor_that_was_not_joined_cannot_be_reached() -> None:
    gateway = InProcessVendors(requester="here")
    assert not gateway.reachable("there")
    with pytest.raises(PeerUnavailable):
        await gateway.post(peer="there", url="http://there/forwards", content=b"{}")
