"""The reproduction of p-REC: losses that are exact, patterns that do what they say, rows, Polis."""

import gzip
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from discreet.audit.families.p_rec import worst_run
from discreet.cli import main
from discreet.errors import InvalidArgument
from discreet.families.p_rec.credits import Ballots
from discreet.families.p_rec.run_parameters import Voting
from discreet.research.reproduce.p_rec import QUICK, READINGS, case_of, reproduce
from discreet.research.reproduce.p_rec_trials import VoterTrial, log_chances, losses, worst_epsilon
from discreet.research.reproduce.papers import Options
from discreet.research.worlds.electorates import PATTERNS, MadeUp, Pattern
from discreet.research.worlds.polis import Participants, conversations

ROW = {
    *("reading", "n", "m", "T", "D", "R", "P"),
    *("loss_mean", "loss_bound", "epsilon_exact", "epsilon_bound"),
}


class TestLosses:
    @pytest.mark.parametrize("votes", [(30, 20, 10), (1, 0, 0), (12, 12, 12), (50, 9, 1)])
    def test_chances_are_those_of_the_served_draw(self, votes: tuple[int, ...]) -> None:
        voting = Voting(objects=3, rounds=100)
        ours = log_chances(voting, np.array([votes]))[0]
        weights = [int(weight) for weight in voting.rule(1).weights(np.array(votes))]
        for found, weight in zip(ours, weights, strict=True):
            assert found == pytest.approx(math.log(Fraction(weight, sum(weights))), abs=1e-9)

    def test_every_voter_is_compared_with_the_world_without_him(self) -> None:
        voting = Voting(objects=2, rounds=100)
        ballots: Ballots = np.array([1] * 9 + [2] * 5 + [0], dtype=np.uint8)
        counting = np.array([True] * 13 + [False, True])
        found = losses(voting, ballots, counting, 1)
        there = log_chances(voting, np.array([[9, 4]]))[0, 1]
        for voter, votes in ((0, [8, 4]), (9, [9, 3])):
            assert found[voter] == pytest.approx(
                there - log_chances(voting, np.array([votes]))[0, 1]
            )
        assert found[13] == found[14] == 0.0
        assert found[0] < 0 < found[9]

    @pytest.mark.parametrize(("least", "voters"), [(6, 20), (12, 30)])
    def test_the_worst_run_is_that_of_the_audit(self, least: int, voters: int) -> None:
        voting = Voting(objects=2, rounds=50)
        exact = worst_run(voting=voting, least=least, voters=voters)
        assert worst_epsilon(voting, least=least, voters=voters) == pytest.approx(
            math.log(exact), abs=1e-9
        )

    @pytest.mark.parametrize("pattern", PATTERNS)
    def test_no_run_tells_more_than_the_worst_one(self, pattern: Pattern) -> None:
        case = case_of("published", (60, 2, 100, 0, 0, 24))
        played = VoterTrial(case, pattern, 3).run()
        assert 0 < played.told <= worst_epsilon(case.voting, least=24, voters=60) + 1e-9


class TestElectorates:
    @pytest.mark.parametrize("pattern", PATTERNS)
    def test_peers_keep_within_radius_and_diversity(self, pattern: Pattern) -> None:
        voting = Voting(objects=4, rounds=60, radius=3, diversity=5)
        made = MadeUp(voting=voting, peers=30, voters=200, pattern=pattern, seed=1)
        distance, diverse = np.zeros(200, dtype=int), 0
        for _ in range(60):
            asked = made.next_round(np.ones(200, dtype=np.bool_))
            assert len(asked.ballots) == 200
            assert asked.ballots.min() >= 1
            distance += [ballot - 1 not in asked.liked for ballot in asked.ballots.tolist()]
            diverse += len(asked.liked) > 1
        assert distance[:30].max() == 3
        assert diverse == 5
        assert distance[30:].min() > 3

    def test_the_adaptive_pattern_moves_those_who_count(self) -> None:
        voting = Voting(objects=4, rounds=60)
        made = MadeUp(voting=voting, peers=30, voters=330, pattern="adaptive", seed=1)
        counting = np.zeros(330, dtype=np.bool_)
        counting[30:60] = True
        asked = made.next_round(counting)
        counts = np.bincount(asked.ballots[30:60], minlength=5)[1:]
        assert sorted(counts.tolist()) == [0, 10, 10, 10]
        assert counts[next(iter(asked.liked))] == 0


