"""`discreet audit`: its options reach the audit, its code is the audit's, help needs none of it."""

import subprocess
import sys
from typing import Any

import pytest

from discreet.audit import command
from discreet.cli import main


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Note what is asked of the audit, and answer 1 if it is to be quick, else 0."""
    calls: list[dict[str, Any]] = []

    def run_audit(**options: Any) -> int:
        calls.append(options)
        return int(options["quick"])

    monkeypatch.setattr(command, "run_audit", run_audit)
    return calls


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], {"quick": False, "as_json": False, "only": None}),
        (["--quick"], {"quick": True, "as_json": False, "only": None}),
        (["--json"], {"quick": False, "as_json": True, "only": None}),
        (
            ["--quick", "--only", "closed loop"],
            {"quick": True, "as_json": False, "only": "closed loop"},
        ),
    ],
)
def test_options_reach_the_audit_and_its_code_comes_back(
    arguments: list[str], options: dict[str, Any], asked: list[dict[str, Any]]
) -> None:
    assert main(["audit", *arguments]) == int(options["quick"])
    assert asked == [options]


def test_an_option_that_is_not_there_is_refused(
    asked: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ending:
        main(["audit", "--fast"])
    assert ending.value.code == 2
    assert "--fast" in capsys.readouterr().err
    assert asked == []


def test_help_loads_no_part_of_the_audit() -> None:
    program = (
        "import sys\n"
        "from discreet.cli import main\n"
        "try:\n"
        "    main(['audit', '--help'])\n"
        "except SystemExit as ending:\n"
        "    assert ending.code == 0\n"
        "assert not [name for name in sys.modules if name.startswith('discreet.audit')]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert "every planted fault was caught" in " ".join(done.stdout.split())


def test_one_real_claim_is_examined(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--quick", "--only", "draw by integer weights"]) == 0
    assert "1 of 1 claims hold" in capsys.readouterr().out
