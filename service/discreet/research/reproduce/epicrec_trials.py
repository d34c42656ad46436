"""One fold of the evaluation of profile perturbation: some people with hubs, the rest without.

Ten-fold cross-validation over people. Nine tenths have given the server everything, ratings
included; it learns from them (`epicrec_server`). Of the last tenth a sample owns hubs. Of their
items a fifth is held out; the rest is the history, which is perturbed and sent, as a set of items
without ratings: that is all a hub sends. The server then predicts the ratings of what was held out,
and recommends ten items, from which the device removes those that are in the true history.

Everybody is perturbed by every method with the same noise seeds and the same luck, so that methods
differ by what they do. "Ours" is what a hub does. The rivals' counts go straight into phase 2, as
in the paper; so do ours, under another name, to show what the calibration alone is worth. Where
popularity is used, it is that of the nine tenths. Seconds are of the processor, so that they do not
depend on what else the machine is doing.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidArgument
from discreet.families.collaborative.on_device.calibration import calibrate
from discreet.families.collaborative.on_device.catalogue import (
    PERTURBED,
    Catalogue,
    Concerns,
    Level,
    scope_of,
)
from discreet.families.collaborative.on_device.expectation import Expectation
from discreet.families.collaborative.on_device.perturbation import perturb
from discreet.families.collaborative.on_device.sanitisation import sanitise
from discreet.research.noise import SeededNoise
from discreet.research.reproduce.epicrec_server import OrdinaryRecommender, ndcg
from discreet.research.rivals.epicrec import Rival, noisy_counts
from discreet.research.worlds.environments import seeded
from discreet.research.worlds.rated import RatedCatalogue, crowd, movielens, yelp

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Key = tuple[str, str, float]
"""System ("single" or "category"), method, epsilon."""

FOLDS = 10
PUBLIC = "ours + popularity"
"""As served where the popularity of items is public."""
CALIBRATION = "calibration only"
"""Our noise, and the paper's phase 2 as it is given to the rivals."""
METHODS = (*(rival.value for rival in Rival), PUBLIC, CALIBRATION)
RAW, NOTHING = "raw", "nothing"

_LEAST_RATINGS = 5
FIELDS = (
    "people",
    "aggregate",
    "ratings",
    "error",
    "ndcg",
    "seconds",
    "hidden_error",
    "hidden_raw",
    "protected_error",
    "protected_raw",
)


@lru_cache(maxsize=1)
def load(dataset: str, folder: Path | None) -> RatedCatalogue:
    """Return a data set by its name."""
    if dataset == "synthetic":
        return crowd()
    if folder is None:
        raise InvalidArgument("data", "must be a folder for this data set")
    return {"movielens": movielens, "yelp": yelp}[dataset](folder)


@dataclass(frozen=True, slots=True)
class Fold:
    """A trial: everything that it does follows from these values."""

    dataset: str
    folder: Path | None
    number: int
    people: int
    seeds: int
    epsilons: Mapping[str, tuple[float, ...]]

    @property
    def rounds(self) -> int:
        """Return how long it is, in profiles."""
        return self.people * self.seeds

    @property
    def label(self) -> str:
        """Return what to show while it runs."""
        return f"{self.dataset}, fold {self.number}"

    def run(self) -> "FoldTotals":
        """Run it."""
        return _FoldRun(self).run()


@dataclass(frozen=True, slots=True, eq=False)
class FoldTotals:
    """Sums of `FIELDS`, a row a seed, for every key; folds are added up."""

    fold: Fold
    by_method: dict[Key, Floats] = field(default_factory=dict)

    def add(self, key: Key, seed: int, **amounts: float) -> None:
        """Add to the row of a seed."""
        table = self.by_method.setdefault(key, np.zeros((self.fold.seeds, len(FIELDS))))
        for name, amount in amounts.items():
            table[seed, FIELDS.index(name)] += amount


@dataclass(frozen=True, slots=True, eq=False)
class _Person:
    history: Integers
    names: frozenset[str]
    held_out: Integers
    stars: Floats


