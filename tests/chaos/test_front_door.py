"""Small versions of attacks on the front door, over a real server with little patience."""

from collections.abc import Iterator

import pytest

from tests.chaos.front_door import MIB, Outcome, attack, attacks
from tests.end_to_end.servers import DISCREET, Server, serving

OPEN_FILES = 330
"""Fewer than a worker would have connections."""

STATUSES = {
    "headers": {"431": 1},
    "one endless header": {"431": 1},
    "headers, several": {"431": 2},
    "headers byte by byte": {"431": 1},
    "trailers": {"431": 2},
    "endless body": {"413": 2},
    "body without a key": {"401": 2},
    "silence": {"none": 60},
    "slow bodies": {"408": 10},
    "slow headers": {"408": 10},
}
BUFFERS = 16 * MIB
"""What the kernel takes in for one connection before the server has read it."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose workers may open few files."""
    limit = ("sh", "-c", f'ulimit -n {OPEN_FILES}; exec "$@"', "sh", DISCREET)
    with serving(
        tmp_path_factory.mktemp("door"),
        program=limit,
        DISCREET_HEADER_SECONDS="2",
        DISCREET_BODY_SECONDS="3",
    ) as running:
        running.put("films")
        yield running


@pytest.fixture(scope="module")
def outcomes(server: Server) -> dict[str, Outcome]:
    return {one.attack: one for one in attacks(server, small=True)}


@pytest.mark.parametrize("name", STATUSES)
def test_an_attack_is_ended_and_harms_nobody(outcomes: dict[str, Outcome], name: str) -> None:
    one = outcomes[name]
    assert one.statuses == STATUSES[name]
    assert one.taken_bytes < one.connections * (8 * MIB + BUFFERS)
    assert one.grown < 64 * MIB
    assert one.served_beside > 0
    assert one.refused_beside == 0


def test_a_crowd_leaves_descriptors_for_the_store(server: Server) -> None:
    """Three times as many connections as a process may have files: some are told, some dropped."""
    assert f"may have {OPEN_FILES} open files" in server.output
    crowd = attack(server, "crowd", 3 * OPEN_FILES, lambda: iter(()))
    assert "never closed" not in crowd.statuses
    assert crowd.statuses["429"] > 0
    assert sum(crowd.statuses.values()) == 3 * OPEN_FILES
    # Whoever was there before is served, over the store's connections, throughout.
    assert (crowd.refused_beside, server.budget("films", "ada") > 0) == (0, True)
    assert "accept" not in server.output
