"""Lists of items: created, paid for, shown and sent.

The rules, in the order in which they bind:

1. A list is charged and stored in one commit, before anybody sees it. What is shown is what was
   stored, and what is sent is what was shown.
2. Every list costs, also one that is never sent: whoever creates lists until one pleases has
   chosen among them with the history in mind, and all of them have to be paid for.
3. Sending a list again costs nothing, however often.
4. Creating a list needs its owner's agreement: the request names the price that was shown and the
   last list that was known, so that neither a double click nor a second window pays twice.
5. Under the same controls another list is not offered before a stated number of items changed; who
   wants one earlier has to confirm that. Nothing is ever created or sent by itself. A list that
   appeared whenever so many items had changed would tell by its date that they had, and no epsilon
   is paid for that.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.calibration import calibrate
from discreet.families.collaborative.on_device.catalogue import (
    TYPICAL,
    Catalogue,
    Concerns,
    Level,
    scope_of,
)
from discreet.families.collaborative.on_device.perturbation import event_of, perturb, perturbs
from discreet.families.collaborative.on_device.quantification import quantify
from discreet.hub import choices as controls
from discreet.hub import history, ledger, popularity
from discreet.hub.accepted import require
from discreet.hub.catalogue import PublicCatalogue
from discreet.hub.database import get_value, set_value
from discreet.hub.errors import HubRefusal
from discreet.hub.explanations import ReleaseFacts
from discreet.privacy.charges import NANO, Charge
from discreet.privacy.noise import NoiseSource

DEFAULT_THRESHOLD = 10
MOST_THRESHOLD = 10_000


@dataclass(frozen=True, slots=True)
class PriceQuote:
    """What a list would be and cost, from public facts and the controls alone.

    `noise` is the mean magnitude of the noise on a category's count; `perturbed`, `hidden` and
    `openly` are categories: counted with noise, left out, and with items that go in as they are.
    """

    epsilon: float
    charge: Charge
    noise: float
    perturbed: tuple[str, ...]
    hidden: tuple[str, ...]
    openly: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoredRelease:
    """A list as it was stored. `basis` is the history it was made from."""

    number: int
    made: str
    nano_epsilon: int
    choices: controls.Choices
    catalogue: str
    items: tuple[str, ...]
    openly: tuple[str, ...]
    basis: tuple[str, ...]
    sent: str | None
    sent_as: str | None

    @property
    def epsilon(self) -> float:
        """What it cost."""
        return self.nano_epsilon / NANO


def typical_length(catalogue: Catalogue) -> int:
    """Return what an ordinary history is taken to have, by public facts alone."""
    return min(TYPICAL, max(len(catalogue.items) // 4, 1))


def quote(catalogue: PublicCatalogue, choices: controls.Choices) -> PriceQuote:
    """Return what a list would cost under these controls. The history plays no part in it."""
    return _quote(catalogue.compiled, choices.concerns(catalogue), choices.epsilon)


@lru_cache(maxsize=256)
def _quote(catalogue: Catalogue, concerns: Concerns, own: float | None) -> PriceQuote:
    scope = scope_of(catalogue, concerns)
    levels = dict(zip(catalogue.categories, catalogue.levels(concerns), strict=True))
    epsilon = noise = 0.0
    if perturbs(catalogue=catalogue, concerns=concerns):
        epsilon = own or quantify(
            catalogue=catalogue, concerns=concerns, typical=typical_length(catalogue)
        )
        noise = calibrate(catalogue=catalogue, epsilon=epsilon, concerns=concerns).mean
    event = event_of(catalogue=catalogue, concerns=concerns, epsilon=epsilon or 1.0)
    return PriceQuote(
        epsilon=epsilon,
        charge=ledger.charge_of(event),
        noise=noise,
        perturbed=tuple(catalogue.categories[at] for at in scope.counted),
        hidden=tuple(name for name, level in levels.items() if level is Level.NO),
        openly=tuple(
            name
            for at, name in enumerate(catalogue.categories)
            if catalogue.incidence[scope.open, at].any()
        ),
    )


def latest(work: sqlite3.Connection) -> StoredRelease | None:
    """Return the last list, if there ever was one."""
    row = work.execute(
        "SELECT number, made, nano_epsilon, choices, catalogue, items, releases.openly, basis, "
        "sent, sent_as FROM releases JOIN shared.ledger AS ledger USING (number) "
        "ORDER BY number DESC LIMIT 1"
    ).fetchone()
    if row is None:
        return None
    number, made, nano_epsilon, choices, digest, items, openly, basis, sent, sent_as = row
    return StoredRelease(
        number=number,
        made=made,
        nano_epsilon=nano_epsilon,
        choices=controls.Choices.model_validate_json(choices),
        catalogue=digest,
        items=tuple(json.loads(items)),
        openly=tuple(json.loads(openly)),
        basis=tuple(json.loads(basis)),
        sent=sent,
        sent_as=sent_as,
    )


def known_history(work: sqlite3.Connection, catalogue: PublicCatalogue) -> list[str]:
    """Return the part of the history that today's catalogue has; the rest is not used."""
    return [item for item in history.seen(work) if item in catalogue.by_id]


