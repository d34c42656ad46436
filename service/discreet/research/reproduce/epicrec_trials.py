"""A crowd that sends profiles, all of them perturbed in one way, and what a server makes of them.

As in the paper, *everybody* is perturbed: the server has what the crowd sent and nobody's history.
`epicrec_crowd` says who they are and what the server does.

Everybody meets every method with the same luck, so that methods differ by what they do:

- S-DPDP (M-DPDP by category), Pseudo-LPA and Pseudo-GS: the paper's counts with one of three kinds
  of noise, then its phase 2 as published (`discreet.research.published.epicrec`).
- The same three with our sanitisation in place of that phase 2, and S-DPDP with a sparse solution
  of its program: for the error of the counts only, as COUNTED_ONLY says.
- Served: what a hub sends, with and without public popularity, which is that of the people of the
  data set who are not in the crowd.

Seconds are of the processor, so that they do not depend on what else the machine is doing.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from discreet.families.collaborative.on_device.calibration import calibrate
from discreet.families.collaborative.on_device.catalogue import (
    PERTURBED,
    Catalogue,
    Concerns,
    scope_of,
)
from discreet.families.collaborative.on_device.perturbation import perturb
from discreet.families.collaborative.on_device.sanitisation import sanitise
from discreet.research.noise import SeededNoise
from discreet.research.published.epicrec import counting_of, open_items, phase_two
from discreet.research.reproduce.epicrec_crowd import (
    FOLDS,
    HIDDEN,
    PROTECTED,
    Floats,
    HubCrowd,
    HubOwner,
    Integers,
    ServerErrors,
    crowd_of,
    raw_errors,
)
from discreet.research.rivals.epicrec import Rival, noisy_counts

Key = tuple[str, str, float]
"""System ("single" or "category"), method, epsilon."""

PUBLISHED, LPA, GS = "published", "lpa", "gs"
SPARSE = "published, sparse"
OUR_PHASE_2 = "published, our phase 2"
SERVED, POPULAR = "served", "served + popularity"
_PHASE_1 = {
    PUBLISHED: Rival.OURS,
    SPARSE: Rival.OURS,
    LPA: Rival.LPA,
    GS: Rival.GS,
}
_OURS = {
    OUR_PHASE_2: Rival.OURS,
    "lpa, our phase 2": Rival.LPA,
    "gs, our phase 2": Rival.GS,
}
COUNTED_ONLY = (SPARSE, *_OURS)
METHODS = (PUBLISHED, LPA, GS, SERVED, POPULAR, *COUNTED_ONLY)
RAW, NOTHING = "raw", "nothing"

FIELDS = (
    "people",
    "aggregate",
    "own",
    "bound",
    "seconds",
    "ndcg",
    "ratings",
    "error",
    "raw",
    "sets_error",
    "sets_raw",
    "hidden_error",
    "hidden_raw",
    "protected_error",
    "protected_raw",
)


@dataclass(frozen=True, slots=True)
class PerturbedCrowd:
    """A trial: a crowd, a control and a method. Everything that it does follows from these."""

    dataset: str
    folder: Path | None
    people: int
    seed: int
    system: str
    method: str
    epsilons: tuple[float, ...]

    @property
    def rounds(self) -> int:
        """Return how long it is, in profiles."""
        return self.people * len(self.epsilons)

    @property
    def label(self) -> str:
        """Return what to show while it runs."""
        return f"{self.dataset}, {self.system}, {self.method}"

    def run(self) -> "CrowdTotals":
        """Perturb everybody's profile, and see what the server makes of them."""
        among = crowd_of(self.dataset, self.folder, self.people, self.seed)
        totals = CrowdTotals(self, among.parts)
        raw = raw_errors(self.dataset, self.folder, self.people, self.seed)
        if self.method in (RAW, NOTHING):
            profiles = [
                one.history if self.method == RAW else one.history[:0] for one in among.owners
            ]
            key = (self.method, self.method, 0.0)
            totals.add(key, people=np.ones(len(profiles)))
            totals.judge(key, among, profiles, raw)
            return totals
        column_of = {item: at for at, item in enumerate(among.catalogue.items)}
        sent: dict[float, list[Integers]] = {epsilon: [] for epsilon in self.epsilons}
        counted: dict[float, list[dict[str, float]]] = {epsilon: [] for epsilon in self.epsilons}
        for owner in among.owners:
            concerns = PERTURBED if self.system == "single" else owner.concerns
            for epsilon in self.epsilons:
                calibrate(catalogue=among.catalogue, epsilon=epsilon, concerns=concerns)
                start = time.thread_time()
                items = released(self.method, owner, among, concerns, epsilon)
                seconds = time.thread_time() - start
                sent[epsilon].append(np.array(sorted(column_of[item] for item in items), np.int64))
                found = _misfit(among.catalogue, concerns, epsilon, owner.names, items)
                counted[epsilon].append({**found, "people": 1.0, "seconds": seconds})
        for epsilon in self.epsilons:
            key = (self.system, self.method, epsilon)
            rows = counted[epsilon]
            totals.add(key, **{name: np.array([one[name] for one in rows]) for name in rows[0]})
            if self.method not in COUNTED_ONLY:
                totals.judge(key, among, sent[epsilon], raw)
        return totals


