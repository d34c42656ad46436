"""`discreet reproduce mirror-descent`, in small: every row, and the orderings of the figures."""

from typing import Any

import pytest

from discreet.research.reproduce.mirror_descent import reproduce
from discreet.research.reproduce.node_topologies import TOPOLOGIES
from discreet.research.reproduce.papers import ReproductionOptions
from discreet.research.reproduce.tables import Reproduction


@pytest.fixture(scope="module")
def found() -> Reproduction:
    """The quick settings with one seed, in this process."""
    return reproduce(
        ReproductionOptions(quick=True, seeds=1, processes=1), lambda done, total, what: None
    )


def _accuracy(found: Reproduction, **wanted: Any) -> float:
    rows = [
        row for row in found.results if all(row[name] == value for name, value in wanted.items())
    ]
    assert len(rows) == 1, wanted
    return float(rows[0]["accuracy"])


def _regret(found: Reproduction, **wanted: Any) -> float:
    return next(
        float(row["regret_mean"])
        for row in found.results
        if all(row[name] == value for name, value in wanted.items())
    )


def test_rows_have_the_promised_fields(found: Reproduction) -> None:
    for row in found.results:
        assert list(row) == [
            *("reading", "epsilon", "topology", "nodes", "lambda", "sparsity"),
            *("regret_mean", "regret_std", "accuracy"),
        ]
    assert {row["reading"] for row in found.results} == {"served", "published", "non-private"}
    assert {row["topology"] for row in found.results} == set(TOPOLOGIES)
    assert [figure.name for figure in found.figures] == [f"figure-{n}" for n in (2, 3, 4, 5)]
    assert found.published["figure_4"]["best_sparsity_over_none"] == 0.18


def test_figure_2_less_privacy_less_regret(found: Reproduction) -> None:
    base = {"topology": "ring", "nodes": 8, "lambda": 2.0, "reading": "served"}
    regrets = [_regret(found, epsilon=epsilon, **base) for epsilon in (0.1, 1.0, 10.0)]
    exact = {"reading": "non-private", "topology": "ring", "nodes": 8, "lambda": 0.0}
    assert regrets[0] > regrets[1] > regrets[2] > _regret(found, reading="served", epsilon=None)
    # The model that predicts the last quarter was released after 64% of the records.
    served = _accuracy(found, epsilon=1.0, **base)
    assert served > 0.85 * _accuracy(found, **exact)
    served_exact = _accuracy(found, reading="served", epsilon=None)
    assert served < served_exact
    assert served_exact > 0.9 * _accuracy(found, **exact)
    # In every figure: no topology, sparsity or number of nodes helps against so much noise.
    drowned = [
        row["accuracy"]
        for row in found.results
        if row["reading"] == "published" and row["epsilon"] == 1.0
    ]
    assert len(drowned) == 8
    assert max(drowned) < 0.55


def test_the_published_algorithm_learns_where_nothing_is_promised(found: Reproduction) -> None:
    base = {"reading": "published", "topology": "ring", "nodes": 8, "lambda": 0.0}
    assert _accuracy(found, epsilon=10.0, **base) < 0.55 < _accuracy(found, epsilon=100.0, **base)
    assert _accuracy(found, epsilon=10_000.0, **base) > 0.75
    verdicts = [claim.verdict for claim in found.claims]
    assert len(verdicts) == 10
    assert "not testable" not in verdicts


def test_figure_3_topologies_hardly_matter(found: Reproduction) -> None:
    base = {"reading": "served", "epsilon": 1.0, "nodes": 8, "lambda": 2.0}
    accuracies = [_accuracy(found, topology=topology, **base) for topology in TOPOLOGIES]
    assert max(accuracies) - min(accuracies) < 0.02


def test_figure_4_the_right_sparsity_is_worth_a_tenth(found: Reproduction) -> None:
    base = {"reading": "served", "epsilon": 1.0, "nodes": 8, "topology": "ring"}
    accuracies = {x: _accuracy(found, **{"lambda": x}, **base) for x in (0.0, 1.0, 2.0, 4.0, 6.0)}
    assert accuracies[2.0] > 1.1 * accuracies[0.0]
    assert accuracies[2.0] > accuracies[1.0] > accuracies[0.0]
    assert accuracies[2.0] > accuracies[4.0] > accuracies[6.0]


def test_figure_5_more_nodes_cost_a_little(found: Reproduction) -> None:
    base = {"reading": "served", "epsilon": 1.0, "lambda": 2.0, "topology": "ring"}
    accuracies = [_accuracy(found, nodes=nodes, **base) for nodes in (4, 8, 12, 16)]
    assert accuracies[0] > accuracies[1] > max(accuracies[2:])
    assert accuracies[0] - accuracies[1] < 0.08
