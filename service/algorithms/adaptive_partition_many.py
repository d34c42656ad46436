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

import numpy as np

from service.algorithms.adaptive_partition import OPTIMISM, AdaptivePartition, CellPlan
from service.algorithms.cell import REWARD_STEPS, arrivals
from service.algorithms.contract import Address, Decision, Deeper, Floats, Vector
from service.algorithms.memory import posterior
from service.algorithms.outlook import Outlook
from service.algorithms.partition import Routes
from service.algorithms.shortlist import Slots
from service.privacy.events import PrivacyEvent
from service.privacy.noise import NoiseSource


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
    reads: list[tuple[Address, ...]] = [()] * len(routes)
    priors: list[Floats] = [outlook.means] * len(routes)
    rows: Sequence[int] = range(len(routes))
    level = 0
    split, whole = memory.split, memory.whole
    while rows:
        names = routes.names(level)
        onward, here = [], []
        for row in rows:
            cell = split.get(names[row])
            if cell is None:
                here.append(row)
            else:
                priors[row] = cell.means(prior=priors[row], outlook=outlook)
                onward.append(row)
        last = learner.read_ahead(level, outlook)
        for row, key in zip(here, routes.keys(level, here), strict=True):
            reads[row] = (Address(key, level),)
            if key not in whole and last > level:
                route = routes.route(row)
                reads[row] += tuple(route.address(below) for below in range(level + 1, last + 1))
        rows = onward
        level += 1
    events = learner.events(draws=min(1, len(available) - 1), outlook=outlook)
    return ManyPlan(available, events, reads, priors, outlook, routes)


def decide_many(
    learner: AdaptivePartition,
    *,
    plan: ManyPlan,
    rows: Sequence[int],
    vectors: Sequence[Sequence[Vector]],
    noise: NoiseSource,
) -> list[Decision | Deeper]:
    """Answer these rows, given what was read for each; in the order of `rows`."""
    found = [_active(learner, plan, row, read) for row, read in zip(rows, vectors, strict=True)]
    settled = [one for one in found if not isinstance(one, Deeper)]
    answered = iter(_answer(learner, plan, settled, noise))
    return [one if isinstance(one, Deeper) else next(answered) for one in found]


_Active = tuple[Address, Vector, Floats]
"""A row's active cell: where it is, what was learned there, and what it inherits."""


def _active(
    learner: AdaptivePartition, plan: ManyPlan, row: int, read: Sequence[Vector]
) -> _Active | Deeper:
    address, vector = plan.reads[row][0], read[0]
    if not learner.partition.has_split(address, vector):
        learner.memory.note_whole(address.key)
        return address, vector, plan.priors[row]
    alone = plan.row(row)
    return learner.locate(state=dict(zip(alone.reads, read, strict=True)), plan=alone)


def _answer(
    learner: AdaptivePartition, plan: ManyPlan, cells: Sequence[_Active], noise: NoiseSource
) -> list[Decision]:
    if not cells:
        return []
    arms, outlook = learner.arms, plan.outlook
    fields = np.zeros((len(cells), 2 * arms))
    for row, (_, vector, _) in zip(fields, cells, strict=True):
        body = vector[1 : 1 + 2 * arms]
        row[: len(body)] = body
    counts = fields[:, 0::2]
    means = posterior(
        counts=counts,
        sums=fields[:, 1::2] / REWARD_STEPS,
        prior=np.array([prior for _, _, prior in cells]),
    )
    seen = np.array([arrivals(vector) for _, vector, _ in cells], dtype=np.float64)
    leaders = means[:, plan.available].max(axis=1).tolist()
    odds_of = {
        level: learner.odds(plan.available, 1, outlook=outlook, level=level)
        for level in {address.level for address, _, _ in cells}
    }
    # The ranking is the outlook's, whatever the level.
    best = _best(means, counts, seen, next(iter(odds_of.values())).ranking)
    decisions, personalised = [], bool(plan.events)
    for place, (address, _, _) in enumerate(cells):
        choice = odds_of[address.level].draw(best[place], noise)
        regret = leaders[place] - float(means[place, choice.slot])
        decisions.append(Decision((choice,), address, plan.events, personalised, regret))
    return decisions


def _best(means: Floats, counts: Floats, seen: Floats, ranking: Slots) -> list[int]:
    """Return the position in the shortlist of each row's best arm, with the same optimism."""
    utilities = means[:, ranking]
    if len(ranking) > 1:
        middle = utilities.sum(axis=1) / len(ranking)
        flattery = OPTIMISM * np.sqrt(middle * (1.0 - middle) * np.log1p(seen))
        utilities += flattery[:, np.newaxis] / np.sqrt(counts[:, ranking] + 1.0)
    best: list[int] = utilities.argmax(axis=1).tolist()
    return best
