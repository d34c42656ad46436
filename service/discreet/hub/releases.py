"""What is drawn, paid for, shown and sent.

The rules, in the order in which they bind:

1. A drawing is charged and stored in one commit, before anybody sees it. What is shown is what was
   stored, and what is sent is what was shown.
2. Every drawing costs, also one that is never sent: whoever draws until the result pleases has
   chosen among them with the history in mind, and all of them have to be paid for.
3. Sending again what was drawn costs nothing, however often.
4. A drawing needs its owner's agreement: the request names the price that was shown and the last
   drawing that was known, so that neither a double click nor a second window pays twice.
5. Under the same controls a drawing is not even offered before a stated number of items changed;
   who wants one earlier has to say so. Nothing is ever drawn or sent by itself. A release that
   appeared whenever so many items had changed would tell by its date that they had, and no epsilon
   is paid for that.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from discreet.families.collaborative.on_device.calibration import calibrate
from discreet.families.collaborative.on_device.catalogue import TYPICAL, Catalogue, Concerns, Level, scope_of
from discreet.families.collaborative.on_device.perturbation import event_of, perturb, perturbs
from discreet.families.collaborative.on_device.quantification import quantify
from discreet.errors import InvalidArgument
from discreet.hub import choices as controls
from discreet.hub import history, ledger, popularity, words
from discreet.hub.catalogue import PublicCatalogue, require
from discreet.hub.database import fact, keep_fact
from discreet.hub.refusals import Refused
from discreet.privacy.charges import NANO, Charge
from discreet.privacy.noise import NoiseSource

DEFAULT_THRESHOLD = 10
MOST_THRESHOLD = 10_000


@dataclass(frozen=True, slots=True)
class Quote:
    """What a drawing would be and cost, from public facts and the controls alone."""

    epsilon: float
    charge: Charge
    noise: float
    perturbed: tuple[str, ...]
    hidden: tuple[str, ...]
    openly: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawing as it was stored."""

    number: int
    made: str
    choices: controls.Choices
    catalogue: str
    items: tuple[str, ...]
    openly: tuple[str, ...]
    basis: tuple[str, ...]
    nano_epsilon: int
    sent: str | None
    sent_as: str | None

    @property
    def epsilon(self) -> float:
        """What it cost."""
        return self.nano_epsilon / NANO


_compiled: dict[str, Catalogue] = {}


def compiled(catalogue: PublicCatalogue) -> Catalogue:
    """Return the catalogue as the mechanism wants it; compiled once."""
    found = _compiled.get(catalogue.digest)
    if found is None:
        found = Catalogue.of({item.id: item.categories for item in catalogue.items})
        _compiled.clear()
        _compiled[catalogue.digest] = found
    return found


