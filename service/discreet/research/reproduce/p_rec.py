"""The claims of p-REC again: expected loss and epsilon, each beside its bound.

The paper has no experiments; it has two theorems with constants. So what is measured is what they
bound: how many recommended objects the client dislikes, and how much a run reveals about a voter,
over numbers of voters, peers, objects and rounds, radius and diversity. Every electorate has
exactly the peers that it promises. The others vote in four ways, one of which watches the run
(`electorates`); a row holds the worst of the four. Both readings play the same electorates.

`epsilon_exact` is the largest loss over *all* runs, of any voters and any client, where that can
be computed (one credit a voter, up to 200 voters of 2 objects, 60 of 3); otherwise the largest over
all voters in the runs that were played, computed exactly. With the served reading the test's
epsilon is added in full. Polis conversations are real voters, with the client and the silence that
they have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.families.p_rec.run_parameters import VotingParameters, parameters_for
from discreet.research.reproduce.p_rec_claims import MeasuredRun, claims_of
from discreet.research.reproduce.p_rec_trials import (
    Reading,
    VotersCase,
    VotersRunResult,
    VotersTrial,
    play,
    worst_epsilon,
)
from discreet.research.reproduce.papers import ProgressWatcher, ReproductionOptions
from discreet.research.reproduce.tables import Figure, Line, Panel, Reproduction, ResultTable
from discreet.research.reproduce.trials import run_all
from discreet.research.worlds.electorates import PATTERNS
from discreet.research.worlds.polis import PolisConversation, PolisElectorate, conversations

SEEDS, QUICK_SEEDS = 5, 2
DELTA = 1e-9
STATEMENTS, KEEN, CLIENTS = 60, 200, 5
COMPUTABLE = {2: 200, 3: 60}
"""Of how many voters the worst of all runs is computed, by objects."""
READINGS: tuple[Reading, ...] = ("published", "served")

# n, m, T, D, R, P
Numbers = tuple[int, int, int, int, int, int]
QUICK: tuple[Numbers, ...] = (
    (100, 2, 100, 0, 0, 40),
    (200, 2, 100, 0, 0, 40),
    (200, 2, 100, 0, 0, 80),
    (200, 2, 400, 0, 0, 80),
    (60, 3, 100, 0, 0, 30),
    (1_000, 3, 100, 0, 1, 300),
    (1_000, 3, 100, 2, 0, 300),
    (1_000, 3, 100, 2, 2, 300),
    (10_000, 3, 100, 0, 0, 1_000),
)
FULL: tuple[Numbers, ...] = (
    *QUICK,
    *((n, 2, 200, 0, 0, 150) for n in (500, 2_000, 8_000, 32_000)),
    *((8_000, 2, 200, 0, 0, peers) for peers in (300, 600, 1_200, 2_400)),
    *((4_000, 3, 300, 0, radius, 1_000) for radius in (0, 1, 2, 4, 8)),
    *((4_000, 3, 300, diversity, 0, 1_000) for diversity in (1, 2, 4, 8)),
    (40_000, 10, 1_000, 0, 0, 4_000),
)

PUBLISHED: dict[str, Any] = {
    "epsilon": "36 m^2 (2D+2R+1) ln(T/(R+1)) / P; with D = R = 0, 18 m^2 ln(T) / P",
    "loss": "2m (2R+1) ln((2R+1) n / ((R+1) P)) + gamma T",
    "experiments": None,
}


@dataclass(frozen=True, slots=True)
class VotersOutcome:
    """A case and what was measured; `every_run` says which of the two epsilons it is."""

    case: VotersCase
    disliked: float
    spread: float
    revealed: float
    every_run: bool
    by_pattern: dict[str, float]
    curve: tuple[float, ...] = ()

    def row(self) -> dict[str, Any]:
        """Return the row that programs read."""
        voting = self.case.voting
        return {
            "reading": self.case.reading,
            "n": self.case.voters,
            "m": voting.objects,
            "T": voting.rounds,
            "D": voting.diversity,
            "R": voting.radius,
            "P": self.case.peers,
            "loss_mean": self.disliked,
            "loss_bound": self.case.loss_bound,
            "epsilon_exact": self.revealed,
            "epsilon_bound": self.case.epsilon_bound,
        }


def case_of(reading: Reading, numbers: Numbers) -> VotersCase:
    """Return one choice of parameters in one reading."""
    voters, objects, rounds, diversity, radius, peers = numbers
    voting = VotingParameters(objects=objects, rounds=rounds, radius=radius, diversity=diversity)
    run = None
    if reading == "served":
        run = parameters_for(voting=voting, peers=peers, voters=voters, delta=DELTA)
    return VotersCase(reading, voting, peers, voters, run)


def reproduce(options: ReproductionOptions, watch: ProgressWatcher) -> Reproduction:
    """Run everything and put the bounds beside it."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    if seeds < 1:
        raise InvalidArgument("seeds", "must be at least 1")
    wanted = QUICK if options.quick else FULL
    if options.rounds is not None:
        wanted = tuple((n, m, options.rounds, d, r, p) for n, m, _, d, r, p in wanted)
    real = [] if options.data is None else _real(options.data, quick=options.quick)
    cases = [case_of(reading, numbers) for numbers in wanted for reading in READINGS]
    trials = [
        VotersTrial(case, pattern, seed)
        for case in cases
        for pattern in PATTERNS
        for seed in range(seeds)
    ]
    outcomes = iter(run_all(trials, watch=watch, processes=options.processes))
    found = [
        _worst_of(case, {pattern: [next(outcomes) for _ in range(seeds)] for pattern in PATTERNS})
        for case in cases
    ]
    talks = [one for conversation in real for one in _polis(conversation)]
    return report(found, talks, seeds=seeds, quick=options.quick)


