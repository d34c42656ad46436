"""A whole evaluation: the recommender as its document says, baselines, and curves by epsilon."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from discreet.families.documents import RecommenderDocument
from discreet.research.evaluate import policies
from discreet.research.evaluate.estimators import PolicyResult, difference
from discreet.research.evaluate.logs import EvaluationLog, LogOptions, read_log
from discreet.research.evaluate.randomness import RandomnessReport
from discreet.research.evaluate.reward_model import RewardModel
from discreet.research.evaluate.served import RowsWatcher, ServedRun
from discreet.research.simulate.choosing import FeedbackDial, at_epsilon, feedback_epsilon
from discreet.research.simulate.server import TOKEN_SECONDS

CURVE_ROWS = 50_000
"""Rows that a point of a curve is made from, at most."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the two dials stand: `answers` and `feedback` None are exact.

    As the document says, budgets included, if `as_written`; otherwise budgets are lifted.
    """

    answers: float | None
    feedback: float | None
    as_written: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationTrial:
    """The recommender at one setting, on the log. A replay is another pass, if wanted."""

    name: str
    document: RecommenderDocument
    setting: Setting
    path: Path
    options: LogOptions
    rounds: int
    seed: int
    rate: float
    with_replay: bool = False

    @property
    def label(self) -> str:
        """Return what to show while it runs."""
        return self.name

    def run(self) -> PolicyResult:
        """Play it."""
        return self.play(lambda rows: None)

    @property
    def passes(self) -> int:
        """How often the rows are gone through."""
        return 2 if self.with_replay else 1

    def play(self, watch: RowsWatcher) -> PolicyResult:
        """Play it; `watch` is called with how many rows more are done."""
        return asyncio.run(self._played(watch))

    async def _played(self, watch: RowsWatcher) -> PolicyResult:
        options = replace(self.options, most=self.rounds)
        log, model = log_and_model(self.path, self.document, options)
        document = self._document()
        run = await ServedRun.open(log, document, seed=self.seed, rate=self.rate, watch=watch)
        try:
            terms = await run.learn_from_every_row(model)
        finally:
            await run.close()
        found = PolicyResult.of(
            self.name,
            terms,
            log.clients,
            degraded=run.degraded / len(log),
            unlearned=run.unlearned / max(run.sent, 1),
        )
        if not self.with_replay:
            return found
        run = await ServedRun.open(log, document, seed=self.seed, rate=self.rate, watch=watch)
        try:
            estimate, counted = await run.replay(seed=self.seed)
        finally:
            await run.close()
        return replace(found, replay=estimate, counted=counted)

    def _document(self) -> Any:
        setting = self.setting
        document: Any = self.document
        if setting.as_written:
            document = document.model_copy(
                update={
                    "items": [item for item in document.items if not item.hidden],
                    "decision_ttl_seconds": TOKEN_SECONDS,
                }
            )
        else:
            dial: FeedbackDial = "exact" if setting.feedback is None else setting.feedback
            document = at_dials(document, setting.answers, dial)
        # Every row says what came of it: nothing is awaited, and nothing else is written down.
        reward = document.reward.model_copy(update={"wait": None})
        return document.model_copy(update={"reward": reward, "log": None})


def at_dials(document: Any, answers: float | None, feedback: FeedbackDial) -> Any:
    """Return the recommender with these epsilons and without budgets; None is exact."""
    if answers is not None:
        return at_epsilon(document, answers, feedback)
    exact = at_epsilon(document, None)
    if feedback == "exact":
        return exact
    dial = at_epsilon(document, 1.0, feedback).privacy.feedback
    return exact.model_copy(update={"privacy": exact.privacy.model_copy(update={"feedback": dial})})


def written(document: Any) -> Setting:
    """Return where the document's dials stand."""
    answers = document.privacy.answers
    return Setting(
        None if isinstance(answers, str) else float(answers.epsilon),
        feedback_epsilon(document),
        as_written=True,
    )


def log_and_model(
    path: Path, document: RecommenderDocument, options: LogOptions
) -> tuple[EvaluationLog, RewardModel]:
    """Return the log and its model of rewards; a process reads the same one once."""
    key = (path, document.model_dump_json(), options)
    if key not in _read:
        _read.clear()
        log = read_log(path, document, options)
        _read[key] = log, RewardModel.fitted(log)
    return _read[key]


_read: dict[tuple[Path, str, LogOptions], tuple[EvaluationLog, RewardModel]] = {}
"""The log that was read last: all trials of a process are about the same one, or two."""


def curve_settings(
    document: Any, answers: Sequence[float], feedback: Sequence[float]
) -> list[Setting]:
    """Return the points of both curves: one dial moves, the other is as the document says.

    The first is without any protection.
    """
    here = written(document)
    points = [Setting(None, None)]
    points += [Setting(epsilon, here.feedback) for epsilon in (*answers, None)]
    points += [Setting(here.answers, epsilon) for epsilon in (*feedback, None)]
    return list(dict.fromkeys(points))


def report(
    *,
    name: str,
    log: EvaluationLog,
    randomness: RandomnessReport,
    main: PolicyResult,
    compared: Sequence[PolicyResult],
    curve: Sequence[tuple[Setting, PolicyResult]],
    document: Any,
    rate: float,
) -> dict[str, Any]:
    """Return everything that was found, for programs and for the page."""
    here = written(document)
    return {
        "recommender": name,
        "algorithm": document.algorithm,
        "log": {
            "rows": len(log),
            "items": len(log.items),
            "clients": None if log.clients is None else int(log.clients.max()) + 1,
            "reward_mean": float(log.rewards.mean()),
            "smallest_propensity": float(log.propensities.min()),
            "timed": log.times is not None,
            "rate": None if log.times is not None else rate,
        },
        "dials": {"answers": here.answers, "feedback": here.feedback},
        "refusals": list(randomness.refusals),
        "warnings": list(randomness.warnings),
        "notes": list(log.notes),
        "policies": [one.as_json() for one in (main, *compared)],
        "differences": [
            {"over": one.name, **difference(main, one, log.clients).as_json()} for one in compared
        ],
        "curve": [
            {
                "answers_epsilon": setting.answers,
                "feedback_epsilon": setting.feedback,
                "rows": len(found.robust),
                "dr": found.dr.as_json(),
                "dr_last_quarter": found.late.as_json(),
            }
            for setting, found in curve
        ],
    }


def baselines(log: EvaluationLog, model: RewardModel) -> list[PolicyResult]:
    """Return what there is to compare with."""
    return [
        policies.most_popular(log, model),
        policies.uniform(log, model),
        policies.logged(log),
    ]