def typical_length(catalogue: Catalogue) -> int:
    """Return what an ordinary history is taken to have, by public facts alone."""
    return min(TYPICAL, max(len(catalogue.items) // 4, 1))


def quote(catalogue: PublicCatalogue, choices: controls.Choices) -> Quote:
    """Say what a drawing would cost under these controls. The history plays no part in it."""
    return _quote(compiled(catalogue), choices.concerns(catalogue), choices.epsilon)


@lru_cache(maxsize=256)
def _quote(catalogue: Catalogue, concerns: Concerns, own: float | None) -> Quote:
    scope = scope_of(catalogue, concerns)
    levels = dict(zip(catalogue.categories, catalogue.levels(concerns), strict=True))
    epsilon = noise = 0.0
    if perturbs(catalogue=catalogue, concerns=concerns):
        epsilon = own or quantify(
            catalogue=catalogue, concerns=concerns, typical=typical_length(catalogue)
        )
        magnitudes = calibrate(catalogue=catalogue, epsilon=epsilon, concerns=concerns).magnitudes
        noise = sum(magnitudes) / len(magnitudes)
    event = event_of(catalogue=catalogue, concerns=concerns, epsilon=epsilon or 1.0)
    return Quote(
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


def latest(work: sqlite3.Connection) -> Drawn | None:
    """Return the last drawing, if there ever was one."""
    row = work.execute(
        "SELECT number, made, choices, catalogue, items, releases.openly, basis, nano_epsilon, "
        "sent, sent_as FROM releases JOIN ledger USING (number) ORDER BY number DESC LIMIT 1"
    ).fetchone()
    if row is None:
        return None
    number, made, choices, digest, items, openly, basis, nano_epsilon, sent, sent_as = row
    return Drawn(
        number=number,
        made=made,
        choices=controls.Choices.of(json.loads(choices)),
        catalogue=digest,
        items=tuple(json.loads(items)),
        openly=tuple(json.loads(openly)),
        basis=tuple(json.loads(basis)),
        nano_epsilon=nano_epsilon,
        sent=sent,
        sent_as=sent_as,
    )


def known_history(work: sqlite3.Connection, catalogue: PublicCatalogue) -> list[str]:
    """Return the part of the history that today's catalogue has; the rest is not released."""
    return [item for item in history.seen(work) if item in catalogue.by_id]


def changed(drawn: Drawn | None, seen: Sequence[str]) -> int:
    """Return how many items came or went since the drawing."""
    return len(set(seen) ^ set(drawn.basis if drawn else ()))


def threshold(work: sqlite3.Connection) -> int:
    """Return how many items have to change before another drawing is offered."""
    return int(fact(work, "threshold", DEFAULT_THRESHOLD))


def set_threshold(work: sqlite3.Connection, items: int) -> None:
    """Set how many items have to change before another drawing is offered."""
    if not 1 <= items <= MOST_THRESHOLD:
        raise InvalidArgument("threshold", f"must be from 1 to {MOST_THRESHOLD:,}")
    keep_fact(work, "threshold", items)


def is_early(
    work: sqlite3.Connection, drawn: Drawn | None, choices: controls.Choices, seen: Sequence[str]
) -> bool:
    """Tell whether another drawing would come before its time: rule 5."""
    if drawn is None or drawn.choices != choices:
        return False
    return changed(drawn, seen) < threshold(work)


def draw(
    work: sqlite3.Connection,
    *,
    after: int,
    agreed: int,
    early: bool,
    noise: NoiseSource,
    now: str,
) -> Drawn:
    """Charge for a drawing, make it and store it; show it only after the commit.

    `after` is the last drawing that its owner knew of, 0 for none; `agreed` is the price, in
    nano-epsilon, that they were shown.
    """
    catalogue = require(work)
    choices = controls.load(work)
    before = latest(work)
    if after != (before.number if before else 0):
        raise Refused("Something was drawn in the meantime, perhaps in another window. Look first.")
    price = quote(catalogue, choices)
    if agreed != price.charge.nano_epsilon:
        raise Refused("The price has changed since it was shown. Look at it again first.")
    seen = known_history(work, catalogue)
    if is_early(work, before, choices, seen) and not early:
        raise Refused(
            f"Only {changed(before, seen)} of {threshold(work)} items have changed since the last "
            "drawing. It can be sent again for free; drawing anew before that has to be confirmed."
        )
    number = ledger.book(work, price.charge, openly=price.openly, now=now)
    mechanism = compiled(catalogue)
    release = perturb(
        history=seen,
        catalogue=mechanism,
        concerns=choices.concerns(catalogue),
        epsilon=price.epsilon,
        noise=noise,
        expectation=popularity.expectation(
            mechanism,
            popularity.load(work, catalogue),
            typical=typical_length(mechanism),
        ),
    )
    # The book was kept from public facts; the mechanism's own word must not be dearer.
    paid = ledger.charge_of(release.event)
    if paid != price.charge:
        raise Refused("The drawing would cost something else than was agreed; it was thrown away.")
    work.execute(
        "INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?, NULL, NULL)",
        (
            number,
            json.dumps(choices.document()),
            catalogue.digest,
            json.dumps(sorted(release.items)),
            json.dumps(sorted(release.open)),
            json.dumps(sorted(seen)),
        ),
    )
    drawn = latest(work)
    assert drawn is not None
    assert drawn.number == number
    return drawn


def mark_sent(work: sqlite3.Connection, drawn: Drawn, *, client: str, now: str) -> None:
    """Note that the server took it."""
    work.execute(
        "UPDATE releases SET sent = ?, sent_as = ? WHERE number = ?", (now, client, drawn.number)
    )


def planned_words(price: Quote, standing: ledger.Account, *, seen: int) -> list[str]:
    """Say what a drawing under these controls would tell."""
    total = (standing.total + price.charge).nano_epsilon / NANO
    return words.tells(_facts(price, standing, epsilon=price.epsilon, total=total, seen=seen))


def drawn_words(drawn: Drawn, price: Quote, standing: ledger.Account) -> list[str]:
    """Say what this drawing tells. `price` is the quote for the controls it was drawn under."""
    really = len(set(drawn.items) & set(drawn.basis) - set(drawn.openly))
    return words.tells(
        _facts(
            price,
            standing,
            epsilon=drawn.epsilon,
            total=standing.epsilon,
            seen=len(drawn.basis),
            sent=len(drawn.items),
            really=really,
            open_items=len(drawn.openly),
        )
    )


def _facts(
    price: Quote,
    standing: ledger.Account,
    *,
    epsilon: float,
    total: float,
    seen: int,
    sent: int | None = None,
    really: int = 0,
    open_items: int = 0,
) -> words.Facts:
    return words.Facts(
        epsilon=epsilon,
        total=total,
        noise=price.noise,
        perturbed=len(price.perturbed),
        hidden=price.hidden,
        openly=price.openly,
        once_openly=bool(standing.openly),
        mixed=bool(price.perturbed or price.hidden),
        seen=seen,
        sent=sent,
        really=really,
        open_items=open_items,
    )
