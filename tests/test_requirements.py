"""A test that cannot run is left out aloud on a laptop and fails in CI; a data set only speaks."""

from pathlib import Path

import pytest

from tests import requirements

pytest_plugins = ["pytester"]

PLANTED = """
import pytest

@pytest.mark.needs("chromium")
def test_by_marker():
    pass

def test_by_fixture(chromium):
    pass

def test_with_data(data_set):
    data_set("ml-100k")

def test_needs_nothing():
    pass
"""


def _run(pytester: pytest.Pytester, planted: str = PLANTED) -> pytest.RunResult:
    pytester.makepyfile(planted)
    pytester.makeini("[pytest]\nmarkers =\n    needs(name): beyond PyPI\n")
    return pytester.runpytest_inprocess("-p", "tests.requirements", "-p", "no:cacheprovider")


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A laptop without a browser and without data sets."""
    monkeypatch.setenv("CHROMIUM", "a-browser-that-nobody-has")
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    monkeypatch.delenv("CI", raising=False)
    return monkeypatch


@pytest.mark.usefixtures("without")
def test_a_laptop_is_told_what_was_left_out(pytester: pytest.Pytester) -> None:
    result = _run(pytester)
    result.assert_outcomes(passed=1, skipped=3)
    result.stdout.fnmatch_lines(
        [
            "LEFT OUT: chromium is missing; install*(2 tests)",
            "LEFT OUT: data set ml-100k is missing; set DISCREET_DATA (1 test)",
        ]
    )


def test_ci_fails_without_a_browser_but_not_without_data(
    pytester: pytest.Pytester, without: pytest.MonkeyPatch
) -> None:
    without.setenv("CI", "true")
    result = _run(pytester)
    result.assert_outcomes(passed=1, errors=2, skipped=1)
    result.stdout.fnmatch_lines(["LEFT OUT: data set ml-100k*"])


def test_what_is_there_is_used(
    pytester: pytest.Pytester, without: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    browser = tmp_path / "browser"
    browser.write_text("#!/bin/sh\necho Chromium 1.0\n")
    browser.chmod(0o755)
    (tmp_path / "ml-100k").mkdir()
    without.setenv("CHROMIUM", str(browser))
    without.setenv("DISCREET_DATA", str(tmp_path))
    assert requirements.find_chromium() == browser
    result = _run(pytester)
    result.assert_outcomes(passed=4)
    result.stdout.no_fnmatch_line("*LEFT OUT*")


def test_a_browser_that_does_not_start_is_no_browser(
    without: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stub = tmp_path / "chromium-browser"
    stub.write_text("#!/bin/sh\necho 'requires the chromium snap' >&2\nexit 1\n")
    stub.chmod(0o755)
    without.setenv("CHROMIUM", str(stub))
    assert requirements.find_chromium() is None


@pytest.mark.usefixtures("without")
def test_a_skip_that_went_another_way_is_said_as_well(pytester: pytest.Pytester) -> None:
    result = _run(pytester, "import pytest\ndef test_x():\n    pytest." + "skip('too tired')\n")
    result.stdout.fnmatch_lines(["LEFT OUT: too tired (1 test)"])


def test_an_unknown_need_is_an_error(pytester: pytest.Pytester) -> None:
    planted = 'import pytest\n@pytest.mark.needs("a unicorn")\ndef test_x(): pass\n'
    result = _run(pytester, planted)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*known are *chromium*"])