def _worst_of(case: VotersCase, played: dict[str, list[VotersRunResult]]) -> VotersOutcome:
    means = {name: float(np.mean([one.disliked for one in many])) for name, many in played.items()}
    worst = max(means, key=means.__getitem__)
    losses = [one.disliked for one in played[worst]]
    revealed = max(one.revealed for many in played.values() for one in many)
    voting = case.voting
    every_run = voting.credit == 1 and case.voters <= COMPUTABLE.get(voting.objects, 0)
    if every_run:
        least = case.peers + 1 if case.run is None else case.run.survivors + 1
        most = worst_epsilon(voting, least=least, voters=case.voters)
        revealed = max(revealed, most + (0.0 if case.run is None else case.run.test_epsilon))
    curve = np.mean([one.curve for one in played[worst]], axis=0)
    spread = float(np.std(losses, ddof=1)) if len(losses) > 1 else 0.0
    return VotersOutcome(
        case, means[worst], spread, revealed, every_run, means, tuple(map(float, curve))
    )


def _real(folder: Path, *, quick: bool) -> list[PolisConversation]:
    """Return the dense part of every conversation with enough voters who voted on most of it."""
    dense = [conversation.core(STATEMENTS) for conversation in conversations(folder)]
    large = [conversation for conversation in dense if len(conversation.votes) >= KEEN]
    return large[:2] if quick else large


def _polis(conversation: PolisConversation) -> list[tuple[str, VotersOutcome]]:
    """Let the keenest participants be clients, with a third of the voters as their peers.

    As published everybody votes, so silence is replaced by random votes. The radius is what makes
    that third peers.
    """
    found: list[tuple[str, VotersOutcome]] = []
    by_reading: dict[Reading, list[tuple[VotersCase, VotersRunResult]]] = {
        reading: [] for reading in READINGS
    }
    for client in conversation.clients(CLIENTS):
        silent = PolisElectorate(conversation, client)
        spoken = silent.with_random_votes(client)
        peers = silent.voters // 3
        radius = int(np.sort(spoken.distances())[peers - 1])
        if silent.rounds < 2 * (radius + 1):
            continue
        for reading, electorate in (("published", spoken), ("served", silent)):
            numbers = (silent.voters, 2, silent.rounds, 0, radius, peers)
            case = case_of("published" if reading == "published" else "served", numbers)
            by_reading[case.reading].append((case, play(case, electorate, seed=client)))
    for many in by_reading.values():
        for case, played in many:
            one = VotersOutcome(case, float(played.disliked), 0.0, played.revealed, False, {})
            found.append((conversation.name, one))
    return found