@dataclass(frozen=True, slots=True, eq=False)
class CrowdTotals:
    """Sums of `FIELDS`, a row for each tenth of the people, for every key."""

    trial: PerturbedCrowd
    parts: Integers
    by_method: dict[Key, Floats] = field(default_factory=dict)

    def add(self, key: Key, **amounts: Floats) -> None:
        """Add what was found of each person."""
        table = self.by_method.setdefault(key, np.zeros((FOLDS, len(FIELDS))))
        for name, amount in amounts.items():
            table[:, FIELDS.index(name)] += np.bincount(self.parts, amount, FOLDS)

    def judge(self, key: Key, among: HubCrowd, profiles: list[Integers], raw: ServerErrors) -> None:
        """Add what the server made of what everybody sent."""
        found = among.judge(profiles)
        kinds = np.concatenate([owner.kinds for owner in among.owners])

        def by_person(values: Floats) -> Floats:
            return np.bincount(among.asked.rows, values, len(among.owners)).astype(np.float64)

        self.add(
            key,
            ndcg=found.gains,
            ratings=by_person(np.ones(len(kinds))),
            error=by_person(found.ratings),
            raw=by_person(raw.ratings),
            sets_error=by_person(found.sets),
            sets_raw=by_person(raw.sets),
            hidden_error=by_person(found.ratings * (kinds == HIDDEN)),
            hidden_raw=by_person(raw.ratings * (kinds == HIDDEN)),
            protected_error=by_person(found.ratings * (kinds == PROTECTED)),
            protected_raw=by_person(raw.ratings * (kinds == PROTECTED)),
        )


def released(
    method: str, owner: HubOwner, among: HubCrowd, concerns: Concerns, epsilon: float
) -> frozenset[str]:
    """Return what a person sends by one of the methods."""
    noise = SeededNoise(owner.luck)
    catalogue = among.catalogue
    if method in (SERVED, POPULAR):
        return perturb(
            history=owner.names,
            catalogue=catalogue,
            concerns=concerns,
            epsilon=epsilon,
            noise=noise,
            expectation=among.expectation if method == POPULAR else None,
        ).items
    as_published = method in _PHASE_1
    noisy = noisy_counts(
        method=_PHASE_1[method] if as_published else _OURS[method],
        history=owner.names,
        catalogue=catalogue,
        concerns=counting_of(catalogue, concerns) if as_published else concerns,
        epsilon=epsilon,
        noise=noise,
    )
    seed = noise.bits(128)
    if as_published:
        drawn = phase_two(
            history=owner.names,
            catalogue=catalogue,
            concerns=concerns,
            noisy=noisy,
            seed=seed,
            sparse=method == SPARSE,
        )
    else:
        drawn = sanitise(catalogue=catalogue, concerns=concerns, wanted=noisy, seed=seed)
    return drawn | open_items(catalogue, concerns, owner.names)


def _misfit(
    catalogue: Catalogue,
    concerns: Concerns,
    epsilon: float,
    history: frozenset[str],
    items: frozenset[str],
) -> dict[str, float]:
    """Return the mean error of the counts: by the paper's yardstick, and of what may be counted.

    The paper's is the whole history, in every "perturbed" category; `bound` is that of Theorems 3
    and 5 for it. A hub counts only the items that may leave with noise, and `own` is of those.
    """
    counting = counting_of(catalogue, concerns)
    scope, every = scope_of(catalogue, concerns), scope_of(catalogue, counting)
    true, sent = catalogue.tally(history), catalogue.tally(items)
    differences = (sent - true) @ catalogue.incidence.astype(np.int64)
    mine = (sent - true)[scope.protected] @ scope.incidence
    magnitudes = calibrate(catalogue=catalogue, epsilon=epsilon, concerns=counting)
    return {
        "aggregate": float(np.abs(differences[every.counted]).mean()),
        "own": float(np.abs(mine).mean()),
        "bound": 2 * magnitudes.mean,
    }
