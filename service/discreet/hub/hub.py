"""The hub: what its page can ask of it, each a short unit of work on the database.

Whatever talks to the server does so between two units of work, never inside one: a slow server
must not lock the history.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from discreet.hub import catalogue as catalogues
from discreet.hub import choices as controls
from discreet.hub import history, identity, ledger, popularity, reading, releases, upstream
from discreet.hub.catalogue import PublicCatalogue, PublicItem
from discreet.hub.database import Database
from discreet.hub.refusals import Refused, ServerTrouble
from discreet.hub.upstream import Upstream
from discreet.privacy.noise import SystemNoise

SHOWN_PER_ROW = 12


def today() -> str:
    """Return this moment as the database keeps it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class ShownRow:
    """Recommendations as they are shown: seen items taken out, on this device."""

    category: str | None
    items: tuple[PublicItem, ...]
    personalised: bool
    seen: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """A new id, and whether the server emptied the profile under the old one."""

    client: str
    withdrawn: bool
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Hub:
    """One person's hub."""

    database: Database
    server: Upstream | None
    fetches: bool = True
    """Whether the catalogue is the server's; otherwise it came from a file."""
    now: Callable[[], str] = today

    # The catalogue.

    def fetch_catalogue(self) -> int:
        """Fetch the whole catalogue from the server, and what is popular in it.

        Returns how many titles of past imports it made items of.
        """
        server = upstream.required(self.server)
        catalogue = catalogues.parse(server.catalogue())
        # Both questions before the history is looked at: how long that takes is nobody's business.
        try:
            places = popularity.ranks(server.popular(catalogue.asked), catalogue)
        except ServerTrouble:
            places = {}  # counts are then read as the paper does; nothing depends on it but that
        rematched = self.use_catalogue(catalogue, source=server.url)
        with self.database.transaction() as work:
            popularity.keep(work, places, catalogue)
        return rematched

    def use_catalogue(self, catalogue: PublicCatalogue, *, source: str) -> int:
        """Keep a catalogue; return how many titles of past imports it made items of."""
        with self.database.transaction() as work:
            catalogues.keep(work, catalogue, source=source, now=self.now())
            return history.rematch(work, catalogue, now=self.now())

    # The history.

    def see(self, item: str) -> bool:
        """Note an item as seen; false if that was known."""
        with self.database.transaction() as work:
            found = catalogues.require(work)
            return history.add(work, found, item, source="clicked", now=self.now())

    def unsee(self, item: str) -> None:
        """Forget that an item was seen."""
        with self.database.transaction() as work:
            history.remove(work, item)

    def erase_history(self) -> None:
        """Forget everything seen. The ledger and what was sent stay as they are."""
        with self.database.transaction() as work:
            history.erase(work)

    def import_file(self, path: Path) -> history.Imported:
        """Read a list or a browser's history file, told apart by its first bytes."""
        with self.database.transaction() as work:
            catalogue = catalogues.require(work)
        if reading.is_browser_history(path):
            pages = list(reading.page_titles(path))
            with self.database.transaction() as work:
                return history.import_pages(work, catalogue, pages, now=self.now())
        titles = reading.list_titles(path)
        with self.database.transaction() as work:
            return history.import_list(work, catalogue, titles, now=self.now())

    # The controls.

    def choose(self, choices: controls.Choices) -> None:
        """Set the controls. Nothing is released by that."""
        with self.database.transaction() as work:
            known = catalogues.require(work).categories
            unknown = sorted(set(choices.levels) - set(known))
            if unknown:
                raise Refused(f"The catalogue has no category “{unknown[0]}”.")
            controls.keep(work, choices)

    def set_limits(self, *, limit: float, threshold: int) -> None:
        """Set the total's limit, and how many items change before another drawing is offered."""
        with self.database.transaction() as work:
            ledger.set_limit(work, limit)
            releases.set_threshold(work, threshold)

    # Releases.

    def work_out_prices(self) -> None:
        """Compute the quotes that will be needed, and remember them.

        That takes a moment for a large catalogue, and needs nothing but public facts and controls.
        Done here, it does not hold the database while others wait.
        """
        with self.database.transaction() as work:
            catalogue = catalogues.load(work)
            chosen, drawn = controls.load(work), releases.latest(work)
        if catalogue is not None:
            for choices in (chosen, *([drawn.choices] if drawn else [])):
                releases.quote(catalogue, choices)

    def draw(self, *, after: int, agreed: int, early: bool) -> releases.Drawn:
        """Draw a release; it is paid for and stored when this returns."""
        self.work_out_prices()
        with self.database.transaction() as work:
            return releases.draw(
                work, after=after, agreed=agreed, early=early, noise=SystemNoise(), now=self.now()
            )

    def send(self, number: int) -> None:
        """Send the last drawing, exactly as it was stored. Free, however often."""
        server = upstream.required(self.server)
        with self.database.transaction() as work:
            drawn = releases.latest(work)
            client = identity.client(work)
        if drawn is None or drawn.number != number:
            raise Refused("Only the last drawing can be sent. Look at it first.")
        with self.database.transaction() as work:
            identity.note_told(work)
        server.send_profile(client, drawn.items)
        with self.database.transaction() as work:
            releases.mark_sent(work, drawn, client=client, now=self.now())

    def replace_client(self) -> Replaced:
        """Take another id, after emptying the profile under the old one if there is any."""
        with self.database.transaction() as work:
            old = identity.client(work)
            known = identity.may_be_known(work)
        trouble = ""
        if known and self.server is not None:
            try:
                self.server.send_profile(old, ())
            except ServerTrouble as error:
                trouble = str(error)
        elif known:
            trouble = "There is no server to tell: what was sent under the old id is still there."
        with self.database.transaction() as work:
            return Replaced(identity.replace(work), not trouble, trouble)

    # Recommendations.

    def recommend(self) -> list[ShownRow]:
        """Ask for every row, then arrange them by the true history, here."""
        server = upstream.required(self.server)
        with self.database.transaction() as work:
            catalogue = catalogues.require(work)
            client = identity.client(work)
        answered = server.recommend(client, catalogue.asked)
        with self.database.transaction() as work:
            seen = history.seen(work)
        return arrange(answered, catalogue, seen)


def arrange(
    rows: Sequence[upstream.Row], catalogue: PublicCatalogue, seen: Sequence[str]
) -> list[ShownRow]:
    """Take seen items out, and put the categories first of which most was seen."""
    known, profile = set(seen), catalogue.profile(seen)
    shown = [
        ShownRow(
            category=row.category,
            items=tuple(
                catalogue.by_id.get(item, PublicItem(item, item, ()))
                for item in row.items
                if item not in known
            )[:SHOWN_PER_ROW],
            personalised=row.personalised,
            seen=len(seen) if row.category is None else profile[row.category],
        )
        for row in rows
    ]
    # Overall first; sorting is stable, so ties stay in the catalogue's order.
    return sorted(shown, key=lambda row: (row.category is not None, -row.seen))