def report(
    found: Sequence[VotersOutcome],
    talks: Sequence[tuple[str, VotersOutcome]],
    *,
    seeds: int,
    quick: bool,
) -> Reproduction:
    """Return the outcomes as rows, tables and figures."""
    every = [*found, *(one for _, one in talks)]
    below = sum(one.disliked <= one.case.loss_bound for one in every)
    held = sum(one.revealed <= one.case.epsilon_bound for one in every)
    cheaper = [
        published.case.epsilon_bound / served.case.epsilon_bound
        for published, served in zip(found[::2], found[1::2], strict=True)
    ]
    tables = [_table("synthetic voters", [("", one) for one in found])]
    if talks:
        tables.append(_table("Polis conversations", talks))
    published = [
        MeasuredRun(one.case, one.disliked, one.revealed, one.every_run)
        for one in found
        if one.case.reading == "published"
    ]
    return Reproduction(
        name="p-rec",
        seeds=seeds,
        quick=quick,
        claims=claims_of(published),
        results=[one.row() for one in every],
        published=PUBLISHED,
        details={
            "delta": DELTA,
            "cases": [
                {**one.row(), "every_run": one.every_run, "loss_by_pattern": one.by_pattern}
                for one in found
            ],
            "polis": [{"conversation": name, **one.row()} for name, one in talks],
        },
        tables=tables,
        figures=_figures(found),
        notes=[
            f"loss within its bound in {below} of {len(every)} rows",
            f"epsilon within its bound in {held} of {len(every)} rows",
            f"the served bound is {min(cheaper):.2g} to {max(cheaper):.2g} times below the "
            "published one, and presumes nothing about the voters",
        ],
    )


def _table(title: str, found: Sequence[tuple[str, VotersOutcome]]) -> ResultTable:
    rows = []
    for name, one in found:
        row = one.row()
        rows.append(
            (
                name or one.case.reading,
                *([one.case.reading] if name else []),
                *(f"{row[letter]:,}" for letter in "nmTDRP"),
                f"{one.disliked:.1f} ± {one.spread:.1f}" if not name else f"{one.disliked:.0f}",
                f"{one.case.loss_bound:.1f}",
                f"{one.revealed:.3g}" + ("" if one.every_run else " *"),
                f"{one.case.epsilon_bound:.3g}",
            )
        )
    first = ["reading"] if found and not found[0][0] else ["conversation", "reading"]
    columns = [*first, *"nmTDRP", "loss", "its bound", "epsilon", "its bound"]
    return ResultTable(f"{title} (* in the runs played; otherwise in every run)", columns, rows)


_LETTERS = {"n": "voters", "P": "peers", "R": "radius", "D": "diversity"}


def _figures(found: Sequence[VotersOutcome]) -> list[Figure]:
    """Draw loss and epsilon over whichever numbers were varied, each with its bound."""
    panels = [
        panel
        for letter, what in (("n", "loss"), ("R", "loss"), ("P", "epsilon"), ("D", "epsilon"))
        if (panel := _over(found, letter, what)) is not None
    ]
    most = max(one.case.voters for one in found)
    curves = [one for one in found if one.case.voters == most][:2]
    lines = [
        Line(one.case.reading, list(range(1, len(one.curve) + 1)), list(one.curve))
        for one in curves
    ]
    return [
        Figure("loss-and-epsilon", "p-REC: what was measured, and its bounds", panels),
        Figure(
            "learning",
            f"p-REC: {most:,} voters, {curves[0].case.peers:,} of them peers",
            [Panel("objects disliked so far", "rounds", "objects", lines)],
        ),
    ]


def _over(found: Sequence[VotersOutcome], letter: str, what: str) -> Panel | None:
    """Draw the most cases that differ in this number alone."""
    groups: dict[tuple[Any, ...], list[VotersOutcome]] = {}
    for one in found:
        row = one.row()
        groups.setdefault(tuple(row[other] for other in "nmTDRP" if other != letter), []).append(
            one
        )
    largest = max(groups.values(), key=lambda many: len(many))
    group = sorted(largest, key=lambda one: float(one.row()[letter]))
    if len(group) < 2 * len(READINGS):
        return None
    lines = []
    for reading in READINGS:
        rows = [one.row() for one in group if one.case.reading == reading]
        places = [row[letter] for row in rows]
        key = "loss_mean" if what == "loss" else "epsilon_exact"
        lines.append(Line(reading, places, [row[key] for row in rows]))
        lines.append(Line(f"{reading}, its bound", places, [row[f"{what}_bound"] for row in rows]))
    name = _LETTERS[letter]
    return Panel(f"{what} over {name}", name, what, lines, log_x=letter in "nP")
