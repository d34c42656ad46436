"""Which trials the suite runs: every learner, in every world, at every setting of the two dials.

One run stands for shorter ones as well, so rows are made at several numbers of rounds. With private
feedback, a learner needs more visits to average its noise away: those runs are longer where answers
are at `MAIN_EPSILON`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import InvalidArgument
from discreet.research.suite.recorded import found_in
from discreet.research.suite.served import judged
from discreet.research.suite.stretches import STRETCH
from discreet.research.suite.trials import (
    CONTEXT_FREE,
    RIVALS,
    SuiteTrial,
    missing_rivals,
    open_world,
)
from discreet.research.suite.worlds import WORLDS

ANSWERS = (None, 0.5, 1.0, 2.0, 4.0)
FEEDBACK = (None, 1.0, 2.0)
MAIN_EPSILON = 2.0
"""The epsilon of answers at which rivals are put behind our private choice, and of long runs."""
ROUNDS = 12_000
LONG_ROUNDS = 60_000
AWKWARD = frozenset({"rare-clicks", "corners", "one-number", "two-items"})
"""Worlds that only ask whether anything goes wrong: the settings of `--quick` are enough."""
LONG_WORLDS = frozenset({"logistic-64"})
"""Where exact feedback, too, needs the long run."""
SHORT_WORLDS = frozenset({"sparse-1000", "catalogue-1000"})
"""Where a visit costs too much for long runs."""
SLOWED = {"drift": 1e-5}
"""Tastes turn over weeks and not within a minute: there 200 visits a second become 173 a day, and
12,000 visits take 69 days."""
QUICK_ROUNDS = 12_000
QUICK_WORLDS = (
    "bumps",
    "logistic-8",
    "logistic-20",
    "clusters",
    "popularity",
    "drift",
    "come-and-go",
)
QUICK_ANSWERS = (None, MAIN_EPSILON)
QUICK_FEEDBACK = (None, 1.0)


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """How much to run; `rounds` replaces every number of rounds."""

    quick: bool = False
    worlds: Sequence[str] | None = None
    learners: Sequence[str] | None = None
    rounds: int | None = None
    seed: int = 0
    rate: float = 200.0
    data: Path | None = None


def chosen_worlds(options: SuiteOptions) -> list[str]:
    """Return the worlds to run, or raise `InvalidArgument` with those that there are."""
    synthetic = list(QUICK_WORLDS if options.quick else WORLDS)
    recorded = [] if options.data is None else found_in(options.data)
    if options.data is not None and not recorded:
        raise InvalidArgument("--data", f"{options.data} has neither MovieLens nor Open Bandit")
    if options.worlds is None:
        return synthetic + recorded
    known = [*WORLDS, *recorded]
    for name in options.worlds:
        if name not in known:
            raise InvalidArgument(
                "--worlds", f"{name!r} is not there; there are {', '.join(known)}"
            )
    return list(dict.fromkeys(options.worlds))


def chosen_learners(options: SuiteOptions) -> list[str]:
    """Return the learners to run, or raise `InvalidArgument` with those that there are.

    Rivals whose package is not installed are left out, unless they are asked for by name.
    """
    lacking = missing_rivals()
    there = [name for name, package in RIVALS.items() if package not in lacking]
    known = [*judged(), *there, *CONTEXT_FREE]
    if options.learners is None:
        return known
    for name in options.learners:
        if name not in known:
            raise InvalidArgument(
                "--learners", f"{name!r} is not there; there are {', '.join(known)}"
            )
    return [name for name in known if name in options.learners]


def plan(options: SuiteOptions) -> list[SuiteTrial]:
    """Return the trials, world by world."""
    if options.rounds is not None and (options.rounds < STRETCH or options.rounds % STRETCH):
        raise InvalidArgument("--rounds", f"must be a multiple of {STRETCH:,}")
    if options.seed < 0:
        raise InvalidArgument("--seed", "must not be negative")
    learners = chosen_learners(options)
    trials = []
    for world in chosen_worlds(options):
        if world not in WORLDS:  # what its files lack is said before hours of work
            open_world(world, seed=options.seed, data=options.data)
        few = options.quick or world in AWKWARD
        answers = QUICK_ANSWERS if few else ANSWERS
        feedback = QUICK_FEEDBACK if few else FEEDBACK
        for learner in learners:
            if learner in CONTEXT_FREE:
                protected = feedback if learner == "popular" else (None,)
                trials += [_trial(options, world, learner, None, one, answers) for one in protected]
            elif learner in RIVALS:
                trials += [
                    _trial(options, world, learner, one, None) for one in (None, MAIN_EPSILON)
                ]
            else:
                trials += [
                    _trial(options, world, learner, one, other)
                    for one in answers
                    for other in feedback
                ]
    return trials


def _trial(
    options: SuiteOptions,
    world: str,
    learner: str,
    answers: float | None,
    feedback: float | None,
    compared: tuple[float | None, ...] | None = None,
) -> SuiteTrial:
    return SuiteTrial(
        world=world,
        learner=learner,
        answers=answers,
        feedback=feedback,
        rounds=options.rounds or _rounds(options, world, learner, answers, feedback),
        seed=options.seed,
        rate=options.rate * SLOWED.get(world, 1.0),
        compared=(answers,) if compared is None else compared,
        data=options.data,
    )


def _rounds(
    options: SuiteOptions, world: str, learner: str, answers: float | None, feedback: float | None
) -> int:
    if options.quick:
        return QUICK_ROUNDS
    main = answers == MAIN_EPSILON or learner in CONTEXT_FREE
    if main and feedback is not None and world not in SHORT_WORLDS:
        return LONG_ROUNDS
    if world in LONG_WORLDS and (main or (answers is None and feedback is None)):
        return LONG_ROUNDS
    return ROUNDS
