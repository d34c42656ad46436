"""The accepted catalogue is kept as it was, with what is pinned to it."""

import pytest

from discreet.hub import accepted, pins
from discreet.hub.catalogue import PublicCatalogue, PublicItem
from discreet.hub.database import Database
from discreet.hub.errors import HubRefusal


def test_it_is_kept(database: Database, public: PublicCatalogue) -> None:
    with database.transaction() as work:
        assert accepted.load(work) is None
        assert accepted.source_of(work) is None
        with pytest.raises(HubRefusal, match="no catalogue yet"):
            accepted.require(work)
        accepted.keep(work, public, source="somewhere", now="today")
        kept = accepted.require(work)
        source = accepted.source_of(work)
    assert (kept.items, kept.categories, kept.digest) == (
        public.items,
        public.categories,
        public.digest,
    )
    assert kept.pinned == {}
    assert source is not None
    assert (source.source, source.fetched) == ("somewhere", "today")


def test_a_new_pin_is_seen_at_once(database: Database, public: PublicCatalogue) -> None:
    with database.transaction() as work:
        accepted.keep(work, public, source="somewhere", now="today")
        assert accepted.require(work) is accepted.require(work), "read once"
        pins.pin(work, [PublicItem("f0", public.by_id["f0"].title, ("Health",))])
        assert accepted.require(work).labels["f0"] == ("Drama", "Health")


def test_services_do_not_share_one(database: Database, public: PublicCatalogue) -> None:
    other = Database(database.path.parent, "books")
    with database.transaction() as work:
        accepted.keep(work, public, source="somewhere", now="today")
    with other.transaction() as work:
        assert accepted.load(work) is None
