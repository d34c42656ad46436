"""Voters' weights as served: what the proof presumes about votes, draws and payments, counted.

Two workers over one store play a few rounds with several clients, who ask again and again, under
retries and at the same time. The proof presumes that a round's votes are fixed before its first
answer, that each answer is drawn once, and that a run is paid for before votes are used.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from discreet.audit.claims import Claim, Finding, Method, PlantedFault, Scope
from discreet.audit.closed_loop.stage import NOTHING_PLANTED, Planted, open_worker
from discreet.decisions.services import DecisionServices
from discreet.errors import DiscreetError
from discreet.families.p_rec.answering import VotersQuestion
from discreet.families.p_rec.clients import OwnRound
from discreet.families.p_rec.history import ClientHistory
from discreet.families.p_rec.recommender import VotersRecommender
from discreet.families.p_rec.rounds import Round
from discreet.families.p_rec.run_parameters import RunParameters, VotingParameters
from discreet.families.p_rec.votes import Vote, Votes
from discreet.families.questions import Ask, Decision, Feedback, Question, Recommendation
from discreet.families.registration import FAMILIES, read_document
from discreet.privacy.noise import NoiseSource, SystemNoise

_NAME = "audited"
_CLIENTS = ("first", "second", "third")
_ROUNDS = 4
_VOTERS = 80

Count = Callable[["ServedElectorate"], Awaitable[float]]


class ServedElectorate:
    """Two workers with voters, rounds and clients."""

    def __init__(self, planted: Planted) -> None:
        self._planted = planted
        self.store = planted.store()
        self.workers: list[DecisionServices] = []

    async def open(self, *, epsilon: float) -> None:
        """Make the recommender, its rounds, and everybody's vote for the first object."""
        shipped = FAMILIES["p-rec"]
        FAMILIES["p-rec"] = self._planted.recommender or shipped
        document = read_document(
            {
                "algorithm": "p-rec",
                "objects": 4,
                "most_shown": 2,
                "horizon": 20,
                "peers": 60,
                "voters": 1_000,
                "privacy": {"budget": {"epsilon": epsilon, "delta": 0.02}, "run_delta": 0.001},
            }
        )
        try:
            for _ in range(2):
                worker = await open_worker(
                    self.store, SystemNoise(), lambda: 1_000.0, self._planted
                )
                self.workers.append(worker)
            await self.workers[0].registry.put(_NAME, document)
            await self.workers[1].registry.settle()
        finally:
            FAMILIES["p-rec"] = shipped
        votes = await self.votes(0)
        for number in range(_ROUNDS):
            # Rounds of two, three and four objects.
            made, _ = await votes.rounds.make(
                round_id=f"round {number}", objects="abcd"[: 2 + number % 3]
            )
            await votes.cast([Vote(made.id, f"voter {each}", "a") for each in range(_VOTERS)])

    async def recommender(self, worker: int) -> Any:
        """Return a worker's recommender."""
        return await self.workers[worker].registry.find(_NAME)

    async def votes(self, worker: int) -> Votes:
        """Return the votes as a worker sees them."""
        found: Votes = (await self.recommender(worker)).part(Votes)
        return found

    async def ask(self, worker: int, client: str, number: int) -> Recommendation:
        """Ask for a round's answer."""
        ask = Ask(_NAME, client, limit=2, round=f"round {number}")
        return await self.workers[worker].recommend.recommend(ask)


async def answers_drawn_twice(electorate: ServedElectorate) -> float:
    """Count answers to a client and a round beyond the first, whoever is asked, and how often."""
    beyond = 0
    for number in range(_ROUNDS):
        for client in _CLIENTS:
            answers = await asyncio.gather(
                *(electorate.ask(worker, client, number) for worker in (0, 1) for _ in range(6))
            )
            beyond += len({answer.items for answer in answers}) - 1
            await electorate.workers[number % 2].feedback.record(
                Feedback(
                    float(number % 2),
                    recommendation_id=answers[0].recommendation_id,
                    item=answers[0].items[1],
                )
            )
    return float(beyond)


async def runs_not_charged(electorate: ServedElectorate) -> float:
    """Count runs that use votes and were not debited to the voters' ledger."""
    recommender = await electorate.recommender(0)
    begun = 0
    for client in _CLIENTS:
        await asyncio.gather(*(electorate.ask(worker, client, 0) for worker in (0, 1)))
        page = recommender.clients.page(recommender.principal(client))
        history = ClientHistory()
        content = await electorate.store.read_page(page=page, start=ClientHistory.offset_of(0))
        history.read(content, position=0)
        begun += history.runs
    (ledger,) = await electorate.store.ledgers([recommender.population])
    paid = ledger.answers.nano_rho // recommender.run_charge.nano_rho
    return float(begun - paid)


