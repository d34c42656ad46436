"""Mistakes that answering many at once invites, each of which the audit must notice."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields, replace
from typing import Any

import numpy as np

from discreet.families.p_dap.adaptive_partition import AdaptivePartition, Found
from discreet.families.p_dap.adaptive_partition_many import ManyPlan, decide_many
from discreet.audit.families.p_dap import Taught
from discreet.audit.families.p_dap_many import (
    Tape,
    examine_bits,
    examine_charge,
    examine_neighbours,
    laws_of,
)
from discreet.families.p_dap.contract import Choice, Decision, Deeper, Request
from discreet.families.p_dap.mixture import Odds
from discreet.families.p_dap.outlook import Outlook
from discreet.families.shortlist import Slots
from discreet.audit.claims import PlantedFault, Finding
from discreet.audit.scripted_noise import ScriptedNoise
from discreet.privacy.choice import RESPONSE_BITS
from discreet.privacy.noise import NoiseSource


class _OneUniform(ScriptedNoise):
    """A source whose wide requests repeat their first uniform for every row."""

    def __init__(self, noise: NoiseSource) -> None:
        super().__init__(())
        self._noise = noise

    def bits(self, count: int) -> int:
        drawn = self._noise.bits(count)
        if count % RESPONSE_BITS:
            return drawn
        first = drawn % 2**RESPONSE_BITS
        return sum(first << start for start in range(0, count, RESPONSE_BITS))


def _share_uniform(
    learner: AdaptivePartition, *, noise: NoiseSource, **given: Any
) -> list[Decision | Deeper]:
    return decide_many(learner, noise=_OneUniform(noise), **given)


class _PryingCoin(Odds):
    """Explores the less, the further down the shortlist the cell's best arm stands."""

    def draw_each(self, bests: Sequence[int], noise: NoiseSource) -> list[Choice]:
        drawn = []
        for best in bests:
            # `tossed <= value` is `tossed < value + 1`.
            prying = replace(self, coin=(self.coin >> best) + 1)
            drawn += Odds.draw_each(prying, [best], noise)
        return drawn


class _MixedUp(Odds):
    """Answers every row by the best arm of the one before it."""

    def draw_each(self, bests: Sequence[int], noise: NoiseSource) -> list[Choice]:
        return super().draw_each([*bests[-1:], *bests[:-1]], noise)


def _with_odds(kind: type[Odds]) -> Any:
    """Return a way to decide whose odds are of another kind."""

    def decide(learner: AdaptivePartition, **given: Any) -> list[Decision | Deeper]:
        def odds(available: Slots, limit: int, *, outlook: Outlook, level: int) -> Odds:
            honest = learner.odds(available, limit, outlook=outlook, level=level)
            return kind(**{one.name: getattr(honest, one.name) for one in fields(Odds) if one.init})

        planted = copy(learner)
        object.__setattr__(planted, "odds", odds)
        return decide_many(planted, **given)

    return decide


def _first_epsilon(learner: AdaptivePartition, **given: Any) -> list[Decision | Deeper]:
    """Answer every row by the odds of the first one's level."""
    first = decide_many(learner, **given | {"rows": given["rows"][:1], "noise": Tape(0)})[0]
    assert isinstance(first, Decision)
    level_of_all = first.address.level

    def odds(available: Slots, limit: int, *, outlook: Outlook, level: int) -> Odds:
        return learner.odds(available, limit, outlook=outlook, level=level_of_all)

    planted = copy(learner)
    object.__setattr__(planted, "odds", odds)
    return decide_many(planted, **given)


def _in_company(decided: Sequence[Decision | Deeper]) -> Mapping[int, Decision]:
    """Return the decisions of the rows that do not lie alone in their cells."""
    rows = {row: one for row, one in enumerate(decided) if isinstance(one, Decision)}
    addresses = [one.address for one in rows.values()]
    return {row: one for row, one in rows.items() if addresses.count(one.address) > 1}


def _sure_in_company(
    learner: AdaptivePartition, *, plan: ManyPlan, starts: Sequence[int], sums: Any, **given: Any
) -> list[Decision | Deeper]:
    """Answer the best arm itself to rows that lie in one cell."""
    decided = decide_many(learner, plan=plan, starts=starts, sums=sums, **given)
    for row, one in _in_company(decided).items():
        found = learner.find(
            state=dict(zip(plan.reads[row], sums[starts[row] :], strict=False)),
            plan=plan.row(row),
            request=Request(context=np.zeros(1), available=plan.available),
        )
        assert isinstance(found, Found)
        best = int(found.mixture.odds.ranking[found.mixture.best])
        decided[row] = replace(one, choices=(Choice(best, 1.0),))
    return decided


def _one_draw_a_cell(learner: AdaptivePartition, **given: Any) -> list[Decision | Deeper]:
    """Answer all rows of a cell as the first of them, which saves drawing."""
    decided = decide_many(learner, **given)
    first_of: dict[Any, Decision] = {}
    for row, one in _in_company(decided).items():
        decided[row] = replace(one, choices=first_of.setdefault(one.address, one).choices)
    return decided


def _charged(decide: Any) -> Finding:
    taught = Taught(mode="uniform")
    return examine_charge(taught, laws_of(taught, decide), column="epsilon")


def _neighbourly(decide: Any) -> Finding:
    """Two contexts are enough to see that a neighbour's matters."""
    return examine_neighbours(Taught(mode="geometric"), decide, contexts=(0.05, 0.95))


def many_faults() -> Iterator[PlantedFault]:
    """Yield mistakes that only answering many at once can make."""
    taught = Taught(mode="geometric")
    yield PlantedFault("one uniform for a whole batch", lambda _: examine_bits(taught, _share_uniform))
    yield PlantedFault("one draw for all rows of a cell", lambda _: examine_bits(taught, _one_draw_a_cell))
    yield PlantedFault(
        "a batch's coins that look at the cell", lambda _: _charged(_with_odds(_PryingCoin))
    )
    yield PlantedFault("the best arm for sure to rows of one cell", lambda _: _charged(_sure_in_company))
    yield PlantedFault("the first row's epsilon for a whole batch", lambda _: _neighbourly(_first_epsilon))
    yield PlantedFault("best arms handed to the wrong rows", lambda _: _neighbourly(_with_odds(_MixedUp)))
