"""What the ledger really charges for an event: integers, turned back into exact rationals."""

from fractions import Fraction

from service.privacy.accountants import BasicAccountant, ZCDPAccountant
from service.privacy.charges import NANO
from service.privacy.events import PrivacyEvent

BASIC = BasicAccountant()
ZCDP = ZCDPAccountant()


def epsilon_charged(event: PrivacyEvent) -> Fraction:
    """Return the epsilon that basic composition debits."""
    return Fraction(BASIC.charge(event).nano_epsilon, NANO)


def rho_charged(event: PrivacyEvent) -> Fraction:
    """Return the rho that zCDP debits."""
    return Fraction(ZCDP.charge(event).nano_rho, NANO)
