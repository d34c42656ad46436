"""The command line: help that helps, and mistakes that are named."""

import re
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from discreet import __version__
from discreet.cli import COMMANDS, main
from discreet.decisions.tokens import KEY_BYTES
from discreet.settings import settings_from
from tests.end_to_end.servers import command, environment
from tests.waiting import PATIENCE


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).parent / "discreet"), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment(**variables),
    )


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main(["--version"])
    assert ending.value.code == 0
    assert capsys.readouterr().out == f"discreet {__version__}\n"


def test_nothing_asked_for_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    shown = capsys.readouterr().out
    for name, help_ in COMMANDS:
        assert name in shown
        assert help_ in " ".join(shown.split())  # long ones are wrapped
    assert "examples:" in shown


@pytest.mark.parametrize(("name", "help_"), COMMANDS)
def test_every_command_has_help_with_examples(
    name: str, help_: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ending:
        main([name, "--help"])
    assert ending.value.code == 0
    shown = capsys.readouterr().out
    assert f"discreet {name}" in shown
    assert f"{help_[1:]}." in " ".join(shown.split()), "HTTP stays HTTP"
    assert "examples:" in shown


def test_every_module_of_commands_is_a_command() -> None:
    folder = Path(import_module("discreet.commands").__file__ or "").parent
    shared = {"__init__", "options", "progress", "epsilon_curve", "item_files", "suite"}
    modules = {path.stem for path in folder.glob("*.py")} - shared
    assert modules == {name for name, _ in COMMANDS}


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main(["sevre"])
    assert ending.value.code == 2
    assert "sevre" in capsys.readouterr().err


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line that was said about a mistake."""
    said = capsys.readouterr().err
    assert said.startswith("discreet: ")
    assert said.count("\n") == 1
    return said


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--port", "70000"], "--port"),
        (["--workers", "0"], "--workers"),
        (["--namespace", "a b"], "--namespace"),
        (["--wait-store", "-1"], "--wait-store"),
    ],
)
def test_a_wrong_option_is_named(
    options: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *options]) == 2
    assert named in complaint(capsys)


def test_a_wrong_file_is_named_with_its_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "discreet.yaml"
    assert main(["serve", "--config", str(config)]) == 2
    assert "discreet.yaml" in complaint(capsys)
    config.write_text("recommenders: {films: {algorithm: p-dap, contxt: {dimensions: 2}}}")
    assert main(["serve", "--config", str(config)]) == 2
    assert "recommenders.films.context" in complaint(capsys)


def test_a_port_in_use_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = run("serve", "--port", str(port), "--data", str(tmp_path))
    assert answer.returncode == 2
    assert answer.stderr == f"discreet: --port: 127.0.0.1:{port} is in use; choose another\n"
    assert not (tmp_path / "valkey").exists()


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_an_address_that_is_not_ours_is_refused(tmp_path: Path, host: str) -> None:
    answer = run("serve", "--host", host, "--port", "0", "--data", str(tmp_path))
    assert answer.returncode == 2
    assert answer.stderr.startswith("discreet: --host: ")


def test_an_absent_store_is_an_error_at_once(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"redis://:canary@127.0.0.1:{unused.getsockname()[1]}"
        answer = run("serve", "--store", url, "--port", "0", "--data", str(tmp_path))
    assert answer.returncode == 2
    last = answer.stderr.splitlines()[-1]
    assert last.startswith("discreet: cannot reach the store")
    assert "--wait-store" in last
    assert "canary" not in answer.stderr


def test_a_store_that_cannot_be_named_is_refused(tmp_path: Path) -> None:
    answer = run("serve", "--store", "http://x", "--port", "0", "--data", str(tmp_path))
    assert answer.returncode == 2
    assert "redis://" in answer.stderr


def test_a_made_key_is_not_offered_to_the_world(tmp_path: Path) -> None:
    for demo in ([], ["--demo"]):
        answer = run("serve", "--host", "0.0.0.0", "--port", "0", "--data", str(tmp_path), *demo)
        assert answer.returncode == 2
        assert "DISCREET_API_KEY" in answer.stderr
        assert "dk_" not in answer.stdout


def test_a_token_key_fits_the_setting() -> None:
    first, second = (command("keys", "token").stdout for _ in range(2))
    assert first != second
    variables = {"DISCREET_TOKEN_KEYS": f"{first.strip()},{second.strip()}"}
    settings = settings_from(file={}, environment=variables, flags={})
    assert [len(key) for key in settings.token_keys] == [KEY_BYTES] * 2


def test_keys_can_be_made_before_the_first_start(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    made = command(
        "keys", "create", "--label", "shop", "--scope", "serve", "--scope", "metrics", *data
    )
    assert re.fullmatch(r"dk_[A-Za-z0-9_-]{43}\n", made.stdout)
    (line,) = command("keys", "list", *data).stdout.splitlines()
    key_id, scopes, _, label = line.split()
    assert (scopes, label) == ("metrics,serve", "shop")
    wrong = command("keys", "revoke", "000000000000", *data)
    assert wrong.returncode == 2
    assert "keys list" in wrong.stderr
    assert command("keys", "revoke", key_id, *data).returncode == 0
    assert command("keys", "list", *data).stdout == ""


def test_commands_are_configured_only_when_asked_for() -> None:
    """`discreet serve` must not import what only `discreet simulate` needs."""
    code = "import sys; from discreet.cli import _parser; _parser(['serve']);"
    code += "assert 'discreet.research.simulate.traffic' not in sys.modules;"
    code += "assert 'prometheus_client' not in sys.modules, 'it must see the shared folder first'"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)
