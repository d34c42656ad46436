"""`discreet voters`: numbers that agree with what is served, and words for people."""

import json
from typing import Any

import pytest

from discreet.families.p_rec.run_parameters import Voting, terms_for
from discreet.cli import main

SMALL = ["voters", "--objects", "10", "--rounds", "1000", "--voters", "100000"]


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*SMALL, *arguments, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_peers_for_an_epsilon_and_back(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "--epsilon", "1")
    assert 0.99 < found["epsilon"] <= 1
    again = told(capsys, "--peers", str(found["peers"]))
    assert again == found


def test_the_numbers_are_those_of_the_served_terms(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "--peers", "5000")
    terms = terms_for(
        voting=Voting(objects=10, rounds=1000), peers=5000, voters=100_000, delta=1e-9
    )
    assert found["epsilon"] == terms.event.epsilon
    assert found["rho"] == terms.event.rho
    assert found["loss_bound"] == terms.loss_bound
    runs = int(10 / terms.event.epsilon)
    assert found["budget"]["runs_basic"] == runs
    assert found["budget"]["runs_zcdp"] > 5 * runs


def test_a_budget_without_delta_pays_for_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "--peers", "5000", "--budget", "10", "0")
    assert found["budget"]["runs_basic"] == found["budget"]["runs_zcdp"] == 0


def test_words_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--epsilon", "1"]) == 0
    shown = capsys.readouterr().out
    for words in ("like-minded voters", "epsilon of a run", "disliked", "runs"):
        assert words in shown
    assert "no more than chance" not in shown
    assert main([*SMALL, "--peers", "90000", "--radius", "30"]) == 0
    assert "no more than chance" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--peers", "59"], "peers: must be at least 60"),
        (["--epsilon", "0.001"], "epsilon: cannot be had"),
        (["--peers", "5000", "--radius", "200"], "horizon: must be at least"),
        (["--peers", "5000", "--run-delta", "1"], "run_delta: must be above 0"),
    ],
)
def test_mistakes_are_named(
    arguments: list[str], names: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SMALL, *arguments]) == 2
    assert names in capsys.readouterr().err
