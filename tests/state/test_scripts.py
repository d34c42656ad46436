"""Every Lua script is loaded, says what it touches, and is known to the package by name."""

import hashlib
from importlib import resources

import pytest

from discreet.state import scripts

SOURCES = sorted(
    path.name.removesuffix(".lua")
    for path in resources.files("discreet.state").joinpath("lua").iterdir()
    if path.name.endswith(".lua")
)


def test_every_script_is_loaded() -> None:
    assert sorted(script.name for script in scripts.ALL) == SOURCES


@pytest.mark.parametrize("script", scripts.ALL, ids=lambda script: script.name)
def test_every_script_says_what_it_touches_and_returns(script: scripts.Script) -> None:
    header = script.source.decode().split("\n\n")[0]
    assert all(line.startswith("--") for line in header.split("\n"))
    assert "KEYS[1] = " in header
    assert "returns " in header
    body = script.source.decode()[len(header) :]
    for number in range(1, 5):
        for kind in ("KEYS", "ARGV"):
            if f"{kind}[{number}]" in body:
                assert f"{kind}[{number}] = " in header


def test_a_call_names_the_script_by_its_digest() -> None:
    script = scripts.SPEND
    digest = hashlib.sha1(script.source).hexdigest().encode()
    call = script.call((b"k1", b"k2"), b"a", 7)
    words = [b"EVALSHA", digest, b"2", b"k1", b"k2", b"a", b"7"]
    assert call == b"*7\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
