"""Several services, one person: what was seen is the person's, and everything else the service's.

Each service has its own catalogue, pseudonym, controls and lists. The ledger is shared, because
services may compare notes: `ledger` adds up what all of them were told. What was seen is noted at
every service whose catalogue has an item of that title, and leaves only as that service's controls
say, which is not at all until its owner says otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import InvalidArgument
from discreet.hub.errors import HubRefusal
from discreet.hub.history import ImportResult
from discreet.hub.hub import CatalogueUpdate, Hub


@dataclass(frozen=True, slots=True)
class HubServices:
    """Every service of one person's hub, by name."""

    hubs: Mapping[str, Hub]

    @classmethod
    def of(cls, hubs: Sequence[Hub]) -> "HubServices":
        """Return these services. Raises `InvalidArgument` if there is none, or a name twice."""
        named = {hub.name: hub for hub in hubs}
        if not hubs:
            raise InvalidArgument("--server", "is missing; --demo needs no server")
        if len(named) < len(hubs):
            raise InvalidArgument("--service", "names one service twice: give each its own name")
        return cls(named)

    @property
    def first(self) -> Hub:
        """The service that the page shows at first."""
        return next(iter(self.hubs.values()))

    def service(self, name: str) -> Hub:
        """Return a service, or say that there is none."""
        if name not in self.hubs:
            raise HubRefusal(f"The hub was not started with a service “{name}”.")
        return self.hubs[name]

    def fetch_catalogue(self, name: str) -> CatalogueUpdate:
        """Fetch a service's catalogue; what was seen elsewhere is then noted there too."""
        update = self.service(name).fetch_catalogue()
        self._note_what_others_know(name)
        return update

    def accept_catalogue(self, name: str, digest: str) -> CatalogueUpdate:
        """Agree to the catalogue that a service offers."""
        update = self.service(name).accept_catalogue(digest)
        self._note_what_others_know(name)
        return update

    def _note_what_others_know(self, name: str) -> None:
        titles = [title for hub in self._others(name) for title in hub.seen_titles()]
        if titles:
            self.service(name).see_titles(titles, source="another service")

    def see(self, name: str, item: str) -> None:
        """Note an item as seen, here and wherever else it is offered."""
        title = self.service(name).see(item)
        for hub in self._others(name):
            hub.see_titles([title], source="another service")

    def unsee(self, name: str, item: str) -> None:
        """Forget that an item was seen, everywhere."""
        title = self.service(name).unsee(item)
        if title is not None:
            for hub in self._others(name):
                hub.unsee_title(title)

    def push(self, titles: Sequence[str]) -> None:
        """Note what another program on a device of the person's says was seen."""
        for hub in self.hubs.values():
            hub.see_titles(titles, source="pushed")

    def import_file(self, name: str, path: Path) -> ImportResult:
        """Read a history file at every service; return what this one made of it."""
        result = self.service(name).import_file(path)
        for hub in self._others(name):
            if hub.has_catalogue():
                hub.import_file(path)
        return result

    def erase_history(self) -> None:
        """Forget everything seen, everywhere. The ledger and what was sent stay as they are."""
        for hub in self.hubs.values():
            hub.erase_history()

    def _others(self, name: str) -> list[Hub]:
        return [hub for hub in self.hubs.values() if hub.name != name]
