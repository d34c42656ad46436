"""What the page shows, as JSON."""

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from discreet.hub import accepted, history, identity, ledger, offers, releases
from discreet.hub import choices as controls
from discreet.hub.accepted import CatalogueSource
from discreet.hub.catalogue import PublicCatalogue
from discreet.hub.explanations import explain
from discreet.hub.hub import Hub, ShownRow
from discreet.hub.services import HubServices
from discreet.hub.titles import normalise
from discreet.privacy.charges import NANO

Json = dict[str, Any]
MOST_FOUND = 60
STALE = timedelta(days=1)
"""How old a catalogue, and what is popular in it, may be when the page is opened."""


def services(every: HubServices) -> Json:
    """Return the services by name, with what each was told so far, and the sum over all of them.

    A service that the hub was started with before is in the sum and not in the list.
    """
    with every.first.database.transaction() as work:
        totals = ledger.totals(work)
    return {
        "services": [
            {
                "name": name,
                "url": hub.server.url if hub.server else None,
                "epsilon": totals.services.get(name, ledger.NOTHING_SPENT).epsilon,
            }
            for name, hub in every.hubs.items()
        ],
        "epsilon": totals.epsilon,
        "limit": totals.limit,
    }


def state(hub: Hub) -> Json:
    """Return everything about one service but lists of items."""
    hub.prepare_quotes()
    with hub.database.transaction() as work:
        catalogue, source = accepted.load(work), accepted.source_of(work)
        totals = ledger.totals(work)
        here = totals.services.get(hub.name, ledger.NOTHING_SPENT)
        shown: Json = {
            "service": hub.name,
            "server": hub.server and {"url": hub.server.url, "recommender": hub.server.recommender},
            "fetch": _wants_catalogue(hub, source),
            "client": identity.client(work),
            "history": len(history.seen(work)),
            "unmatched": len(history.unmatched(work)),
            "choices": controls.load(work).model_dump(mode="json"),
            "totals": {
                "lists": totals.lists,
                "epsilon": totals.epsilon,
                "limit": totals.limit,
                "openly": totals.openly,
                "here": {"lists": here.lists, "epsilon": here.epsilon, "openly": here.openly},
                "services": [
                    {"name": name, "lists": each.lists, "epsilon": each.epsilon}
                    for name, each in totals.services.items()
                ],
            },
            "threshold": releases.threshold(work),
            "catalogue": None,
            "offered": None,
            "quote": None,
            "release": None,
        }
        if catalogue is None or source is None:
            return shown
        seen = releases.known_history(work, catalogue)
        sizes = dict(catalogue.sizes)
        for names in catalogue.pinned.values():
            for name in names:
                sizes.setdefault(name, 0)
                sizes[name] += 1
        return shown | {
            "catalogue": {
                **asdict(source),
                "items": len(catalogue.items),
                "pinned": len(catalogue.pinned),
                "categories": [{"name": name, "items": n} for name, n in sizes.items()],
            },
            "offered": offers.waiting(work, seen=seen),
            "outside": shown["history"] - len(seen),
            "quote": _quote(work, catalogue, totals, seen),
            "release": _release(work, catalogue, totals, seen),
        }


def _wants_catalogue(hub: Hub, source: CatalogueSource | None) -> bool:
    """Tell whether the page should fetch the server's catalogue before anything else."""
    if hub.server is None or not hub.fetches:
        return False
    if source is None or source.source != hub.server.url:
        return True
    return datetime.fromisoformat(hub.now()) - datetime.fromisoformat(source.fetched) > STALE


def _quote(
    work: sqlite3.Connection,
    catalogue: PublicCatalogue,
    totals: ledger.LedgerTotals,
    seen: Sequence[str],
) -> Json:
    choices = controls.load(work)
    price = releases.quote(catalogue, choices)
    after = (totals.total + price.charge).nano_epsilon / NANO
    return {
        "epsilon": price.charge.nano_epsilon / NANO,
        "nano_epsilon": price.charge.nano_epsilon,
        "total": after,
        "within_limit": after <= totals.limit,
        "perturbed": price.perturbed,
        "hidden": price.hidden,
        "openly": price.openly,
        "early": releases.is_early(work, releases.latest(work), choices, seen),
        "reveals": explain(releases.facts_of(price, totals, seen=len(seen))),
    }


def _release(
    work: sqlite3.Connection,
    catalogue: PublicCatalogue,
    totals: ledger.LedgerTotals,
    seen: Sequence[str],
) -> Json | None:
    last = releases.latest(work)
    if last is None:
        return None
    price = releases.quote(catalogue, last.choices)
    raw, sent = catalogue.profile(last.basis), catalogue.profile(last.items)
    facts = releases.facts_of(price, totals, seen=len(last.basis), release=last)
    return {
        "number": last.number,
        "made": last.made,
        "epsilon": last.epsilon,
        "sent": last.sent,
        "current_client": last.sent_as == identity.client(work),
        "items": [_item(catalogue, item, seen=item in last.basis) for item in last.items],
        "seen": len(last.basis),
        "profile": [
            {"category": name, "raw": raw[name], "released": sent[name]}
            for name in catalogue.used_categories
        ],
        "changed": releases.changed(last, seen),
        "same_controls": last.choices == controls.load(work),
        "same_catalogue": last.catalogue == catalogue.digest,
        "reveals": explain(facts),
    }


def _item(catalogue: PublicCatalogue, item: str, *, seen: bool) -> Json:
    return {**asdict(catalogue.item(item)), "seen": seen}


def search(hub: Hub, *, text: str, category: str) -> Json:
    """Return items of the catalogue that fit, and whether they were seen."""
    wanted = normalise(text).text
    with hub.database.transaction() as work:
        catalogue = accepted.require(work)
        seen = set(history.seen(work))
    fitting = [
        item
        for item, title in zip(catalogue.items, catalogue.search_titles, strict=True)
        if (not category or category in item.categories) and wanted in title
    ]
    return {
        "found": len(fitting),
        "items": [_item(catalogue, i.id, seen=i.id in seen) for i in fitting[:MOST_FOUND]],
    }


def full_history(hub: Hub) -> Json:
    """Return the history, the newest first, and the titles that no item has."""
    with hub.database.transaction() as work:
        catalogue = accepted.load(work)
        return {
            "items": [asdict(each) for each in history.listed(work, catalogue)],
            "unmatched": history.unmatched(work),
        }


def rows(shown: Sequence[ShownRow]) -> Json:
    """Return recommendations in their rows."""
    return {"rows": [asdict(row) for row in shown]}
