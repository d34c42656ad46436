"""The reproduction of EpicRec: its claims, its rows, its example, and what it says was left out."""

import json
from pathlib import Path

import pytest

from discreet.errors import InvalidArgument
from discreet.research.reproduce.epicrec import reproduce
from discreet.research.reproduce.epicrec_trials import COUNTED_ONLY, METHODS
from discreet.research.reproduce.papers import PAPERS, ReproductionOptions
from discreet.research.reproduce.tables import Reproduction


@pytest.fixture(scope="module")
def found() -> Reproduction:
    seen: list[tuple[int, int]] = []

    def watch(done: int, total: int, what: str) -> None:
        seen.append((done, total))

    options = ReproductionOptions(quick=True, rounds=20, processes=1)
    result = reproduce(options, watch)
    assert seen[-1][0] == seen[-1][1]
    return result


def test_the_example_is_the_papers_to_two_decimals(found: Reproduction) -> None:
    summary = json.loads(json.dumps(found.summary()))
    assert [round(each, 2) for each in summary["example"]] == [3.61, 2.36, 3.34, 2.36, 1.38]
    assert summary["published"]["example"] == [3.61, 2.36, 3.34, 2.36, 1.38]
    assert round(found.details["example_mean"], 2) == 2.61


def test_a_small_run_has_the_same_claims_and_says_that_it_is_small(found: Reproduction) -> None:
    summary = found.summary()
    assert summary["quick"]
    assert "small run" in found.claims_table().title
    where = " ".join(claim["where"] for claim in summary["claims"])
    for number in ("2", "3", "4", "5"):
        assert f"theorem {number}" in where
    for figure in ("4", "5a", "5b", "6a", "6b", "7"):
        assert f"figure {figure}" in where


def test_the_leak_is_found(found: Reproduction) -> None:
    (leak,) = [claim for claim in found.claims if claim.where == "theorem 4"]
    assert leak.verdict == "fails"
    assert "in 40 of 40 runs" in leak.ours
    assert leak.ours.endswith("and in 0 without it")


def test_every_system_method_and_epsilon_has_one_row(found: Reproduction) -> None:
    keys = [(one["system"], one["method"], one["epsilon"]) for one in found.results]
    assert len(keys) == len(set(keys))
    assert {key[:2] for key in keys} == {
        (system, method) for system in ("single", "category") for method in METHODS
    }
    for one in found.results:
        assert one["dataset"] == "synthetic"
        assert one["aggregate_mae"] > 0
        assert one["seconds"] > 0
        assert ("mae_loss" in one) == (one["method"] not in COUNTED_ONLY)


def test_more_epsilon_means_less_error(found: Reproduction) -> None:
    by_key = {(one["system"], one["method"], one["epsilon"]): one for one in found.results}
    for system in ("single", "category"):
        for method, error in (
            ("published", "aggregate_mae"),
            ("lpa", "aggregate_mae"),
            ("served", "countable_mae"),
        ):
            errors = [by_key[system, method, each][error] for each in (0.05, 0.2, 1.0)]
            assert errors == sorted(errors, reverse=True)


def test_what_was_left_out_is_said(found: Reproduction) -> None:
    notes = " ".join(found.notes)
    assert "left out" in notes
    assert "movielens, yelp" in notes
    assert "synthetic crowd" in notes
    assert "quick: 20 people" in notes


def test_public_facts_and_references_are_in_the_details(found: Reproduction) -> None:
    public = found.details["public"]["synthetic"]
    assert public["quantified_epsilon"]["line_7"]["mean"] < 0.1
    assert public["expected_error_below_laplace"] > 0
    references = found.details["references"]["synthetic"]
    assert references["raw"]["mae_loss"] == 0.0
    assert set(references) == {"raw", "nothing"}
    assert PAPERS["epicrec"][0] == "discreet.research.reproduce.epicrec"


def test_a_folder_without_the_data_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="ml-1m"):
        reproduce(ReproductionOptions(data=tmp_path), lambda done, total, what: None)
