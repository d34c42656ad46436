"""Samples are added up between two flushes, and written once."""

import pytest
from prometheus_client import CollectorRegistry, Histogram

from discreet.metrics.samples import DURATIONS, DecisionTotals, DurationSamples
from discreet.privacy.charges import NANO, UNLIMITED, Charge
from discreet.state.stores import EXACT


def test_charges_add_up_and_unlimited_ones_are_left_out() -> None:
    totals = DecisionTotals()
    totals.charge(Charge(nano_epsilon=NANO, nano_rho=2 * NANO), times=3)
    totals.charge(Charge(nano_epsilon=UNLIMITED, nano_rho=NANO))
    totals.charge(EXACT)
    assert (totals.nano_epsilon, totals.nano_rho) == (3 * NANO, 7 * NANO)
    totals.clear()
    assert not any((totals.nano_epsilon, totals.nano_rho, totals.dirty))


@pytest.mark.parametrize("seconds", [0.0, 0.0005, 0.00051, 0.3, 5.0, 99.0])
def test_a_duration_is_observed_as_the_library_would(seconds: float) -> None:
    shown = []
    for way in ("ours", "library"):
        registry = CollectorRegistry()
        histogram = Histogram("d", "d", buckets=DURATIONS, registry=registry)
        if way == "library":
            histogram.observe(seconds)
        else:
            samples = DurationSamples(histogram)
            samples.add(seconds)
            assert samples.dirty
            samples.flush()
            samples.flush()
            assert not samples.dirty
        (family,) = registry.collect()
        shown.append(
            [
                (one.name, one.labels, one.value)
                for one in family.samples
                if not one.name.endswith("_created")
            ]
        )
    assert shown[0] == shown[1]
