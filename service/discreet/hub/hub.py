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
from discreet.hub import history, identity, ledger, popularity, reading, releases
from discreet.hub.catalogue import PublicCatalogue, PublicItem
from discreet.hub.database import Database
from discreet.hub.errors import HubRefusal, ServerError
from discreet.hub.server import RecommendationServer, RecommendedRow, required
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
class ClientReplacement:
    """Another id, and whether the server emptied the profile under the old one."""

    client: str
    withdrawn: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Hub:
    """One person's hub."""

    database: Database
    server: RecommendationServer | None
    fetches: bool = True
    """Whether the catalogue is the server's; otherwise it came from a file."""
    now: Callable[[], str] = today

    # The catalogue.

    def fetch_catalogue(self) -> int:
        """Fetch the whole catalogue from the server, and what is popular in it.

        Returns how many titles of past imports now match an item.
        """
        server = required(self.server)
        catalogue = catalogues.parse(server.catalogue())
        # Both requests before the history is read: how long that takes must not be seen.
        try:
            places = popularity.ranks(server.popular(catalogue.used_categories), catalogue)
        except ServerError:
            places = {}  # noisy counts are then read by the catalogue alone
        rematched = self.use_catalogue(catalogue, source=server.url)
        with self.database.transaction() as work:
            popularity.keep(work, places, catalogue)
        return rematched

    def use_catalogue(self, catalogue: PublicCatalogue, *, source: str) -> int:
        """Keep a catalogue; return how many titles of past imports now match an item."""
        with self.database.transaction() as work:
            catalogues.keep(work, catalogue, source=source, now=self.now())
            return history.rematch(work, catalogue, now=self.now())

    # The history.

    def see(self, item: str) -> bool:
        """Note an item as seen; False if that was known."""
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

    def import_file(self, path: Path) -> history.ImportResult:
        """Read a list or a browser's history file, told apart by its first bytes."""
        with self.database.transaction() as work:
            catalogue = catalogues.require(work)
        from_browser = reading.is_browser_history(path)
        titles = list(reading.page_titles(path)) if from_browser else reading.list_titles(path)
        add = history.import_pages if from_browser else history.import_list
        with self.database.transaction() as work:
            return add(work, catalogue, titles, now=self.now())

    # The controls.

    def choose(self, choices: controls.Choices) -> None:
        """Set the controls. Nothing is revealed by that."""
        with self.database.transaction() as work:
            known = catalogues.require(work).categories
            unknown = sorted(set(choices.levels) - set(known))
            if unknown:
                raise HubRefusal(f"The catalogue has no category “{unknown[0]}”.")
            controls.keep(work, choices)

    def set_limits(self, *, limit: float, threshold: int) -> None:
        """Set the total's limit, and how many items change before another list is offered."""
        with self.database.transaction() as work:
            ledger.set_limit(work, limit)
            releases.set_threshold(work, threshold)

    # Lists.

    def prepare_quotes(self) -> None:
        """Compute the quotes that will be needed; they are remembered.

        That takes a moment for a large catalogue, and needs nothing but public facts and controls.
        Done here, it does not hold the database while others wait.
        """
        with self.database.transaction() as work:
            catalogue = catalogues.load(work)
            chosen, last = controls.load(work), releases.latest(work)
        if catalogue is not None:
            for choices in (chosen, *([last.choices] if last else [])):
                releases.quote(catalogue, choices)

    def create(self, *, after: int, agreed: int, early: bool) -> releases.StoredRelease:
        """Create a list; it is paid for and stored when this returns."""
        self.prepare_quotes()
        with self.database.transaction() as work:
            return releases.create(
                work, after=after, agreed=agreed, early=early, noise=SystemNoise(), now=self.now()
            )

    def send(self, number: int) -> None:
        """Send the last list, exactly as it was stored. Free, however often."""
        server = required(self.server)
        with self.database.transaction() as work:
            last = releases.latest(work)
            if last is None or last.number != number:
                raise HubRefusal("Only the last list can be sent. Look at it first.")
            client = identity.client(work)
            identity.mark_used(work)
        server.send_profile(client, last.items)
        with self.database.transaction() as work:
            releases.mark_sent(work, number, client=client, now=self.now())

    def replace_client(self) -> ClientReplacement:
        """Take another id, after emptying the profile under the old one if there is any."""
        with self.database.transaction() as work:
            old, used = identity.client(work), identity.was_used(work)
        problem = ""
        if used and self.server is None:
            problem = "No server is named: what was sent under the old id is still there."
        elif used:
            try:
                required(self.server).send_profile(old, ())
            except ServerError as error:
                problem = str(error)
        with self.database.transaction() as work:
            return ClientReplacement(identity.replace(work), not problem, problem)

    # Recommendations.

    def recommend(self) -> list[ShownRow]:
        """Ask for every row, then arrange them by the true history, here."""
        server = required(self.server)
        with self.database.transaction() as work:
            catalogue, client = catalogues.require(work), identity.client(work)
        answered = server.recommend(client, catalogue.used_categories)
        with self.database.transaction() as work:
            seen = history.seen(work)
        return arrange(answered, catalogue, seen)


def arrange(
    rows: Sequence[RecommendedRow], catalogue: PublicCatalogue, seen: Sequence[str]
) -> list[ShownRow]:
    """Take seen items out, and put the categories first of which most was seen."""
    known, profile = set(seen), catalogue.profile(seen)
    shown = [
        ShownRow(
            category=row.category,
            items=tuple(catalogue.item(item) for item in row.items if item not in known)[
                :SHOWN_PER_ROW
            ],
            personalised=row.personalised,
            seen=len(seen) if row.category is None else profile[row.category],
        )
        for row in rows
    ]
    # Overall first; sorting is stable, so ties stay in the catalogue's order.
    return sorted(shown, key=lambda row: (row.category is not None, -row.seen))
