"""`discreet voters`: numbers that agree with what is served, and a table for people."""

import json
from typing import Any

import pytest

from discreet.cli import main
from discreet.families.p_rec.run_parameters import VotingParameters, parameters_for

SMALL = ["voters", "--objects", "10", "--rounds", "1000", "--voters", "100000"]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*SMALL, *arguments, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_peers_for_an_epsilon_and_back(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "--epsilon", "1")
    assert 0.99 < found["epsilon"] <= 1
    again = printed(capsys, "--peers", str(found["peers"]))
    assert again == found


def test_the_numbers_are_those_that_are_served(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "--peers", "5000")
    run = parameters_for(
        voting=VotingParameters(objects=10, rounds=1000), peers=5000, voters=100_000, delta=1e-9
    )
    assert found["epsilon"] == run.event.epsilon
    assert found["rho"] == run.event.rho
    assert found["loss_bound"] == run.loss_bound
    # The sum of rhos pays for more runs than the sum of epsilons.
    assert found["budget"]["runs"] > 5 * int(10 / run.event.epsilon)


def test_every_object_that_is_shown_costs(capsys: pytest.CaptureFixture[str]) -> None:
    one, three, ten, nine = (
        printed(capsys, "--peers", "5000", "--shown", str(shown))["epsilon"]
        for shown in (1, 3, 10, 9)
    )
    assert 1.7 * one < three < 3 * one
    assert nine == ten  # the last that is left is not drawn
    refused = main([*SMALL, "--peers", "5000", "--shown", "11"])
    assert refused == 2
    assert "most_shown" in capsys.readouterr().err


def test_a_few_dear_runs_are_paid_for_by_their_epsilons(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "--peers", "600", "--budget", "9", "1e-6")
    assert found["budget"]["runs"] == int(9 / found["epsilon"]) == 1


def test_a_budget_without_delta_pays_for_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "--peers", "5000", "--budget", "10", "0")
    assert found["budget"]["runs"] == 0


def test_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--epsilon", "1"]) == 0
    shown = capsys.readouterr().out
    for words in ("like-minded voters", "epsilon of a run", "disliked", "runs"):
        assert words in shown
    assert "no better than random" not in shown
    assert main([*SMALL, "--peers", "90000", "--radius", "30"]) == 0
    assert "no better than random" in capsys.readouterr().out


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