class _FoldRun:
    """The server of a fold, and those who come to it."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._rated = load(fold.dataset, fold.folder)
        self._catalogue: Catalogue = self._rated.catalogue
        self._column_of = {item: at for at, item in enumerate(self._catalogue.items)}
        parts = seeded("folds", 0).permutation(self._rated.people) % FOLDS
        self._owners = parts == fold.number
        self._server = OrdinaryRecommender.learn(self._rated, ~self._owners)
        known = ~self._owners[self._rated.rows]
        popularity = np.bincount(self._rated.columns[known], minlength=len(self._catalogue.items))
        self._expectation = Expectation.of(
            catalogue=self._catalogue,
            popularity=dict(zip(self._catalogue.items, popularity.tolist(), strict=True)),
            typical=float(known.sum() / (~self._owners).sum()),
        )
        self._totals = FoldTotals(fold)

    def run(self) -> FoldTotals:
        """Perturb everybody's profile in every way, and see what the server makes of it."""
        counts = np.bincount(self._rated.rows, minlength=self._rated.people)
        able = np.flatnonzero(self._owners & (counts >= _LEAST_RATINGS))
        for seed in range(self._fold.seeds):
            rng = seeded("people", seed, self._fold.number)
            for who in rng.permutation(able)[: self._fold.people]:
                person = self._person(int(who), rng)
                luck = int(rng.integers(2**62))
                self._baselines(person, seed)
                self._system("single", PERTURBED, person, seed, luck)
                self._system("category", self._choice(rng), person, seed, luck)
        return self._totals

    def _person(self, who: int, rng: np.random.Generator) -> _Person:
        entries = rng.permutation(np.flatnonzero(self._rated.rows == who))
        count = max(1, len(entries) // 5)
        held_out, kept = entries[:count], entries[count:]
        history = self._rated.columns[kept]
        return _Person(
            history=history,
            names=frozenset(self._catalogue.items[at] for at in history),
            held_out=self._rated.columns[held_out],
            stars=self._rated.stars[held_out],
        )

    def _choice(self, rng: np.random.Generator) -> Concerns:
        """Return a level for each category, at random, with something perturbed among them."""
        levels = tuple(Level)
        while True:
            drawn = rng.integers(0, len(levels), len(self._catalogue.categories))
            chosen = {
                name: levels[at] for name, at in zip(self._catalogue.categories, drawn, strict=True)
            }
            concerns = Concerns.choose(chosen)
            if len(scope_of(self._catalogue, concerns).counted):
                return concerns

    def _errors(self, profile: Integers, person: _Person) -> Floats:
        errors: Floats = np.abs(self._server.ratings(profile, person.held_out) - person.stars)
        return errors

    def _baselines(self, person: _Person, seed: int) -> None:
        for name, profile in ((RAW, person.history), (NOTHING, person.history[:0])):
            ranking = self._server.best(profile, without=person.history)
            self._totals.add(
                (name, name, 0.0),
                seed,
                people=1,
                ratings=len(person.stars),
                error=float(self._errors(profile, person).sum()),
                ndcg=ndcg(ranking, person.held_out),
            )

    def _system(
        self, system: str, concerns: Concerns, person: _Person, seed: int, luck: int
    ) -> None:
        scope = scope_of(self._catalogue, concerns)
        counted = self._catalogue.incidence[np.ix_(scope.protected, scope.counted)]
        true = self._catalogue.tally(person.names)[scope.protected] @ counted
        raw = self._errors(person.history, person)
        groups = np.array(
            [self._catalogue.group_of[self._catalogue.items[at]] for at in person.held_out]
        )
        protected = np.isin(groups, scope.protected)
        hidden = ~protected & ~np.isin(groups, scope.open)
        for epsilon in self._fold.epsilons[system]:
            calibrate(catalogue=self._catalogue, epsilon=epsilon, concerns=concerns)
            for method in METHODS:
                start = time.thread_time()
                items = self._release(method, concerns, epsilon, person, luck)
                seconds = time.thread_time() - start
                sent = self._catalogue.tally(items)[scope.protected] @ counted
                profile = np.array(sorted(self._column_of[item] for item in items), dtype=np.int64)
                errors = self._errors(profile, person)
                ranking = self._server.best(profile, without=person.history)
                self._totals.add(
                    (system, method, epsilon),
                    seed,
                    people=1,
                    aggregate=float(np.abs(sent - true).mean()),
                    ratings=len(errors),
                    error=float(errors.sum()),
                    ndcg=ndcg(ranking, person.held_out),
                    seconds=seconds,
                    hidden_error=float(errors[hidden].sum()),
                    hidden_raw=float(raw[hidden].sum()),
                    protected_error=float(errors[protected].sum()),
                    protected_raw=float(raw[protected].sum()),
                )

    def _release(
        self, method: str, concerns: Concerns, epsilon: float, person: _Person, luck: int
    ) -> frozenset[str]:
        noise = SeededNoise(luck)
        if method in (PUBLIC, Rival.OURS.value):
            return perturb(
                history=person.names,
                catalogue=self._catalogue,
                concerns=concerns,
                epsilon=epsilon,
                noise=noise,
                expectation=self._expectation if method == PUBLIC else None,
            ).items
        wanted = noisy_counts(
            method=Rival.OURS if method == CALIBRATION else Rival(method),
            history=person.names,
            catalogue=self._catalogue,
            concerns=concerns,
            epsilon=epsilon,
            noise=noise,
        )
        drawn = sanitise(
            catalogue=self._catalogue, concerns=concerns, wanted=wanted, seed=noise.bits(128)
        )
        # What is open leaves as it is, whoever hides the rest.
        open_groups = set(scope_of(self._catalogue, concerns).open.tolist())
        return drawn | {
            item for item in person.names if self._catalogue.group_of[item] in open_groups
        }
