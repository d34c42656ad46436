"""Every Lua script is loaded, says what it touches, and is known to the package by name."""

import hashlib
import re
from importlib import resources

import pytest

from discreet.state import scripts

FOLDER = resources.files("discreet.state") / "lua"
SOURCES = sorted(
    path.name.removesuffix(".lua") for path in FOLDER.iterdir() if path.name.endswith(".lua")
)
FUNCTIONS = ["directory", "fenced_begin", "fenced_end", "known", "ledger"]
"""Files that are put before the scripts that use them, or around them."""


def test_every_script_is_loaded() -> None:
    assert sorted([*(script.name for script in scripts.ALL), *FUNCTIONS]) == SOURCES
    assert len({script.digest for script in scripts.ALL}) == len(scripts.ALL)


@pytest.mark.parametrize("name", [name for name in SOURCES if name not in FUNCTIONS])
def test_every_script_says_what_it_touches_and_returns(name: str) -> None:
    source = (FOLDER / f"{name}.lua").read_text()
    header, _, body = source.partition("\n\n")
    assert all(line.startswith("--") for line in header.split("\n"))
    assert "KEYS[1] = " in header or name == "beat"
    assert "returns " in header
    for word in re.findall(r"(?:KEYS|ARGV)\[\d\]", body):
        assert f"{word} = " in header, f"{word} is not explained"


def test_functions_come_before_the_script_that_uses_them() -> None:
    names = ("ledger", "fenced_begin", "spend", "fenced_end")
    parts = [(FOLDER / f"{name}.lua").read_bytes() for name in names]
    assert b"\n".join(parts) == scripts.SPEND.source


def test_a_call_names_the_script_by_its_digest() -> None:
    digest = hashlib.sha1(scripts.SPEND.source).hexdigest().encode()
    call = scripts.SPEND.call((b"k1", b"k2"), b"a", 7)
    assert call == (b"EVALSHA", digest, 2, b"k1", b"k2", b"a", 7)
