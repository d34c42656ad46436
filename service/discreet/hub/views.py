"""What the page shows, as JSON."""

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from discreet.hub import catalogue as catalogues
from discreet.hub import choices as controls
from discreet.hub import history, identity, ledger, releases
from discreet.hub.catalogue import PublicCatalogue, PublicItem
from discreet.hub.hub import Hub, ShownRow
from discreet.hub.titles import spell
from discreet.privacy.charges import NANO

Json = dict[str, Any]
MOST_FOUND = 60
STALE = timedelta(days=1)
"""How old a catalogue, and what is popular in it, may be when the page is opened."""


def state(hub: Hub) -> Json:
    """Return everything but lists of items."""
    hub.work_out_prices()
    with hub.database.transaction() as work:
        catalogue = catalogues.load(work)
        account = ledger.account(work)
        shown: Json = {
            "server": hub.server and {"url": hub.server.url, "recommender": hub.server.recommender},
            "fetch": _wants_catalogue(hub, catalogues.described(work)),
            "client": identity.client(work),
            "history": len(history.seen(work)),
            "unmatched": len(history.unmatched(work)),
            "choices": controls.load(work).document(),
            "account": {
                "drawings": account.drawings,
                "epsilon": account.epsilon,
                "limit": account.limit,
                "openly": account.openly,
            },
            "threshold": releases.threshold(work),
            "catalogue": None,
            "quote": None,
            "release": None,
        }
        described = catalogues.described(work)
        if catalogue is None or described is None:
            return shown
        seen = releases.known_history(work, catalogue)
        shown["catalogue"] = {
            "source": described.source,
            "fetched": described.fetched,
            "items": len(catalogue.items),
            "categories": [{"name": name, "items": size} for name, size in catalogue.sizes.items()],
        }
        shown["outside"] = shown["history"] - len(seen)
        shown["quote"] = _quote(work, catalogue, account, seen)
        shown["release"] = _release(work, catalogue, account, seen)
        return shown


def _wants_catalogue(hub: Hub, described: catalogues.Described | None) -> bool:
    """Tell whether the page should fetch the server's catalogue before anything else."""
    if hub.server is None or not hub.fetches:
        return False
    if described is None or described.source != hub.server.url:
        return True
    return datetime.fromisoformat(hub.now()) - datetime.fromisoformat(described.fetched) > STALE


def _quote(
    work: sqlite3.Connection,
    catalogue: PublicCatalogue,
    account: ledger.Account,
    seen: Sequence[str],
) -> Json:
    choices = controls.load(work)
    price = releases.quote(catalogue, choices)
    after = (account.total + price.charge).nano_epsilon / NANO
    drawn = releases.latest(work)
    return {
        "epsilon": price.charge.nano_epsilon / NANO,
        "nano_epsilon": price.charge.nano_epsilon,
        "total": after,
        "within_limit": after <= account.limit,
        "perturbed": price.perturbed,
        "hidden": price.hidden,
        "openly": price.openly,
        "early": releases.is_early(work, drawn, choices, seen),
        "tells": releases.planned_words(price, account, seen=len(seen)),
    }


def _release(
    work: sqlite3.Connection,
    catalogue: PublicCatalogue,
    account: ledger.Account,
    seen: Sequence[str],
) -> Json | None:
    drawn = releases.latest(work)
    if drawn is None:
        return None
    price = releases.quote(catalogue, drawn.choices)
    raw, released = catalogue.profile(drawn.basis), catalogue.profile(drawn.items)
    return {
        "number": drawn.number,
        "made": drawn.made,
        "epsilon": drawn.epsilon,
        "sent": drawn.sent,
        "current_client": drawn.sent_as == identity.client(work),
        "items": [_item(catalogue, item, seen=item in drawn.basis) for item in drawn.items],
        "seen": len(drawn.basis),
        "profile": [
            {"category": name, "raw": raw[name], "released": released[name]}
            for name in catalogue.categories
            if catalogue.sizes[name]
        ],
        "changed": releases.changed(drawn, seen),
        "same_controls": drawn.choices == controls.load(work),
        "same_catalogue": drawn.catalogue == catalogue.digest,
        "tells": releases.drawn_words(drawn, price, account),
    }


def _item(catalogue: PublicCatalogue, item: str, *, seen: bool) -> Json:
    known = catalogue.by_id.get(item, PublicItem(item, item, ()))
    return {**asdict(known), "seen": seen}


def shelf(hub: Hub, *, search: str, category: str) -> Json:
    """Return items of the catalogue that fit, and whether they were seen."""
    wanted = spell(search).text
    with hub.database.transaction() as work:
        catalogue = catalogues.require(work)
        seen = set(history.seen(work))
    fitting = [
        item
        for item, spelt in zip(catalogue.items, catalogue.spelt, strict=True)
        if (not category or category in item.categories) and wanted in spelt
    ]
    return {
        "found": len(fitting),
        "items": [_item(catalogue, i.id, seen=i.id in seen) for i in fitting[:MOST_FOUND]],
    }


def diary(hub: Hub) -> Json:
    """Return the history, the newest first, and the titles that no item has."""
    with hub.database.transaction() as work:
        catalogue = catalogues.load(work)
        return {
            "items": [asdict(each) for each in history.listed(work, catalogue)],
            "unmatched": history.unmatched(work),
        }


def rows(shown: Sequence[ShownRow]) -> Json:
    """Return recommendations in their rows."""
    return {"rows": [asdict(row) for row in shown]}
