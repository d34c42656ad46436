"""`discreet simulate --traffic` as people type it."""

import json
import re
import signal
import subprocess
from contextlib import chdir
from pathlib import Path

import pytest

from tests.demo_server import DISCREET, Demo, demo  # noqa: F401 - a fixture
from tests.end_to_end.servers import command
from tests.ports import free_port
from tests.waiting import PATIENCE, wait_for


def simulate(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    with chdir(cwd):
        return command("simulate", "--traffic", *arguments)


def key_file(demo: Demo) -> str:  # noqa: F811
    return str(demo.data / "demo-key")


def test_the_results_as_json(demo: Demo, tmp_path: Path) -> None:  # noqa: F811
    done = simulate(
        *("--url", demo.url, "--key-file", key_file(demo)),
        *("--seconds", "5", "--rate", "10", "--json"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["recommender"] == "films"
    assert 0 < report["overall"]["answers"] <= 50
    assert report["feedback"] == report["overall"]["answers"]
    assert 0 < report["overall"]["true_regret"] < 1
    assert report["errors"] == {}
    assert report["interrupted"] is False
    assert done.stderr == ""


def test_a_printed_summary(demo: Demo, tmp_path: Path) -> None:  # noqa: F811
    done = simulate(
        "--url", demo.url, "--key", demo.key, "--seconds", "5", "--rate", "8", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "mean reward" in done.stdout
    assert re.search(r"first \d+ s", done.stdout)
    assert "true regret" in done.stdout
    assert re.search(r"sent after .* s: (\d+) recommendations and \1 feedbacks", done.stdout)
    assert demo.key not in done.stdout + done.stderr


def test_the_key_may_come_from_the_environment(demo: Demo, tmp_path: Path) -> None:  # noqa: F811
    with chdir(tmp_path):
        done = command(
            *("simulate", "--traffic", "--url", demo.url, "--seconds", "0.2", "--json"),
            DISCREET_API_KEY=demo.key,
        )
    assert done.returncode == 0, done.stderr


def test_interrupted_traffic_is_still_reported(demo: Demo, tmp_path: Path) -> None:  # noqa: F811
    process = subprocess.Popen(
        [
            *(DISCREET, "simulate", "--traffic", "--url", demo.url, "--key", demo.key),
            *("--seconds", "600", "--rate", "50", "--json"),
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    before = demo.samples("films")["discreet_items_total", ""]
    wait_for("traffic", lambda: demo.samples("films")["discreet_items_total", ""] > before + 20)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    report = json.loads(out)
    assert report["interrupted"] is True
    assert report["feedback"] == report["overall"]["answers"] > 10


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--key", "k", "--url", "http://192.0.2.1"], "--allow-remote"),
        (["--key", "k", "--rate", "0"], "rate: must lie between"),
        (["--key", "k", "--url", "nowhere"], "url: must look like"),
        ([], "DISCREET_API_KEY"),
    ],
)
def test_bad_input_is_one_line_that_names_it(
    arguments: list[str], named: str, tmp_path: Path
) -> None:
    done = simulate(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert named in done.stderr


def test_no_server(tmp_path: Path) -> None:
    done = simulate("--key", "k", "--url", f"http://127.0.0.1:{free_port()}", cwd=tmp_path)
    assert done.returncode == 2
    assert "no server answers" in done.stderr
    assert "make run" in done.stderr


def test_what_to_simulate_must_be_said() -> None:
    done = subprocess.run([DISCREET, "simulate"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert "--traffic" in done.stderr
