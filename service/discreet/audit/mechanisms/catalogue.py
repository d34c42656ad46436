"""Everything that a run examines: providers of claims, and of planted faults."""

from collections.abc import Callable, Iterable, Iterator

from discreet.audit.mechanisms.books import book_checks
from discreet.audit.mechanisms.calibrated import calibration_checks
from discreet.audit.mechanisms.choices import draw_checks, exponential_checks, shortlist_checks
from discreet.audit.mechanisms.claims import Check, Fault
from discreet.audit.mechanisms.numbers import number_checks, sampler_checks
from discreet.audit.mechanisms.planted_books import planted_books
from discreet.audit.mechanisms.planted_choices import planted_choices
from discreet.audit.mechanisms.planted_numbers import planted_numbers
from discreet.audit.mechanisms.planted_sums import planted_sums
from discreet.audit.mechanisms.sums import sum_checks
from discreet.audit.mechanisms.votes import vote_checks

CHECKS: tuple[Callable[[], Iterable[Check]], ...] = (
    draw_checks,
    exponential_checks,
    shortlist_checks,
    vote_checks,
    sampler_checks,
    number_checks,
    sum_checks,
    book_checks,
    calibration_checks,
)

FAULTS: tuple[Callable[[], Iterable[Fault]], ...] = (
    planted_choices,
    planted_numbers,
    planted_sums,
    planted_books,
)


def all_checks() -> Iterator[Check]:
    """Yield every claim of the privacy layer."""
    for provider in CHECKS:
        yield from provider()


def all_faults() -> Iterator[Fault]:
    """Yield every fault that the examinations must notice."""
    for provider in FAULTS:
        yield from provider()
