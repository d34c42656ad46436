"""Entries go at their own time and leave nothing behind."""

from discreet.state.expiring import Expiring


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_entries_live_for_their_time() -> None:
    clock = Clock()
    entries: Expiring[str, int] = Expiring(clock)
    entries.put("brief", 1, ttl=1)
    entries.put("long", 2, ttl=10)
    assert list(entries) == ["brief", "long"]
    clock.now = 1
    assert entries.get("brief") is None
    assert "brief" not in entries
    assert entries.get("long") == 2
    assert list(entries) == ["long"]
    assert len(entries) == 1


def test_a_renewed_entry_outlives_its_first_deadline() -> None:
    clock = Clock()
    entries: Expiring[str, int] = Expiring(clock)
    entries.put("a", 1, ttl=1)
    entries.put("a", 2, ttl=10)
    clock.now = 5
    entries.put("b", 3, ttl=1)
    assert entries.get("a") == 2


def test_removed_entries_are_gone() -> None:
    entries: Expiring[str, int] = Expiring(Clock())
    entries.put("a", 1, ttl=1)
    entries.remove("a")
    entries.remove("a")
    assert entries.get("a") is None


def test_memory_is_bounded_by_what_is_alive() -> None:
    clock = Clock()
    entries: Expiring[int, int] = Expiring(clock)
    for number in range(10_000):
        clock.now = number
        entries.put(number, number, ttl=10)
    assert len(entries._entries) <= 11
    assert len(entries._deadlines) <= 11