def changed(last: StoredRelease | None, seen: Sequence[str]) -> int:
    """Return how many items came or went since the list was created."""
    return len(set(seen) ^ set(last.basis if last else ()))


def threshold(work: sqlite3.Connection) -> int:
    """Return how many items have to change before another list is offered."""
    return int(get_value(work, "threshold", DEFAULT_THRESHOLD))


def set_threshold(work: sqlite3.Connection, items: int) -> None:
    """Set how many items have to change before another list is offered."""
    if not 1 <= items <= MOST_THRESHOLD:
        raise InvalidArgument("threshold", f"must be from 1 to {MOST_THRESHOLD:,}")
    set_value(work, "threshold", items)


def is_early(
    work: sqlite3.Connection,
    last: StoredRelease | None,
    choices: controls.Choices,
    seen: Sequence[str],
) -> bool:
    """Tell whether another list would come before its time: rule 5."""
    if last is None or last.choices != choices:
        return False
    return changed(last, seen) < threshold(work)


def create(
    work: sqlite3.Connection,
    *,
    after: int,
    agreed: int,
    early: bool,
    noise: NoiseSource,
    now: str,
) -> StoredRelease:
    """Charge for a list, create it and store it; show it only after the commit.

    `after` is the last list that its owner knew of, 0 for none; `agreed` is the price, in
    nano-epsilon, that they were shown. Raises `HubRefusal`, having booked nothing.
    """
    catalogue = require(work)
    choices = controls.load(work)
    before = latest(work)
    if after != (before.number if before else 0):
        raise HubRefusal(
            "Another list was created meanwhile, perhaps in another window. Look at it first."
        )
    price = quote(catalogue, choices)
    if agreed != price.charge.nano_epsilon:
        raise HubRefusal("The price has changed since it was shown. Look at it again first.")
    seen = known_history(work, catalogue)
    if is_early(work, before, choices, seen) and not early:
        raise HubRefusal(
            f"Only {changed(before, seen)} of {threshold(work)} items have changed since the last "
            "list. It can be sent again for free; creating another one has to be confirmed."
        )
    number = ledger.book(work, price.charge, openly=price.openly, now=now)
    release = perturb(
        history=seen,
        catalogue=catalogue.compiled,
        concerns=choices.concerns(catalogue),
        epsilon=price.epsilon,
        noise=noise,
        expectation=popularity.expectation(
            catalogue.compiled,
            popularity.load(work, catalogue),
            typical=typical_length(catalogue.compiled),
        ),
    )
    # Booked by public facts; what the mechanism itself says must not be dearer.
    if ledger.charge_of(release.event) != price.charge:
        raise HubRefusal("The list would cost something else than was agreed; it was discarded.")
    work.execute(
        "INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?, NULL, NULL)",
        (
            number,
            choices.model_dump_json(),
            catalogue.digest,
            *(json.dumps(sorted(ids)) for ids in (release.items, release.open, seen)),
        ),
    )
    created = latest(work)
    assert created is not None
    assert created.number == number
    return created


def mark_sent(work: sqlite3.Connection, number: int, *, client: str, now: str) -> None:
    """Note that the server took a list."""
    work.execute(
        "UPDATE releases SET sent = ?, sent_as = ? WHERE number = ?", (now, client, number)
    )


def facts_of(
    price: PriceQuote,
    totals: ledger.LedgerTotals,
    *,
    seen: int,
    release: StoredRelease | None = None,
) -> ReleaseFacts:
    """Return what there is to say about a list, or about one that is only planned.

    `price` is the quote for the controls that it is, or was, created under.
    """
    planned = (totals.total + price.charge).nano_epsilon / NANO
    items, openly, basis = (
        (set(release.items), set(release.openly), set(release.basis))
        if release
        else (set(), set(), set())
    )
    return ReleaseFacts(
        epsilon=release.epsilon if release else price.epsilon,
        total=totals.epsilon if release else planned,
        noise=price.noise,
        perturbed=len(price.perturbed),
        hidden=price.hidden,
        openly=price.openly,
        once_openly=bool(totals.openly),
        mixed=bool(price.perturbed or price.hidden),
        seen=seen,
        sent=len(items) if release else None,
        in_history=len(items & basis - openly),
        open_items=len(openly),
    )
