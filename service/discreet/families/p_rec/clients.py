"""Clients: their histories, the voters' credits with them, and the round to be answered next.

What a worker remembers of them is a cache. A client's page shows, at every question, whether what
is remembered of it is still the beginning of it; credits are the replay of a run's answers over its
rounds' votes, and a replay from the start gives the same bytes as one that went on from where it
was. Questions of one client wait for each other within a worker; between workers, the store's
guards decide.
"""

import asyncio
import os
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from discreet.errors import DiscreetError, InvalidArgument, NothingToRecommend, StoreDamaged
from discreet.families.contract import Recommender
from discreet.families.p_rec.credits import Credits
from discreet.families.p_rec.history import (
    MARK_BYTES,
    ClientAnswer,
    ClientHistory,
    CurrentRun,
    RunRecord,
)
from discreet.families.p_rec.learning import AnswerPlace
from discreet.families.p_rec.model import RunView
from discreet.families.p_rec.remembered import Remembered
from discreet.families.p_rec.rounds import Round
from discreet.families.p_rec.run_parameters import VotingParameters
from discreet.families.p_rec.turns import ClientTurns
from discreet.families.p_rec.votes import Votes
from discreet.families.questions import Choice, Decision
from discreet.state.stores import SHARDS, PageWrite, shard_of
from discreet.state.tombstones import Tombstones

T = TypeVar("T")

TOO_FEW_PEERS = "too few like-minded voters"
NO_RUN_LEFT = "the client has no run left in this window, or the voters' privacy budget is spent"

_REPLAYED_TOGETHER = 8
"""Rounds of a replay that are read together, and after which other requests have their turn."""
MOST_CLIENT_BYTES = 192 * 2**20
_OVERHEAD = 2_000
_RECORD_OVERHEAD = 100
"""About what a client, and a record of its history, take beside the credits."""
_TOGETHER = 512


@dataclass(slots=True, eq=False)
class ClientState:
    """One client, as far as it was read.

    `credits` are those after the first `replayed` answers of a run. `basis` is the number of that
    run, and how often votes had been erased. `erasures` is how often the client had been erased
    when this request began the history; None if it was there before.
    """

    history: ClientHistory
    page: bytes
    """The name of the page that the history stands on."""
    credits: Credits | None = None
    basis: tuple[int, int] = (0, 0)
    replayed: int = 0
    erasures: int | None = None

    @property
    def held_bytes(self) -> int:
        """About how much memory this takes."""
        credits = 0 if self.credits is None else self.credits.held_bytes
        return _OVERHEAD + credits + _RECORD_OVERHEAD * len(self.history.records)


class OwnRound(NamedTuple):
    """A client and the round to answer: all that a draw needs, and where the answer is stored.

    `kept` is the answer, if the round was answered before. `paid` is whether the answer belongs to
    a run that was paid for; if not, `view` is what such a run will see. `skipped` is the pending
    answer that this one goes past, `passed` the same once it does, and `after` the credits then.
    """

    state: ClientState
    round: Round
    position: int
    paid: bool
    kept: ClientAnswer | None = None
    skipped: ClientAnswer | None = None
    passed: ClientAnswer | None = None
    view: RunView | None = None
    after: Credits | None = None

    @property
    def history(self) -> ClientHistory:
        """The client's history."""
        return self.state.history

    def decision(self, answer: ClientAnswer, limit: int) -> Decision:
        """Return what is shown of an answer."""
        place = AnswerPlace(self.history.mark, self.position, answer.round, len(answer.records))
        reason = None
        if not answer.used_votes:
            reason = TOO_FEW_PEERS if self.paid else NO_RUN_LEFT
        shown, objects = answer.chosen[:limit], self.round.objects
        return Decision(
            items=tuple([objects[chosen] for chosen in shown]),
            choices=tuple([Choice(chosen, 1.0) for chosen in shown]),
            personalised=answer.used_votes,
            note=place.encode(),
            reason=reason,
            round=self.round.id,
        )


async def tried_awaiting(attempt: Awaitable[T]) -> T | DiscreetError:
    """Return what comes of it, or the error of ours that it raises."""
    try:
        return await attempt
    except DiscreetError as error:
        return error


