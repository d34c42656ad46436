"""From a history and the ledgers at its end to violations. Pure: it can be shown to fail.

no debit lost        what was spent covers every personalised answer that anybody has seen
no debit doubled     what was spent is covered by answers seen and by calls left in doubt
budget kept          no client has seen more personalised answers than its budget buys
replays equal        every answer under one event id is the same answer
feedback once        one decision's feedback was counted once, and what was counted stays; none is
                     refused as too late that was in time
released only        no worker answers from a model before it is stored, and a release has one model
only what exists     no answer shows an item that the recommender does not have
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from tests.chaos.history import Operation

Faults = Iterable[tuple[str, float, float]]
REWINDS = frozenset({"roll back", "kill master", "freeze master"})
"""Faults after which the store may for a while hold less than was released."""


def violations(
    operations: Iterable[Operation],
    *,
    spent: Mapping[str, float],
    price: float,
    budget: float,
    items: frozenset[str],
    faults: Faults = (),
) -> list[str]:
    """Return every promise that the history breaks, in words; none if it breaks none.

    No feedback in it is so old that it could be too late.
    """
    operations = list(operations)
    asked = [one for one in operations if one.kind == "recommend"]
    found = [*_ledgers(asked, spent, price, budget), *_replays(asked)]
    found += _feedback([one for one in operations if one.kind == "feedback"])
    found += _releases([one for one in operations if one.kind == "release"], faults)
    for one in asked:
        if one.status == 200 and not items.issuperset(one.items):
            found.append(f"{one.client} was shown an item that does not exist")
    return found


def _ledgers(
    asked: list[Operation], spent: Mapping[str, float], price: float, budget: float
) -> list[str]:
    seen: dict[str, set[str]] = defaultdict(set)
    doubtful: dict[str, set[object]] = defaultdict(set)
    settled = {one.event_id for one in asked if one.status == 200 and one.event_id}
    for place, one in enumerate(asked):
        if one.status == 200:
            if one.personalised and one.recommendation_id is not None:
                # What has an event id is paid for once, whatever was answered under it.
                seen[one.client].add(one.event_id or one.recommendation_id)
            continue
        # In doubt, unless a retry under its event id was answered: then that one counts, once.
        name = one.event_id or one.retry_under
        if name is None or name not in settled:
            doubtful[one.client].add(name or place)
    found = []
    for client in {one.client for one in asked}:
        paid = round(spent[client] / price, 6)
        answers, doubts = len(seen[client]), len(doubtful[client])
        if paid < answers:
            found.append(f"{client}: debits lost: {answers} answers were seen, {paid:g} are paid")
        if paid > answers + doubts:
            found.append(
                f"{client}: debits doubled: {paid:g} are paid, {answers} answers were seen and "
                f"{doubts} calls are in doubt"
            )
        if answers * price > budget + 1e-9:
            found.append(f"{client}: budget exceeded: {answers} answers at {price:g} of {budget:g}")
    return found


def _replays(asked: list[Operation]) -> list[str]:
    answers: dict[str, set[tuple[object, ...]]] = defaultdict(set)
    for one in asked:
        if one.status == 200 and one.event_id is not None:
            answers[one.event_id].add((one.recommendation_id, *one.items))
    return [
        f"{len(different)} different answers under one event id"
        for different in answers.values()
        if len(different) > 1
    ]


def _feedback(sent: list[Operation]) -> list[str]:
    """A call in doubt may have been the one that was counted: then none says so."""
    counted = Counter(
        one.recommendation_id for one in sent if one.status == 200 and one.duplicate is False
    )
    late = sum(one.status == 410 for one in sent)
    found = [f"{late} times feedback was refused as expired before its time"] if late else []
    return found + [
        f"feedback on one decision was counted {count} times"
        for count in counted.values()
        if count > 1
    ]


def _releases(seen: list[Operation], faults: Faults) -> list[str]:
    """The store was asked after the worker, so it must know the worker's release by then."""
    rewinds = [(began, ended) for name, began, ended in faults if name in REWINDS]
    models: dict[int, set[str]] = defaultdict(set)
    found = []
    for one in seen:
        if one.stored is None or one.model is None:
            continue
        rewound = any(began <= one.ended and one.began <= ended for began, ended in rewinds)
        if one.release == one.stored or not rewound:
            # A frozen master still takes what waits for it when it wakes up, though another has
            # taken its place: such a model counts if a worker answers from it.
            models[one.stored].add(one.model)
        if one.release is not None and one.release > one.stored and not rewound:
            found.append(
                f"a worker answered from release {one.release} before it was stored: "
                f"{one.stored} was the last"
            )
    return found + [
        f"release {number} has {len(different)} different models"
        for number, different in models.items()
        if len(different) > 1
    ]