def watch(done: int, total: int, what: str) -> None:
    assert 0 <= done <= total
    assert what


class TestRows:
    def test_quick_rows_keep_both_bounds(self) -> None:
        # Seeds 0 and 1, so the outcome is always the same.
        found = reproduce(Options(quick=True, seeds=1, processes=1, rounds=60), watch)
        assert len(found.results) == 2 * len(QUICK)
        for row in found.results:
            assert set(row) == ROW
            assert row["reading"] in READINGS
            assert 0 <= row["loss_mean"] <= row["loss_bound"]
            assert 0 < row["epsilon_exact"] <= row["epsilon_bound"]

    def test_the_command_writes_rows_and_pictures(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("DISCREET_DATA", raising=False)
        arguments = ["reproduce", "p-rec", "--quick", "--seeds", "1", "--rounds", "40"]
        assert main([*arguments, "--processes", "1", "--json", "--out", str(tmp_path)]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["name"] == "p-rec"
        assert {row["reading"] for row in found["results"]} == set(READINGS)
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"p-rec.json", "loss-and-epsilon.png", "learning.png"}
        kept = json.loads((tmp_path / "p-rec.json").read_text())
        assert any(case["every_run"] for case in kept["cases"])
        assert set(kept["cases"][0]["loss_by_pattern"]) == set(PATTERNS)


def write_conversation(folder: Path, *, people: int, statements: int, packed: bool) -> None:
    rng = np.random.default_rng(5)
    camps = np.arange(people) % 2
    lines = ["participant,group-id,n-votes," + ",".join(map(str, range(statements)))]
    for person in range(people):
        stance = np.where(rng.random(statements) < 0.9, 1 - 2 * camps[person], 0)
        cells = ["" if rng.random() < 0.05 else str(vote) for vote in stance]
        lines.append(f"{person},{camps[person]},{statements}," + ",".join(cells))
    folder.mkdir(parents=True)
    text = ("\n".join(lines) + "\n").encode()
    name = "participants-votes.csv" + (".gz" if packed else "")
    (folder / name).write_bytes(gzip.compress(text) if packed else text)


class TestPolis:
    @pytest.mark.parametrize("packed", [True, False])
    def test_a_participant_plays_the_client(self, tmp_path: Path, packed: bool) -> None:
        write_conversation(tmp_path / "polis" / "talk", people=40, statements=20, packed=packed)
        [talk] = conversations(tmp_path)
        assert talk.votes.shape == (40, 20)
        electorate = Participants(talk, 0)
        assert electorate.voters == 39
        asked = electorate.next_round(np.ones(39, dtype=np.bool_))
        assert asked.liked == {0}  # the first participant is in the camp that agrees
        spoken = electorate.spoken(1)
        assert (spoken.next_round(np.ones(39, dtype=np.bool_)).ballots > 0).all()
        distances = electorate.distances()
        assert distances[1::2].max() == 0  # the same camp
        assert distances[0::2].min() > 5

    def test_conversations_make_rows_of_their_own(self, tmp_path: Path) -> None:
        write_conversation(tmp_path / "talk", people=320, statements=30, packed=True)
        write_conversation(tmp_path / "small", people=40, statements=30, packed=True)
        options = Options(quick=True, seeds=1, processes=1, rounds=20, data=tmp_path)
        found = reproduce(options, watch)
        talks = found.results[2 * len(QUICK) :]
        assert len(talks) == 10
        for row in talks:
            assert set(row) == ROW
            assert row["n"] > 200
            assert row["loss_mean"] <= row["loss_bound"]
            assert row["epsilon_exact"] <= row["epsilon_bound"]
        assert {name["conversation"] for name in found.details["polis"]} == {"talk"}

    def test_a_folder_without_conversations_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgument) as refusal:
            conversations(tmp_path)
        assert refusal.value.argument == "data"
        (tmp_path / "talk").mkdir()
        (tmp_path / "talk" / "participants-votes.csv").write_text("who,what\n1,2\n")
        with pytest.raises(InvalidArgument):
            conversations(tmp_path)