class ClientStates:
    """The clients of one recommender, in the store and in this worker's memory.

    `closes` is whether the first answer from a round ends its voting.
    """

    def __init__(
        self, owner: Recommender[Any], *, votes: Votes, voting: VotingParameters, closes: bool
    ) -> None:
        self._store = owner.store
        self._key = owner.key
        self._votes = votes
        self._voting = voting
        self._closes = closes
        self._states: Remembered[bytes, ClientState] = Remembered(MOST_CLIENT_BYTES)
        self.turns = ClientTurns()
        """This worker answers a client one question at a time."""
        self.tombstones = Tombstones(owner.store)

    def page(self, client: bytes) -> bytes:
        """Return the page of a client's history."""
        return self._key(b"history", client)

    def _queue(self, part: int) -> bytes:
        """Return one part of the list of clients that have a history."""
        return self._key(b"clients", bytes([part]))

    async def read(self, client: bytes) -> ClientState | None:
        """Return the client as the store has it now; None if there is no history."""
        (state,) = await self.read_each([client])
        if isinstance(state, DiscreetError):
            raise state
        return state

    async def read_each(self, clients: Sequence[bytes]) -> list[ClientState | StoreDamaged | None]:
        """Return several clients as the store has them now; None for those without a history."""
        store = self._store
        known = [
            self._states.get(client) or ClientState(ClientHistory(), self.page(client))
            for client in clients
        ]
        positions = [state.history.settled for state in known]
        reading = store.read_pages(
            pages=[state.page for state in known],
            head=MARK_BYTES,
            starts=list(map(ClientHistory.offset_of, positions)),
        )
        counting = store.versions(keys=[self._votes.erasures_key])
        read = await reading
        (erasures,) = await counting
        self._votes.notice_erasures(erasures)
        states: list[ClientState | StoreDamaged | None] = []
        for client, state, position, (mark, content) in zip(
            clients, known, positions, read, strict=True
        ):
            if state.history.mark not in (b"", mark):
                self.drop(client)
                states += await self.read_each([client])
                continue
            if len(mark) < MARK_BYTES:
                states.append(None)
                continue
            state.history.mark = mark
            try:
                state.history.read(content, position=position)
            except StoreDamaged as error:  # the others' are well
                self.drop(client)
                states.append(error)
            else:
                states.append(state)
        return states

    async def _create_each(self, clients: Sequence[bytes]) -> list[ClientState | None]:
        """Begin clients' histories; None for those that another worker has begun meanwhile."""
        store = self._store
        counting = self.tombstones.counts(clients)
        # Listed before they are there, so that removing the recommender finds them.
        listing = [
            store.put_message(queue=self._queue(shard_of(client)), name=client, content=b"1")
            for client in clients
        ]
        erasures = await counting
        for listed in listing:
            await listed
        marks = [os.urandom(MARK_BYTES) for _ in clients]
        pages = list(map(self.page, clients))
        begun = await store.write_pages(
            [PageWrite(page, 0, mark, long=0) for page, mark in zip(pages, marks, strict=True)]
        )
        states: list[ClientState | None] = []
        for page, mark, count, written in zip(pages, marks, erasures, begun, strict=True):
            if isinstance(written, DiscreetError):
                raise written
            fresh = ClientState(ClientHistory(mark), page, erasures=count)
            states.append(fresh if written.done else None)
        return states

    def _remember(self, client: bytes, state: ClientState) -> None:
        self._states.put(client, state, state.held_bytes)

    def drop(self, client: bytes) -> None:
        """Remove a client from memory."""
        self._states.drop(client)

    async def credits(self, state: ClientState, run: CurrentRun) -> Credits:
        """Return the voters' credits after all answers of the run that have an opinion."""
        answers = run.judged
        while True:
            basis = (run.number, self._votes.erasures)
            if state.credits is None or state.basis != basis:
                state.credits, state.basis, state.replayed = self._full_credits(), basis, 0
            some = answers[state.replayed : state.replayed + _REPLAYED_TOGETHER]
            if not some:
                return state.credits
            ballots = await self._votes.ballots([one.round for one in some])
            if len(some) == _REPLAYED_TOGETHER:
                # A long replay over votes in memory would keep other requests waiting.
                await asyncio.sleep(0)
            for one, votes in zip(some, ballots, strict=True):
                state.credits.update(ballots=votes, liked=one.liked, disliked=one.disliked)
            state.replayed += len(some)

    def _full_credits(self) -> Credits:
        """Return the credits with which a run begins."""
        return Credits(diversity=self._voting.diversity, radius=self._voting.radius)

    async def prepare(self, client: bytes, round_id: str | None) -> OwnRound:
        """Return the named round, or the client's next one, as the client's run sees it.

        From here on no vote reaches that round. Raises `InvalidArgument` for a round that cannot be
        answered from, and `NothingToRecommend` if there is none.
        """
        (own,) = await self.prepare_each([(client, round_id)])
        if isinstance(own, DiscreetError):
            raise own
        return own

    async def prepare_each(
        self, asked: Sequence[tuple[bytes, str | None]]
    ) -> list[OwnRound | DiscreetError]:
        """Return what `prepare` returns, or raises, for each of different clients."""
        states = await self.read_each([client for client, _ in asked])
        # What waits from here on waits once for a round, and hardly ever for a client.
        many = await self._votes.rounds.count() if any(one is None for _, one in asked) else 0
        rounds: list[Round | DiscreetError] = []
        named: dict[str, Round | DiscreetError] = {}
        for state, (_, round_id) in zip(states, asked, strict=True):
            if isinstance(state, DiscreetError):
                rounds.append(state)
            elif round_id is None:
                rounds.append(await tried_awaiting(self._awaited_round(state, many)))
            else:
                if round_id not in named:
                    named[round_id] = await tried_awaiting(self._votes.rounds.require(round_id))
                rounds.append(named[round_id])
        # A history is begun only if there is a round.
        while fresh := [
            row
            for row, one in enumerate(rounds)
            if states[row] is None and not isinstance(one, DiscreetError)
        ]:
            clients = [asked[row][0] for row in fresh]
            created = await self._create_each(clients)
            for row, begun in zip(fresh, created, strict=True):
                states[row] = begun or await self.read(asked[row][0])
        prepared: list[OwnRound | DiscreetError] = []
        for (client, _), state, one in zip(asked, states, rounds, strict=True):
            if isinstance(one, DiscreetError) or not isinstance(state, ClientState):
                assert isinstance(one, DiscreetError)
                prepared.append(one)
                continue
            prepared.append(await tried_awaiting(self._own_round(state, one)))
            self._remember(client, state)
        return prepared

    async def _own_round(self, state: ClientState, one: Round) -> OwnRound:
        history = state.history
        position, kept = history.find(one.number) or (len(history.records), None)
        paid = history.was_paid(position, horizon=self._voting.rounds)
        if kept is not None:
            return OwnRound(state, one, position, paid, kept)
        if one.closed:
            pass
        elif self._closes:
            await self._votes.rounds.close(one)
        elif not await self._votes.rounds.is_closed(one):
            raise InvalidArgument("round", "is still open to votes: close it before asking from it")
        pending = history.pending
        passed = None if pending is None else pending.passed_over()
        run = history.run() if paid else None
        if run is not None and run.ended:
            return OwnRound(state, one, position, paid, None, pending, passed)
        after = credits = self._full_credits() if run is None else await self.credits(state, run)
        if run is not None and passed is not None:
            # On a copy: the client's opinion may still arrive before the answer is stored.
            votes = await self._votes.ballots_of(passed.round)
            after = credits.copy()
            after.update(ballots=votes, liked=passed.liked, disliked=passed.disliked)
        ballots = await self._votes.ballots_of(one.number)
        tally = after.tally(ballots=ballots, objects=len(one.objects))
        view = RunView(tally, 0 if run is None else run.offset)
        if after is credits:
            return OwnRound(state, one, position, paid, None, pending, passed, view)
        return OwnRound(state, one, position, paid, None, pending, passed, view, after)

    async def _awaited_round(self, state: ClientState | None, many: int) -> Round:
        """Return the round that awaits an opinion, or the next; `many` is how many there are."""
        history = ClientHistory() if state is None else state.history
        if history.pending is not None and history.pending.awaited:
            found = await self._votes.rounds.by_number(history.pending.round)
            if found is None:
                raise StoreDamaged("a round that was answered is there no more")
            return found
        return await self._next_round(history, many)

    async def _next_round(self, history: ClientHistory, many: int) -> Round:
        """Return the first round, in the order in which they came, that has no answer yet."""
        rounds = self._votes.rounds
        for number in range(history.next_round(), many):
            one = None if history.find(number) else await rounds.by_number(number)
            if one is not None and (self._closes or await rounds.is_closed(one)):
                return one
        raise NothingToRecommend("there is no round that this client has not been answered from")

    @staticmethod
    def writing(own: OwnRound, begun: RunRecord | None, answer: ClientAnswer) -> PageWrite:
        """Return how an answer is written behind what was read, if that still stands there.

        The mark is a guard, so that nothing follows from one history to the next.
        """
        page, history = own.state.page, own.history
        content = answer.encode() if begun is None else begun.encode() + answer.encode()
        mark, length = (0, history.mark), history.length
        if own.passed is None:
            return PageWrite(page, length, content, (mark,), length)
        # Whoever goes on, or gives an opinion, changes the pending answer.
        pending = history.pending_records
        at = length - len(pending)
        return PageWrite(page, at, own.passed.encode() + content, (mark, (at, pending)))

    def wrote(
        self, client: bytes, own: OwnRound, begun: RunRecord | None, answer: ClientAnswer
    ) -> None:
        """Remember an answer that was written."""
        state = own.state
        state.history.add(own.passed, begun, answer, answer.encode())
        if own.after is not None:
            state.credits, state.replayed = own.after, state.replayed + 1
        self._remember(client, state)

    async def forget(self, client: bytes) -> int:
        """Erase a client's history; return how many there were."""
        page = self.page(client)
        async with self.turns.hold([client]):
            found = await self._store.read_page(page=page, start=0, end=1)
            await self._store.erase(keys=[page])
            await self._store.remove_message(queue=self._queue(shard_of(client)), name=client)
            self.drop(client)
        return len(found)

    async def erase(self) -> None:
        """Erase every client's history, in the store. Idempotent."""
        store = self._store
        for part in range(SHARDS):
            queue = self._queue(part)
            while names := list(await store.messages(queue=queue, most=_TOGETHER)):
                await store.erase(keys=[self.page(name) for name in names])
                await asyncio.gather(
                    *(store.remove_message(queue=queue, name=name) for name in names)
                )
