"""How often a key may ask."""

import pytest

from discreet.decisions.grants import ClientBinding, KeyGrant
from discreet.decisions.rates import BURST_SECONDS, KeyRates
from discreet.errors import RateExceeded


class Clock:
    """Time that goes on when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def key(name: str = "k", rate: float | None = None) -> KeyGrant:
    return KeyGrant(name, frozenset({"serve"}), rate=rate)


DEVICE = KeyGrant("d", frozenset({"profile"}), frozenset({"f"}), ClientBinding(b"ada", str.encode))


def taken(rates: KeyRates, grant: KeyGrant, requests: int = 1) -> int:
    """Return how often the key may ask before it is refused."""
    for count in range(10_000):
        try:
            rates.take(grant, requests)
        except RateExceeded:
            return count
    return 10_000


def test_keys_are_unbounded_unless_something_bounds_them() -> None:
    assert taken(KeyRates(), key()) == 10_000
    assert taken(KeyRates(), DEVICE) == 10_000


def test_a_key_has_its_own_rate_or_its_kinds() -> None:
    rates = KeyRates(operators=10.0, devices=2.0, clock=Clock())
    assert taken(rates, key("a")) == 10 * BURST_SECONDS
    assert taken(rates, key("b", rate=3.0)) == 3 * BURST_SECONDS
    assert taken(rates, DEVICE) == 2 * BURST_SECONDS


def test_time_makes_up_for_what_was_asked() -> None:
    clock = Clock()
    rates = KeyRates(clock=clock)
    one = key(rate=2.0)
    taken(rates, one)
    with pytest.raises(RateExceeded) as refused:
        rates.take(one)
    clock.now += refused.value.retry_after
    rates.take(one)
    clock.now += 1_000.0
    assert taken(rates, one) == 2 * BURST_SECONDS, "no more gathers than ten seconds' worth"


def test_a_batch_counts_as_its_entries_and_may_overdraw_once() -> None:
    clock = Clock()
    rates = KeyRates(clock=clock)
    one = key(rate=1.0)
    rates.take(one, 100)
    with pytest.raises(RateExceeded) as refused:
        rates.take(one)
    assert refused.value.retry_after == 91, "what was overdrawn is made up for first"


def test_a_refusal_counts_nothing() -> None:
    clock = Clock()
    rates = KeyRates(clock=clock)
    one = key(rate=1.0)
    taken(rates, one)
    for _ in range(100):
        with pytest.raises(RateExceeded) as refused:
            rates.take(one)
        assert refused.value.retry_after == 1


def test_slow_keys_have_one_request_at_least() -> None:
    clock = Clock()
    rates = KeyRates(clock=clock)
    rates.take(key(rate=0.01))
    with pytest.raises(RateExceeded) as refused:
        rates.take(key(rate=0.01))
    assert refused.value.retry_after == 100
