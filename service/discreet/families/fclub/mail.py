"""Between a local server and the global one: letters out, views in. The local side.

Letters have numbers, and the global server says which it wants next, so sending one again changes
nothing. Whatever goes wrong with the way is tried again at the next cycle; nobody waits for it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic_core import from_json, to_json

from discreet.families.fclub.desk import Desk, Enclosed, load_desk, save_desk, settle, write
from discreet.families.fclub.document import GlobalServerDocument
from discreet.families.fclub.recommender import ClusterRecommender
from discreet.families.fclub.view import read_view
from discreet.families.observer import Count
from discreet.errors import InvalidArgument, PeerUnavailable

if TYPE_CHECKING:
    from discreet.decisions.runtime import Runtime

LETTERS = "letters"
VIEWS = "views"
MOST_NUMBERS = 80_000
"""In one message: far below the two megabytes that a server takes by default."""


async def exchange(runtime: "Runtime", recommender: ClusterRecommender) -> bool:
    """Finish, write and send letters, and fetch what the global server made of everybody's.

    Tell whether anything happened.
    """
    server = recommender.global_server
    desk = await load_desk(runtime, recommender)
    before = desk
    settled = await settle(runtime, recommender, desk)
    if settled is None or server is None:
        return True
    desk = settled
    if not desk.waiting:
        written = await write(runtime, recommender, desk)
        if written is None:
            return True
        desk = written
    delivered = fetched = False
    if runtime.peers.reachable(server.name):
        if desk.waiting:
            delivered = await _deliver(runtime, recommender, server, desk)
        fetched = await _fetch(runtime, recommender, server)
    return delivered or fetched or desk != before


def _bundle(waiting: Sequence[Enclosed]) -> list[Enclosed]:
    """Return the first letters that have noise alike and fit a message, one at least."""
    numbers = 0
    bundle: list[Enclosed] = []
    for one in waiting:
        numbers += len(one.members) + len(one.steps)
        alike = not bundle or (one.epsilon, one.delta) == (bundle[0].epsilon, bundle[0].delta)
        if not alike or (bundle and numbers > MOST_NUMBERS):
            break
        bundle.append(one)
    return bundle


async def _deliver(
    runtime: "Runtime", recommender: ClusterRecommender, server: GlobalServerDocument, desk: Desk
) -> bool:
    """Send what waits, and forget what the global server has; tell whether it took any."""
    bundle = _bundle(desk.waiting)
    content = to_json(
        {
            "source": recommender.generation.hex(),
            "dimensions": recommender.dimensions,
            "baseline": recommender.document.learning.baseline,
            # As they were written, whatever the document says by now.
            "epsilon": bundle[0].epsilon,
            "delta": bundle[0].delta,
            "letters": [
                {"sequence": one.sequence, "members": one.members, "steps": one.steps}
                for one in bundle
            ],
        }
    )
    answer = await _post(runtime, recommender, server, LETTERS, content)
    if answer is None:
        return False
    try:
        wanted = from_json(answer)["next"]
        if type(wanted) is not int:
            raise ValueError
    except (ValueError, TypeError, KeyError):
        runtime.peers.distrust(peer=server.name)
        return False
    left = tuple(one for one in desk.waiting if one.sequence >= wanted)
    runtime.observer.count(
        recommender=recommender.name,
        what=Count.COMMUNICATIONS,
        label="upload",
        amount=len(desk.waiting) - len(left),
    )
    await save_desk(runtime, recommender, replace(desk, waiting=left))
    return len(left) < len(desk.waiting)


async def _fetch(
    runtime: "Runtime", recommender: ClusterRecommender, server: GlobalServerDocument
) -> bool:
    """Fetch the global server's view and keep it, if it is another than the one we have."""
    key = recommender.key(b"view")
    (kept,) = await runtime.store.load(keys=[key])
    seen = -1
    if kept is not None:
        try:
            seen = read_view(kept.content, dimensions=recommender.dimensions).version
        except InvalidArgument:
            seen = -1
    content = to_json({"source": recommender.generation.hex(), "seen": seen})
    answer = await _post(runtime, recommender, server, VIEWS, content)
    if answer is None or answer == b"null":
        return False
    try:
        view = read_view(answer, dimensions=recommender.dimensions)
    except InvalidArgument:
        runtime.peers.distrust(peer=server.name)
        return False
    if view.version == seen:
        return False
    await runtime.store.save(key=key, content=answer)
    recommender.touched = True
    runtime.observer.count(
        recommender=recommender.name, what=Count.COMMUNICATIONS, label="download"
    )
    return True


async def _post(
    runtime: "Runtime",
    recommender: ClusterRecommender,
    server: GlobalServerDocument,
    what: str,
    content: bytes,
) -> bytes | None:
    """Send a message; return the answer, or None if there is none that can be used."""
    name = quote(server.recommender or recommender.name, safe="")
    outcome, answer = "refused", None
    try:
        status, body = await runtime.peers.post(
            peer=server.name,
            url=f"{server.url}/peers/recommenders/{name}/{what}",
            content=content,
        )
        if status == 200:
            outcome, answer = "answered", body
        else:
            # It will not be accepted a moment later either: let the circuit find a pace.
            runtime.peers.distrust(peer=server.name)
    except PeerUnavailable as failure:
        outcome = failure.reason
    runtime.observer.exchanged(
        recommender=recommender.name,
        peer=server.name,
        direction="sent",
        outcome=outcome,
        size=len(content),
    )
    return answer
