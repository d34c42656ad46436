"""Addresses: what counts as one, and how wrong keys from it slow down."""

import pytest

from discreet.api.addresses import FREE, LONGEST_SECONDS, MOST_NETWORKS, WrongKeys, network_of
from tests.front import fronting, post, statuses


class Clock:
    """Time that goes on when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("a-name", "a-name"),
    ],
)
def test_what_counts_as_one_address(host: str, network: str) -> None:
    assert network_of(host) == network


def test_each_wrong_key_waits_longer_and_half_is_forgotten_in_a_minute() -> None:
    clock = Clock()
    wrong = WrongKeys(clock=clock)
    assert [wrong.delay("a") for _ in range(FREE)] == [0.0] * FREE
    delays = [wrong.delay("a") for _ in range(100)]
    assert delays == sorted(delays)
    assert 0.0 < delays[0] < 0.2
    assert delays[-1] == LONGEST_SECONDS
    assert wrong.delay("b") == 0.0, "another address has done nothing"
    clock.now += 600.0
    assert wrong.delay("a") == 0.0


def test_memory_is_bounded() -> None:
    wrong = WrongKeys()
    for number in range(2 * MOST_NETWORKS):
        wrong.delay(str(number))
    assert len(wrong._seen) == MOST_NETWORKS


@pytest.mark.anyio
async def test_a_right_key_never_waits_for_wrong_ones() -> None:
    """From one address: somebody guesses, somebody else has a key."""
    async with fronting() as front:
        guess = post().replace(b"Bearer ", b"Bearer x")
        seen = front.live["wrong_keys"]
        for _ in range(500):
            seen.delay("127.0.0.1")
        assert statuses(await front.talk(post(), finished=True)) == [200]
        answer = await front.talk(guess, finished=True, seconds=60)
        assert statuses(answer) == [401]
        assert front.live["admission"].in_flight == 0
