"""Waiting ends with the first result, and in vain with a sentence."""

import tomllib

import pytest

from tests.house import ROOT
from tests.waiting import PATIENCE, wait_for


def test_the_first_result_ends_the_waiting() -> None:
    results = iter([0, None, "", 7, 8])
    assert wait_for("a number", lambda: next(results), pause=0) == 7


def test_what_never_happens_is_named() -> None:
    with pytest.raises(AssertionError, match="waited in vain: the impossible"):
        wait_for("the impossible", lambda: False, pause=0, patience=0)


def test_waiting_ends_before_the_test_does() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["tool"]["pytest"]["ini_options"]["timeout"] > 2 * PATIENCE
