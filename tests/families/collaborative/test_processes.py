"""Training in a process of its own: what it gives, how it fails, how it ends."""

import os
import threading
from typing import Any

import numpy as np
import pytest

from discreet.families.collaborative import processes
from discreet.families.collaborative.processes import TrainingProcess, environment
from discreet.families.collaborative.training import fit
from tests.families.collaborative.test_training import packed, random_profiles
from tests.waiting import PATIENCE, join


def given(neighbours: int = 4) -> dict[str, Any]:
    starts, slots = packed(random_profiles(7, 20, 30))
    return {"starts": starts, "slots": slots, "live": np.arange(20), "neighbours": neighbours}


def test_the_process_gives_what_the_function_gives() -> None:
    found = TrainingProcess().train(**given())
    assert found is not None
    everything = np.arange(20)
    np.testing.assert_allclose(
        found.scores([everything], size=20), fit(**given()).scores([everything], size=20), rtol=1e-5
    )


def test_a_process_that_fails_is_said_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(processes, "_PROGRAM", "discreet.no_such_program")
    assert TrainingProcess().train(**given()) is None
    assert "no_such_program" in caplog.text


def test_what_cannot_be_read_is_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(processes, "_PROGRAM", "this")  # prints a poem
    assert TrainingProcess().train(**given()) is None
    assert "cannot be used" in caplog.text


def test_stopping_ends_the_process_and_every_later_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    began = threading.Event()
    begin = processes.subprocess.Popen

    def endless(command: list[str], **options: Any) -> Any:
        # It reads its input, and then waits for ever.
        process = begin([*command[:2], "-c", "import signal; signal.pause()"], **options)
        began.set()
        return process

    monkeypatch.setattr(processes.subprocess, "Popen", endless)
    training = TrainingProcess()
    outcome: list[object] = []
    thread = threading.Thread(target=lambda: outcome.append(training.train(**given())), daemon=True)
    thread.start()
    assert began.wait(PATIENCE)
    training.stop()
    join(thread)
    assert outcome == [None]
    assert training.stopped
    began.clear()
    assert training.train(**given()) is None
    assert not began.is_set()
    assert caplog.text == "", "nobody has to look into it"


def test_the_process_gets_none_of_our_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCREET_API_KEY", "k")
    variables = environment()
    assert not [name for name in variables if name.startswith("DISCREET_")]
    assert variables["PATH"] == os.environ["PATH"]
