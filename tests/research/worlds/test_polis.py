"""Polis conversations: one participant plays the client, the others vote."""

from pathlib import Path

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.research.worlds.polis import PolisElectorate, conversations
from tests.research.worlds.polis_files import write_conversation


@pytest.mark.parametrize("packed", [True, False])
def test_a_participant_plays_the_client(tmp_path: Path, packed: bool) -> None:
    write_conversation(tmp_path / "polis" / "talk", people=40, statements=20, packed=packed)
    [talk] = conversations(tmp_path)
    assert talk.votes.shape == (40, 20)
    electorate = PolisElectorate(talk, 0)
    assert electorate.voters == 39
    asked = electorate.next_round(np.ones(39, dtype=np.bool_))
    assert asked.liked == {0}  # the first participant is in the camp that agrees
    spoken = electorate.with_random_votes(1)
    assert (spoken.next_round(np.ones(39, dtype=np.bool_)).ballots > 0).all()
    distances = electorate.distances()
    assert distances[1::2].max() == 0  # the same camp
    assert distances[0::2].min() > 5


def test_a_folder_without_conversations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        conversations(tmp_path)
    assert refusal.value.argument == "data"
    (tmp_path / "talk").mkdir()
    (tmp_path / "talk" / "participants-votes.csv").write_text("who,what\n1,2\n")
    with pytest.raises(InvalidArgument):
        conversations(tmp_path)
