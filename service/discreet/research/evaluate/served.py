"""A recommender of one's own on a log: the shipped decisions, over the store in memory.

Two runs, since a log can teach in two ways.

*Learning from every row.* Each row's question is asked for its answer, whose exact probabilities
give the terms of IPS, SNIPS and DR; then the row's item alone is asked for, as a caller may with
`candidates`, and its reward is sent as feedback. So the recommender knows as much after n rows as
the log says, from choices that were the log's. What is estimated is the mean, over the rows, of
what the model as it was at each row would have earned.

*Replay.* Each row's question is asked. Where the answer is what was shown, and with a probability
that makes the log look uniformly random, the row counts and its reward is sent as feedback. All
else is as if the recommender had been live, for as many rounds as rows counted: it learns from its
own choices only, and in a log with K items from one row in K.

In both, models are released and budgets spent by the log's own clock and clients, if it has them;
otherwise rows come at a constant rate, each from somebody new.
"""

from collections.abc import Callable, Sequence

import numpy as np

from discreet.decisions.services import DecisionServices
from discreet.errors import BudgetExhausted, DiscreetError
from discreet.families.contextual.recommender import BUDGET_SPENT
from discreet.families.contract import Recommender
from discreet.families.documents import RecommenderDocument
from discreet.families.questions import Ask, Feedback, Recommendation
from discreet.research.evaluate.described import OnlyClients
from discreet.research.evaluate.estimators import Estimate, PolicyTerms, replay
from discreet.research.evaluate.logs import EvaluationLog
from discreet.research.evaluate.policies import TermsBuilder, accepted
from discreet.research.evaluate.reward_model import RewardModel
from discreet.research.simulate.server import SimulatedClock, SimulatedServer
from discreet.research.worlds.environments import Floats

RowsWatcher = Callable[[int], None]

_NAME = "evaluated"
_MOST_TOGETHER = 1_000
_MOST_LAW = 4_000_000
"""Probabilities that are kept at once: rows times items."""
_LONGEST_GAP = 3_600.0
"""Seconds. A log that pauses longer is played as if it paused so long: nothing happens in it."""


class LogClock(SimulatedClock):
    """The time of the row that is being played."""

    def __init__(self, log: EvaluationLog, rate: float) -> None:
        super().__init__(rate)
        count = len(log)
        if log.times is None:
            self.times: Floats = np.arange(count + 1) / rate
        else:
            gaps = np.minimum(np.diff(log.times), _LONGEST_GAP)
            self.times = np.concatenate([[0.0], np.cumsum(gaps), [0.0]])
            self.times[-1] = self.times[-2]
        self.row = 0

    def __call__(self) -> float:
        """Return the time in seconds since the first row."""
        return float(self.times[self.row])


