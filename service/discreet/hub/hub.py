"""The hub at one service: what its page can ask of it, each a short unit of work on the database.

Whatever talks to the server does so between two units of work, never inside one: a slow server
must not lock the history.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from discreet.hub import (
    accepted,
    history,
    identity,
    ledger,
    offers,
    pins,
    popularity,
    reading,
    releases,
)
from discreet.hub import choices as controls
from discreet.hub import local_ranking as local
from discreet.hub.catalogue import PublicCatalogue, PublicItem, parse
from discreet.hub.database import Database
from discreet.hub.errors import HubRefusal, ServerError
from discreet.hub.server import RecommendedRow, ServiceAdapter, required
from discreet.privacy.noise import SystemNoise

SHOWN_PER_ROW = 12


def today() -> str:
    """Return this moment as the database keeps it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class ShownRow:
    """Recommendations as they are shown: seen items taken out, on this device.

    `local` is the row that was made here, from what is popular and the history.
    """

    category: str | None
    items: tuple[PublicItem, ...]
    personalised: bool
    seen: int
    local: bool = False


@dataclass(frozen=True, slots=True)
class CatalogueUpdate:
    """What came of fetching or accepting a catalogue.

    `rematched` counts titles of past imports that an item has now; `offered` is whether the
    catalogue differs and waits for its owner's agreement.
    """

    rematched: int
    offered: bool = False


@dataclass(frozen=True, slots=True)
class ClientReplacement:
    """Another id, and whether the server emptied the profile under the old one."""

    client: str
    withdrawn: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Hub:
    """One person's hub at one service."""

    database: Database
    server: ServiceAdapter | None
    fetches: bool = True
    """Whether the catalogue is the server's; otherwise it came from a file."""
    now: Callable[[], str] = today

    def __post_init__(self) -> None:
        if self.server is not None and self.server.client is not None:
            with self.database.transaction() as work:
                identity.bind(work, self.server.client)

    @property
    def name(self) -> str:
        """What its owner calls the service."""
        return self.database.service

    # The catalogue.

    def fetch_catalogue(self) -> CatalogueUpdate:
        """Fetch the whole catalogue from the server, and what is popular in it.

        One that differs from the accepted one is only offered: see `offers`.
        """
        server = required(self.server)
        catalogue = parse(server.catalogue())
        # Both requests before the history is read: how long that takes must not be seen.
        try:
            places = popularity.ranks(server.popular(catalogue.used_categories), catalogue)
        except ServerError:
            places = {}  # noisy counts are then read by the catalogue alone
        with self.database.transaction() as work:
            waits = offers.offer(work, catalogue, places=places, source=server.url, now=self.now())
            if waits:
                return CatalogueUpdate(0, offered=True)
            return CatalogueUpdate(history.rematch(work, catalogue, now=self.now()))

    def accept_catalogue(self, digest: str) -> CatalogueUpdate:
        """Agree to the offered catalogue whose difference was shown."""
        with self.database.transaction() as work:
            catalogue = offers.accept(work, digest)
            return CatalogueUpdate(history.rematch(work, catalogue, now=self.now()))

    def refuse_catalogue(self) -> None:
        """Go on with the catalogue that was accepted before."""
        with self.database.transaction() as work:
            offers.refuse(work)

    def use_catalogue(self, catalogue: PublicCatalogue, *, source: str) -> int:
        """Take a catalogue from its owner's own file; return how many titles now match an item."""
        with self.database.transaction() as work:
            accepted.keep(work, catalogue, source=source, now=self.now())
            return history.rematch(work, catalogue, now=self.now())

    def reset_pins(self) -> None:
        """Judge items by the accepted catalogue's categories alone: its owner wants that."""
        with self.database.transaction() as work:
            pins.reset(work, accepted.require(work))

    # The history.

    def see(self, item: str) -> str:
        """Note an item as seen; return its title."""
        with self.database.transaction() as work:
            found = accepted.require(work)
            history.add(work, found, item, source="clicked", now=self.now())
            return found.item(item).title

    def see_titles(self, titles: Sequence[str], *, source: str) -> int:
        """Note the items with these titles, where the catalogue has them; return how many are new.

        Other titles are not kept.
        """
        with self.database.transaction() as work:
            catalogue = accepted.load(work)
            if catalogue is None:
                return 0
            return history.add_titles(work, catalogue, titles, source=source, now=self.now())

    def seen_titles(self) -> list[str]:
        """Return the titles of everything seen."""
        with self.database.transaction() as work:
            return [item.title for item in history.listed(work, accepted.load(work))]

    def unsee(self, item: str) -> str | None:
        """Forget that an item was seen; return its title, if it was."""
        with self.database.transaction() as work:
            return history.remove(work, item)

    def unsee_title(self, title: str) -> None:
        """Forget the item with this title, if the catalogue has it."""
        with self.database.transaction() as work:
            catalogue = accepted.load(work)
            found = catalogue.title_index.find(title) if catalogue else None
            if isinstance(found, str):
                history.remove(work, found)

    def erase_history(self) -> None:
        """Forget everything seen. The ledger and what was sent stay as they are."""
        with self.database.transaction() as work:
            history.erase(work)

    def has_catalogue(self) -> bool:
        """Tell whether there is a catalogue yet."""
        with self.database.transaction() as work:
            return accepted.load(work) is not None

    def import_file(self, path: Path) -> history.ImportResult:
        """Read a list or a browser's history file, told apart by its first bytes."""
        with self.database.transaction() as work:
            catalogue = accepted.require(work)
        from_browser = reading.is_browser_history(path)
        titles = list(reading.page_titles(path)) if from_browser else reading.list_titles(path)
        add = history.import_pages if from_browser else history.import_list
        with self.database.transaction() as work:
            return add(work, catalogue, titles, now=self.now())

    # The controls.

    def choose(self, choices: controls.Choices) -> None:
        """Set the controls. Nothing is revealed by that."""
        with self.database.transaction() as work:
            catalogue, before = accepted.require(work), controls.load(work)
            known = {*catalogue.categories, *catalogue.compiled.categories}
            unknown = sorted(set(choices.levels) - known - set(before.levels))
            if unknown:
                raise HubRefusal(f"The catalogue has no category “{unknown[0]}”.")
            controls.keep(work, choices.completed(before, sorted(known)))

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
            catalogue = accepted.load(work)
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
        if self.server is not None and self.server.client is not None:
            raise HubRefusal(
                "This device's key is bound to its id. Ask the service for another code."
            )
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
            catalogue, client = accepted.require(work), identity.client(work)
        answered = server.recommend(client, catalogue.used_categories)
        with self.database.transaction() as work:
            seen, places = history.seen(work), popularity.load(work, catalogue)
        rows = arrange(answered, catalogue, seen)
        here = local.rank(catalogue, places, seen, count=SHOWN_PER_ROW)
        if not here or not seen:
            return rows
        items = tuple(catalogue.item(item) for item in here)
        return [ShownRow(None, items, personalised=True, seen=len(seen), local=True), *rows]


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
