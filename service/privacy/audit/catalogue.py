"""Everything that a run examines: providers of claims, and of planted faults."""

from collections.abc import Callable, Iterable, Iterator

from service.privacy.audit.books import book_checks
from service.privacy.audit.calibrated import calibration_checks
from service.privacy.audit.choices import draw_checks, exponential_checks, shortlist_checks
from service.privacy.audit.claims import Check, Fault
from service.privacy.audit.numbers import number_checks, sampler_checks
from service.privacy.audit.planted_books import planted_books
from service.privacy.audit.planted_choices import planted_choices
from service.privacy.audit.planted_numbers import planted_numbers
from service.privacy.audit.planted_sums import planted_sums
from service.privacy.audit.sums import sum_checks
from service.privacy.audit.votes import vote_checks

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