class ServedRun:
    """One pass over a log."""

    def __init__(
        self, server: SimulatedServer, clock: LogClock, log: EvaluationLog, watch: RowsWatcher
    ) -> None:
        self._server = server
        self._services: DecisionServices = server.services
        self._clock = clock
        self._log = log
        self._watch = watch
        self.degraded = self.unlearned = self.sent = 0

    @classmethod
    async def open(
        cls,
        log: EvaluationLog,
        document: RecommenderDocument,
        *,
        seed: int,
        rate: float,
        watch: RowsWatcher = lambda rows: None,
    ) -> "ServedRun":
        """Open a server with the recommender in it, before the log begins.

        `watch` is called with how many rows more are done.
        """
        clock = LogClock(log, rate)
        server = await SimulatedServer.open(seed=[seed, 2], clock=clock)
        await server.put(_NAME, document)
        return cls(server, clock, log, watch)

    async def close(self) -> None:
        """Let go of the server."""
        await self._server.close()

    async def learn_from_every_row(self, model: RewardModel) -> PolicyTerms:
        """Return the terms of what it would have earned, learning from every row."""
        made = TermsBuilder(self._log, model)
        columns: list[int] | None = None
        while (rows := await self._next()).start < len(self._log):
            recommender = await self._recommender()
            if columns is None:
                columns = [recommender.slot_of[item] for item in self._log.items]
            answers = await self._ask(rows)
            made.add(rows, (await self._law(recommender, rows, answers))[:, columns])
            told = await self._ask(rows, only_logged=True)
            await self._record(list(zip(told, self._log.rewards[rows].tolist(), strict=True)))
            self._done(rows)
        return made.terms()

    async def replay(self, *, seed: int) -> tuple[Estimate, int]:
        """Return what it earned live, and in how many rows."""
        log = self._log
        may_count = accepted(log, seed)
        counts = np.zeros(len(log), dtype=np.bool_)
        while (rows := await self._next()).start < len(log):
            told: list[tuple[Recommendation | None, float]] = []
            for row, answer in enumerate(await self._ask(rows), start=rows.start):
                if answer is None or not may_count[row]:
                    continue
                if answer.items[:1] == (log.items[log.actions[row]],):
                    counts[row] = True
                    told.append((answer, float(log.rewards[row])))
            await self._record(told)
            self._done(rows)
        return replay(log.rewards, counts, log.clients), int(counts.sum())

    def _done(self, rows: slice) -> None:
        self._clock.row = rows.stop
        self._watch(rows.stop - rows.start)

    async def _recommender(self) -> Recommender[object]:
        return await self._services.registry.find(_NAME)

    async def _next(self) -> slice:
        """Release what is due; return the rows before the next release."""
        await self._server.release_due()
        start, recommender = self._clock.row, await self._recommender()
        most = min(_MOST_TOGETHER, max(1, _MOST_LAW // len(self._log.items)))
        if isinstance(self._log.described, OnlyClients):
            most = self._until_somebody_returns(start, most)
        end = min(start + most, len(self._log))
        low, high = start + 1, end
        while low < high:  # the first row at which a release is due
            middle = (low + high) // 2
            low, high = (
                (low, middle)
                if recommender.due(float(self._clock.times[middle]))
                else (middle + 1, high)
            )
        return slice(start, min(low, end) if start < end else end)

    def _until_somebody_returns(self, start: int, most: int) -> int:
        """Return how many rows until a client comes back, whose own sums then matter."""
        assert self._log.clients is not None
        few = self._log.clients[start : start + most].tolist()
        seen: set[int] = set()
        for count, client in enumerate(few):
            if client in seen:
                return count
            seen.add(client)
        return max(1, len(few))

    async def _ask(self, rows: slice, *, only_logged: bool = False) -> list[Recommendation | None]:
        """Return the answers; None to those who are refused because their budget is spent."""
        asks = self._asks(rows, only_logged=only_logged)
        answers: list[Recommendation | None] = []
        for one in await self._services.recommend.recommend_many(asks):
            if isinstance(one, DiscreetError) and not isinstance(one, BudgetExhausted):
                raise one
            answers.append(one if isinstance(one, Recommendation) else None)
        return answers

    def _asks(self, rows: slice, *, only_logged: bool = False) -> list[Ask]:
        ask = self._log.ask
        return [ask(_NAME, row, only_logged=only_logged) for row in range(rows.start, rows.stop)]

    async def _law(
        self,
        recommender: Recommender[object],
        rows: slice,
        answers: Sequence[Recommendation | None],
    ) -> Floats:
        """Return the odds of every slot; those who are refused are shown nothing."""
        questions = [recommender.question(ask) for ask in self._asks(rows)]
        own = await recommender.read_own(questions)
        model = recommender.current.model
        degraded = [one is not None and one.reason == BUDGET_SPENT for one in answers]
        law = np.zeros((len(questions), recommender.stored.next_slot))
        for paid in (True, False):
            places = [
                place
                for place, (answer, unpaid) in enumerate(zip(answers, degraded, strict=True))
                if answer is not None and unpaid != paid
            ]
            if places:
                law[places] = recommender.answer_law(
                    model,
                    [questions[place] for place in places],
                    [own[place] for place in places],
                    paid=paid,
                )
        self.degraded += sum(degraded) + answers.count(None)
        return law

    async def _record(self, told: Sequence[tuple[Recommendation | None, float]]) -> None:
        many = [
            Feedback(reward=reward, recommendation_id=answer.recommendation_id, scaled=True)
            for answer, reward in told
            if answer is not None
        ]
        for receipt in await self._services.feedback.record_many(many):
            if isinstance(receipt, DiscreetError):
                raise receipt
            self.sent += 1
            self.unlearned += not receipt.learned
