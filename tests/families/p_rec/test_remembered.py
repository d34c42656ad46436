"""A bounded memory: the least recently used goes first, and sizes are never lost count of."""

import random

from discreet.families.p_rec.remembered import Remembered


def test_what_was_used_last_stays() -> None:
    held: Remembered[str, int] = Remembered(3)
    for number, name in enumerate("abc"):
        held.put(name, number)
    assert held.get("a") == 0
    held.put("d", 3)
    assert [held.get(name) for name in "abcd"] == [0, None, 2, 3]
    held.drop("a")
    held.drop("never there")
    assert (held.get("a"), len(held), held.size) == (None, 2, 2)
    held.clear()
    assert (held.get("c"), len(held), held.size) == (None, 0, 0)


def test_what_is_larger_than_all_of_it_is_not_remembered_and_takes_no_room() -> None:
    held: Remembered[str, str] = Remembered(10)
    held.put("small", "s", 4)
    held.put("large", "l", 11)
    assert (held.get("small"), held.get("large"), held.size) == ("s", None, 4)
    # Nor does what it was before stay under its name.
    held.put("small", "grown", 11)
    assert (held.get("small"), held.size) == (None, 0)


def test_sizes_are_counted_however_values_come_and_go() -> None:
    held: Remembered[int, int] = Remembered(100)
    draws = random.Random(3)
    for _ in range(2_000):
        name = draws.randrange(20)
        if draws.random() < 0.2:
            held.drop(name)
        else:
            size = draws.randrange(1, 40)
            held.put(name, size, size)
        assert held.size == sum(held.get(each) or 0 for each in range(20)) <= 100