async def lists_charged_less(electorate: ServedElectorate) -> float:
    """Return by how many nano-epsilon a run's charge falls short of what its lists reveal.

    What they reveal follows from the document and from what was shown, by the proof alone.
    """
    recommender = await electorate.recommender(0)
    answer = await electorate.ask(0, "first", 2)
    document = recommender.document
    voting = VotingParameters(
        objects=document.objects, rounds=document.horizon, shown=len(answer.items)
    )
    run = replace(recommender.run, voting=voting)
    (ledger,) = await electorate.store.ledgers([recommender.population])
    return float(run.event.epsilon * 1e9 - ledger.answers.nano_epsilon)


async def votes_after_an_answer(electorate: ServedElectorate) -> float:
    """Count votes that reach a round from which an answer was given."""
    late = 0
    votes = await electorate.votes(1)
    for number in range(_ROUNDS):
        await electorate.ask(0, "first", number)
        for voter in ("voter 0", "newcomer"):
            with suppress(DiscreetError):
                await votes.cast([Vote(f"round {number}", voter, "b")])
                late += 1
    return float(late)


async def runs_beyond_the_cap(electorate: ServedElectorate) -> float:
    """Count the runs that one client makes the voters pay beyond the document's cap.

    The client has its history erased after every answer, and asks both workers at once.
    """
    recommender = await electorate.recommender(0)
    for _ in range(5):
        await asyncio.gather(*(electorate.ask(worker, "first", 0) for worker in (0, 1)))
        await electorate.workers[0].clients.erase("first")
    (ledger,) = await electorate.store.ledgers([recommender.population])
    paid = ledger.answers.nano_rho // recommender.run_charge.nano_rho
    return float(paid - recommender.document.client_runs.most)


def examine_served(
    question: Count, planted: Planted = NOTHING_PLANTED, *, epsilon: float = 1e6
) -> Finding:
    """Ask a fresh electorate; what is counted must not be there."""

    async def ask() -> float:
        electorate = ServedElectorate(planted)
        await electorate.open(epsilon=epsilon)
        return await question(electorate)

    measured = asyncio.run(ask())
    return Finding(0.0, max(measured, 0.0), holds=measured <= 0)


def claims() -> Iterator[Claim]:
    """Yield what the proof presumes."""
    for name, question, epsilon in (
        ("answers drawn more than once", answers_drawn_twice, 1e6),
        ("runs that were not charged", runs_not_charged, 1e6),
        ("runs that were not charged, budget spent", runs_not_charged, 16.0),
        ("nano-epsilon of a list that were not charged", lists_charged_less, 1e6),
        ("votes after the first answer", votes_after_an_answer, 1e6),
        ("runs of one client beyond its cap", runs_beyond_the_cap, 1e6),
    ):

        def examine(_: object, question: Count = question, epsilon: float = epsilon) -> Finding:
            return examine_served(question, epsilon=epsilon)

        yield Claim(f"p-rec, served: {name}", Method.EXACT, examine, Scope.PERSON)


class RedrawnRounds(VotersRecommender):
    """Draws again for a round that was answered: asking often tells the votes."""

    def decide(
        self,
        model: RunParameters,
        questions: Sequence[Question],
        own: Sequence[OwnRound],
        noise: NoiseSource,
    ) -> list[Decision]:
        """Decide as if no answer had been kept."""
        return super().decide(model, questions, [one._replace(kept=None) for one in own], noise)


class UnpaidRuns(VotersRecommender):
    """Begins runs though the voters' budget is spent."""

    async def _pay(
        self, runs: Sequence[tuple[VotersQuestion, ClientHistory]]
    ) -> list[bool | DiscreetError]:
        await super()._pay(runs)
        return [True] * len(runs)


class UncountedRuns(VotersRecommender):
    """Lets one client begin as many runs as it likes: a window for every question."""

    def runs_account(self, client: str) -> bytes:
        return super().runs_account(client + os.urandom(8).hex())


class CheapLists(VotersRecommender):
    """Charges lists of objects as if one were drawn."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        single = replace(self.run, voting=replace(self.run.voting, shown=1))
        self.run_charge = self.voters_budget.charge((single.event,))


class OpenRounds(VotersRecommender):
    """Takes votes for rounds from which answers were given."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)

        async def leave_open(one: Round) -> None:
            del one

        vars(self.votes.rounds)["close"] = leave_open


def faults() -> Iterator[PlantedFault]:
    """Yield ways to break what the proof presumes."""
    for name, family, question, epsilon in (
        ("a round drawn anew at every question", RedrawnRounds, answers_drawn_twice, 1e6),
        ("runs begun though the budget is spent", UnpaidRuns, runs_not_charged, 16.0),
        ("a list charged as one draw", CheapLists, lists_charged_less, 1e6),
        ("votes taken after the first answer", OpenRounds, votes_after_an_answer, 1e6),
        ("runs of a client that nobody counts", UncountedRuns, runs_beyond_the_cap, 1e6),
    ):

        def examine(
            _: object,
            family: type[VotersRecommender] = family,
            question: Count = question,
            epsilon: float = epsilon,
        ) -> Finding:
            return examine_served(question, Planted(recommender=family), epsilon=epsilon)

        yield PlantedFault(f"p-rec, served: {name}", examine, Scope.PERSON)
