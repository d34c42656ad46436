"""Invented outcomes of the evaluation of profile perturbation."""

from collections.abc import Callable

import numpy as np

from discreet.research.reproduce.epicrec_tables import SYSTEMS, Floats, Table
from discreet.research.reproduce.epicrec_theorems import BEYOND, PublicFacts
from discreet.research.reproduce.epicrec_trials import (
    COUNTED_ONLY,
    FIELDS,
    FOLDS,
    METHODS,
    NOTHING,
    RAW,
    Key,
)

EPSILONS = (0.05, 0.2, 0.3, 1.0)
PEOPLE = 10.0
"""In each tenth."""

Invent = Callable[[str, str, float], dict[str, float]]
"""Fields of a system, method and epsilon that differ from the usual, as means over people."""


def invented(invent: Invent = lambda system, method, epsilon: {}, *, seed: int = 0) -> Table:
    """Return totals of ten tenths that scatter by about one per cent.

    Usually all methods err by 2 / epsilon counts and lose 4%, against 10% for nothing at all.
    """
    rng = np.random.default_rng(seed)
    found: dict[Key, Floats] = {}
    keys: list[Key] = [(RAW, RAW, 0.0), (NOTHING, NOTHING, 0.0)]
    keys += [
        (system, method, epsilon)
        for system in SYSTEMS
        for method in METHODS
        for epsilon in (*EPSILONS, BEYOND)
    ]
    for system, method, epsilon in keys:
        lost = {RAW: 0.0, NOTHING: 0.1}.get(method, 0.04)
        means = {
            "people": 1.0,
            "ratings": 20.0,
            "raw": 20.0,
            "sets_raw": 20.0,
            "hidden_raw": 8.0,
            "protected_raw": 8.0,
            "error": 20.0 * (1 + lost),
            "sets_error": 20.0 * (1 + lost),
            "hidden_error": 8.0 * (1 + lost),
            "protected_error": 8.0 * (1 + lost),
            "ndcg": {RAW: 0.4, NOTHING: 0.2}.get(method, 0.1),
            "seconds": 0.004,
        }
        if epsilon:
            means |= {"aggregate": 2 / epsilon, "own": 2 / epsilon, "bound": 6 / epsilon}
        means |= invent(system, method, epsilon)
        if method in COUNTED_ONLY:
            means = {name: each for name, each in means.items() if not name.endswith("error")}
        table = np.zeros((FOLDS, len(FIELDS)))
        for name, each in means.items():
            table[:, FIELDS.index(name)] = each * PEOPLE
        scatter = 1 + 0.01 * rng.standard_normal(FOLDS)
        table[:, FIELDS.index("aggregate")] *= scatter
        found[system, method, epsilon] = table
    return found


def public(**differently: object) -> PublicFacts:
    """Return public facts like MovieLens's."""
    usual: dict[str, object] = {
        "epsilons": {"single": (0.23, 0.2, 0.25), "category": (0.2, 0.1, 0.3)},
        "by_category": (0.29, 0.2, 0.4),
        "line_7": (0.04, 0.04, 0.04),
        "seconds": {"quantification_single": 0.5, "quantification_category": 0.2},
        "mean_magnitude": 4.5,
        "plain_magnitude": 6.0,
        "exact_loss": 1.0,
        "groups": 301,
        "maximal_rows": 101,
        "typical": 166,
    }
    return PublicFacts(**{**usual, **differently})  # type: ignore[arg-type]
