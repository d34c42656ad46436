"""The served adaptive partition, asked by many people at once.

A batch is what `AdaptivePartition` would do for each of them, with the arithmetic done for all in
one go: the same cells, the same law of every answer, drawn by the same `Odds`, one after the
other. Only which arm is the best of each cell is worked out in a matrix; the guarantee does not
rest on that (the best arm may change arbitrarily between two contexts).

Every row is worked through in full, however many of them lie in one cell: what a batch costs must
not tell how its contexts lie together. Whoever wants lists, or items of their own, asks one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.families.p_dap.adaptive_partition import OPTIMISM, AdaptivePartition, CellPlan
from discreet.families.p_dap.cell import ARRIVALS, REWARD_STEPS
from discreet.families.p_dap.contract import Address, Choice, Decision, Deeper, Floats
from discreet.families.p_dap.memory import posterior
from discreet.families.p_dap.outlook import Outlook
from discreet.families.p_dap.partition import Routes
from discreet.families.shortlist import Slots
from discreet.privacy.events import PrivacyEvent
from discreet.privacy.noise import NoiseSource


@dataclass(frozen=True, slots=True, eq=False)
class ManyPlan:
    """What each row reads and inherits; what each releases, which is the same for all."""

    available: Slots
    events: tuple[PrivacyEvent, ...]
    reads: Sequence[tuple[Address, ...]]
    priors: Sequence[Floats]
    outlook: Outlook
    routes: Routes

    def row(self, row: int) -> CellPlan:
        """Return the plan of one row by itself."""
        return CellPlan(
            self.reads[row], self.events, self.outlook, self.routes.route(row), self.priors[row]
        )


def plan_many(learner: AdaptivePartition, *, contexts: Floats, available: Slots) -> ManyPlan:
    """Say what to read for each row of contexts, and what one answer to each will release."""
    memory = learner.memory
    learner.check_offer(available)
    outlook = memory.outlook
    routes = learner.partition.routes(contexts)
    reads: list[tuple[Address, ...]] = []
    priors: list[Floats] = []
    whole = memory.whole
    for row in range(len(routes)):
        level, parent = memory.deepest_split(partial(routes.name, row))
        key = routes.key(row, level)
        last = level if key in whole else learner.read_ahead(level, outlook)
        below = [Address(routes.key(row, deeper), deeper) for deeper in range(level + 1, last + 1)]
        reads.append((Address(key, level), *below))
        priors.append(outlook.means if parent is None else parent.means(outlook))
    events = learner.events(draws=min(1, len(available) - 1), outlook=outlook)
    return ManyPlan(available, events, reads, priors, outlook, routes)


class _Active(NamedTuple):
    """A row's active cell: its address, which of the vectors is its own, what it inherits."""

    address: Address
    vector: int
    prior: Floats


def decide_many(
    learner: AdaptivePartition,
    *,
    plan: ManyPlan,
    rows: Sequence[int],
    starts: Sequence[int],
    sums: npt.NDArray[np.int64],
    noise: NoiseSource,
) -> list[Decision | Deeper]:
    """Answer these rows, in their order.

    `sums` holds everything that was read, each vector cut or filled up to the learner's arms; what
    was read for a row begins at `starts`, in the order of its `plan.reads`.
    """
    arrivals = sums[:, ARRIVALS].tolist()
    found = [_active(learner, plan, row, starts[row], sums, arrivals) for row in rows]
    settled = [one for one in found if isinstance(one, _Active)]
    answered = iter(_answer(learner, plan, settled, sums, noise) if settled else ())
    return [one if isinstance(one, Deeper) else next(answered) for one in found]


def _active(
    learner: AdaptivePartition,
    plan: ManyPlan,
    row: int,
    start: int,
    sums: npt.NDArray[np.int64],
    arrivals: Sequence[int],
) -> _Active | Deeper:
    reads = plan.reads[row]
    first = reads[0]
    if not learner.partition.splits_at(first.level, arrivals[start]):
        learner.memory.note_whole(first.key)
        return _Active(first, start, plan.priors[row])
    state = {address: sums[start + place].copy() for place, address in enumerate(reads)}
    located = learner.locate(state=state, plan=plan.row(row))
    if isinstance(located, Deeper):
        return located
    address, _, prior = located
    return _Active(address, start + reads.index(address), prior)


def _answer(
    learner: AdaptivePartition,
    plan: ManyPlan,
    cells: Sequence[_Active],
    sums: npt.NDArray[np.int64],
    noise: NoiseSource,
) -> list[Decision]:
    fields = sums[[cell.vector for cell in cells]].astype(np.float64)
    counts = fields[:, 1::2]
    means = posterior(
        counts=counts,
        sums=fields[:, 2::2] / REWARD_STEPS,
        prior=np.array([cell.prior for cell in cells]),
    )
    levels = [cell.address.level for cell in cells]
    odds_of = {
        level: learner.odds(plan.available, 1, outlook=plan.outlook, level=level)
        for level in set(levels)
    }
    # The ranking is the outlook's, whatever the level.
    ranking = odds_of[levels[0]].ranking
    best = _best(means, counts, fields[:, ARRIVALS], ranking)
    choices: list[Choice] = [_NOTHING] * len(cells)
    for level, odds in odds_of.items():
        there = [place for place, each in enumerate(levels) if each == level]
        drawn = odds.draw_each([best[place] for place in there], noise)
        for place, choice in zip(there, drawn, strict=True):
            choices[place] = choice
    slots = [choice.slot for choice in choices]
    regrets = means[:, plan.available].max(axis=1) - means[np.arange(len(cells)), slots]
    personalised = bool(plan.events)
    return [
        Decision((choice,), cell.address, plan.events, personalised, regret)
        for choice, cell, regret in zip(choices, cells, regrets.tolist(), strict=True)
    ]


_NOTHING = Choice(-1, 0.0)


def _best(means: Floats, counts: Floats, seen: Floats, ranking: Slots) -> list[int]:
    """Return the position in the shortlist of each row's best arm, with the same optimism."""
    utilities = means[:, ranking]
    if len(ranking) > 1:
        middle = utilities.sum(axis=1) / len(ranking)
        flattery = OPTIMISM * np.sqrt(middle * (1.0 - middle) * np.log1p(seen))
        utilities += flattery[:, np.newaxis] / np.sqrt(counts[:, ranking] + 1.0)
    best: list[int] = utilities.argmax(axis=1).tolist()
    return best
