"""The reproduction of EpicRec: its rows, its example, and what it says was left out."""

import json
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument
from discreet.research.reproduce.epicrec import reproduce
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


def test_a_folder_without_the_data_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="ml-1m"):
        reproduce(ReproductionOptions(data=tmp_path), lambda done, total, what: None)
