"""What the ledger really charges for an event: integers, turned back into exact rationals."""

from fractions import Fraction

from discreet.privacy.accountants import BasicAccountant, ZCDPAccountant
from discreet.privacy.charges import NANO, UNLIMITED
from discreet.privacy.conversions import zcdp_epsilon
from discreet.privacy.events import PrivacyEvent

BASIC = BasicAccountant()
ZCDP = ZCDPAccountant()

SAMPLED_DELTA = 0.01
"""At which a Gaussian claim is compared with samples; larger than promised, so that they can."""


def epsilon_charged(event: PrivacyEvent) -> Fraction:
    """Return the epsilon that basic composition debits."""
    return Fraction(BASIC.charge(event).nano_epsilon, NANO)


def rho_charged(event: PrivacyEvent) -> Fraction:
    """Return the rho that zCDP debits."""
    return Fraction(ZCDP.charge(event).nano_rho, NANO)


def promise_for_samples(event: PrivacyEvent) -> tuple[float, float]:
    """Return the (epsilon, delta) that samples of a release are held to.

    A release without a finite epsilon is held to what its rho converts to.
    """
    if BASIC.charge(event).nano_epsilon < UNLIMITED:
        return float(epsilon_charged(event)), 0.0
    return zcdp_epsilon(rho=float(rho_charged(event)), delta=SAMPLED_DELTA), SAMPLED_DELTA
