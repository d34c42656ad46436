"""The client's id: made up once, replaced at will, and remembered as used before it is."""

import re

from discreet.hub import identity
from discreet.hub.database import Database


def test_it_is_random_and_stays(database: Database) -> None:
    with database.transaction() as work:
        first = identity.client(work)
        assert re.fullmatch("hub-[0-9a-f]{32}", first)
        assert identity.client(work) == first
        second = identity.replace(work)
        assert second != first
        assert identity.client(work) == second


def test_only_the_id_that_was_used_counts_as_used(database: Database) -> None:
    with database.transaction() as work:
        assert not identity.was_used(work)
        identity.mark_used(work)
        assert identity.was_used(work)
        identity.replace(work)
        assert not identity.was_used(work)
