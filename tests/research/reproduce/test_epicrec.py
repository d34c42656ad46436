"""The reproduction of EpicRec: its rows, its example, and what it says was left out."""

import json
from pathlib import Path

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.reproduce.epicrec import reproduce
from discreet.research.reproduce.epicrec_tables import losses, row
from discreet.research.reproduce.epicrec_trials import FIELDS, METHODS, Fold, FoldTotals, load
from discreet.research.reproduce.papers import PAPERS, ReproductionOptions
from discreet.research.reproduce.tables import Reproduction

ROW = {
    "dataset",
    "system",
    "method",
    "epsilon",
    "aggregate_mae",
    "mae_loss",
    "ndcg10",
    "seconds",
}


@pytest.fixture(scope="module")
def found() -> Reproduction:
    seen: list[tuple[int, int]] = []

    def watch(done: int, total: int, what: str) -> None:
        seen.append((done, total))

    options = ReproductionOptions(quick=True, rounds=3, processes=1)
    result = reproduce(options, watch)
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    return result


def test_the_example_is_the_papers_to_two_decimals(found: Reproduction) -> None:
    summary = json.loads(json.dumps(found.summary()))
    assert [round(each, 2) for each in summary["example"]] == [3.61, 2.36, 3.34, 2.36, 1.38]
    assert summary["published"]["example"] == [3.61, 2.36, 3.34, 2.36, 1.38]
    assert round(found.details["example_mean"], 2) == 2.61


def test_every_system_method_and_epsilon_has_one_row(found: Reproduction) -> None:
    keys = [(one["system"], one["method"], one["epsilon"]) for one in found.results]
    assert len(keys) == len(set(keys))
    assert {key[:2] for key in keys} == {
        (system, method) for system in ("single", "category") for method in ("ours", "lpa", "gs")
    }
    for one in found.results:
        assert set(one) == ROW
        assert one["dataset"] == "synthetic"
        assert one["aggregate_mae"] > 0
        assert 0 <= one["ndcg10"] <= 1
        assert one["seconds"] > 0


def test_more_epsilon_means_less_error(found: Reproduction) -> None:
    by_key = {(one["system"], one["method"], one["epsilon"]): one for one in found.results}
    for system in ("single", "category"):
        for method in ("ours", "lpa"):
            assert (
                by_key[system, method, 1.0]["aggregate_mae"]
                < by_key[system, method, 0.2]["aggregate_mae"]
            )


def test_what_was_left_out_is_said(found: Reproduction) -> None:
    notes = " ".join(found.notes)
    assert "left out" in notes
    assert "movielens, yelp" in notes
    assert "synthetic crowd" in notes
    assert "quick" in notes


def test_the_quantified_epsilon_is_among_the_rows(found: Reproduction) -> None:
    public = found.details["public"]["synthetic"]
    for system in ("single", "category"):
        quantified = public["quantified_epsilon"][system]["mean"]
        assert quantified in {one["epsilon"] for one in found.results if one["system"] == system}
    assert public["expected_error_below_laplace"] > 0


def test_references_and_figures_are_there(found: Reproduction) -> None:
    references = found.details["references"]["synthetic"]
    assert references["raw"]["mae_loss"] == 0.0
    assert set(references) == {"raw", "nothing"}
    assert [figure.name for figure in found.figures] == ["figure-5", "figure-6", "figure-7"]
    assert PAPERS["epicrec"][0] == "discreet.research.reproduce.epicrec"


def test_a_folder_without_the_data_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="ml-1m"):
        reproduce(ReproductionOptions(data=tmp_path), lambda done, total, what: None)


def test_a_data_set_needs_its_folder() -> None:
    with pytest.raises(InvalidArgument, match="folder"):
        load("movielens", None)


def test_a_fold_is_the_same_again_apart_from_its_time() -> None:
    fold = Fold("synthetic", None, 3, 2, 2, {"single": (0.5,), "category": (0.5,)})
    one, two = fold.run(), fold.run()
    timed = FIELDS.index("seconds")
    assert one.by_method.keys() == two.by_method.keys()
    for key, table in one.by_method.items():
        assert np.array_equal(
            np.delete(table, timed, axis=1), np.delete(two.by_method[key], timed, axis=1)
        )
        assert not np.array_equal(table[0], table[1])  # seeds differ
    assert {key[1] for key in one.by_method if key[0] == "single"} == set(METHODS)


def test_a_row_is_made_of_sums() -> None:
    sums = FoldTotals(Fold("synthetic", None, 0, 2, 1, {}))
    sums.add(("raw", "raw", 0.0), 0, people=2, ratings=4, error=2.0, ndcg=1.0)
    key = ("single", "ours", 0.5)
    sums.add(key, 0, people=2, ratings=4, error=3.0, ndcg=0.5, aggregate=7.0, seconds=0.2)
    assert losses(sums.by_method, key).tolist() == [0.5]
    assert row("d", sums.by_method, key) == {
        "dataset": "d",
        "system": "single",
        "method": "ours",
        "epsilon": 0.5,
        "aggregate_mae": 3.5,
        "mae_loss": 0.5,
        "ndcg10": 0.25,
        "seconds": 0.1,
    }
