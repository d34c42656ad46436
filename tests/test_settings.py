"""Settings come from the file, then the environment, then the command line."""

import base64
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from discreet.errors import InvalidArgument
from discreet.settings import Settings, default_workers, settings_from


def made(
    file: dict[str, object] | None = None,
    environment: dict[str, str] | None = None,
    flags: dict[str, object] | None = None,
) -> Settings:
    return settings_from(file=file or {}, environment=environment or {}, flags=flags or {})


def test_later_sources_win() -> None:
    file = {"port": 1, "host": "::1", "workers": 3}
    environment = {"DISCREET_PORT": "2", "DISCREET_HOST": "localhost"}
    settings = made(file, environment, {"port": 3})
    assert (settings.port, settings.host, settings.workers) == (3, "localhost", 3)


def test_an_empty_variable_says_nothing() -> None:
    assert made(environment={"DISCREET_PORT": "", "DISCREET_API_KEY": ""}) == Settings()


def test_other_variables_are_not_ours() -> None:
    assert made(environment={"DISCREET_SOMETHING": "x", "PORT": "9"}) == Settings()


def test_the_short_way_can_be_switched_off_for_comparison() -> None:
    assert made().http == "direct"
    assert made(environment={"DISCREET_HTTP": "uvicorn"}).http == "uvicorn"
    with pytest.raises(InvalidArgument, match="DISCREET_HTTP"):
        made(environment={"DISCREET_HTTP": "hypercorn"})


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 3  # type: ignore[misc]


def test_there_are_at_least_two_workers_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, workers in ((None, 2), (1, 2), (2, 2), (3, 3), (64, 4)):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        assert default_workers() == workers


def test_secrets_can_be_read_from_files(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("a-secret-key-long-enough\n")
    settings = made(environment={"DISCREET_API_KEY_FILE": str(file)})
    assert settings.api_keys == {"a-secret-key-long-enough": frozenset({"serve", "admin"})}


def test_a_secret_is_given_once(tmp_path: Path) -> None:
    both = {"DISCREET_API_KEY": "x", "DISCREET_API_KEY_FILE": str(tmp_path / "key")}
    with pytest.raises(InvalidArgument, match="DISCREET_API_KEY_FILE"):
        made(environment=both)


def test_a_secret_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument) as caught:
        made(environment={"DISCREET_TOKEN_KEYS_FILE": str(tmp_path / "none")})
    assert caught.value.argument == "DISCREET_TOKEN_KEYS_FILE"


def test_token_keys_are_base64_of_either_alphabet() -> None:
    first, second = b"\xfb" * 32, b"\xff" * 32
    text = f"{base64.b64encode(first).decode()} , {base64.urlsafe_b64encode(second).decode()}"
    assert made(environment={"DISCREET_TOKEN_KEYS": text}).token_keys == (first, second)


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ({"flags": {"port": 70_000}}, "--port"),
        ({"flags": {"data_dir": 3}}, "--data"),
        ({"flags": {"wait_store_seconds": -1}}, "--wait-store"),
        ({"environment": {"DISCREET_PORT": "many"}}, "DISCREET_PORT"),
        ({"environment": {"DISCREET_WORKERS": "0"}}, "DISCREET_WORKERS"),
        ({"environment": {"DISCREET_TOKEN_KEYS": "canary"}}, "DISCREET_TOKEN_KEYS"),
        ({"environment": {"DISCREET_TOKEN_KEYS": "Y2FuYXJ5"}}, "DISCREET_TOKEN_KEYS"),
        ({"environment": {"DISCREET_API_KEY": "canary key"}}, "DISCREET_API_KEY"),
        ({"environment": {"DISCREET_LOG_LEVEL": "loud"}}, "DISCREET_LOG_LEVEL"),
        ({"file": {"prot": 3}}, "server.prot"),
        ({"file": {"most_body_bytes": 1}}, "server.most_body_bytes"),
    ],
)
def test_a_wrong_setting_is_named_where_it_was_given(
    source: dict[str, dict[str, object]], named: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        made(**source)  # type: ignore[arg-type]
    assert caught.value.argument == named
    assert "canary" not in str(caught.value)


def test_secrets_are_not_shown() -> None:
    settings = Settings(
        api_key="canary-key-long-enough",
        token_keys=(b"canary" + bytes(26),),
        store="redis://:canary@x",
    )
    assert "canary" not in repr(settings)
    assert "canary" not in str(settings)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.3.2.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.0.3", False),
        ("example.org", False),
    ],
)
def test_what_others_can_reach_is_known(host: str, loopback: bool) -> None:
    assert Settings(host=host).loopback is loopback


def test_keys_for_vendors_are_named_and_may_come_from_a_file(tmp_path: Path) -> None:
    given = settings_from(
        file={}, environment={"DISCREET_PEER_KEYS": " b=dk_1, c-2=x=y ,"}, flags={}
    )
    assert given.peer_keys == {"b": "dk_1", "c-2": "x=y"}
    assert "dk_1" not in repr(given)
    file = tmp_path / "keys"
    file.write_text("b=dk_1\nc=dk_2\n")
    given = settings_from(file={}, environment={"DISCREET_PEER_KEYS_FILE": str(file)}, flags={})
    assert given.peer_keys == {"b": "dk_1", "c": "dk_2"}


@pytest.mark.parametrize("value", ["dk_1", "=dk_1", "b=", "b c=dk_1", "b=dk 1", "b=1,b=2", "b=ä"])
def test_keys_for_vendors_that_cannot_be_used_are_refused_unshown(value: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        settings_from(file={}, environment={"DISCREET_PEER_KEYS": value}, flags={})
    assert caught.value.argument == "DISCREET_PEER_KEYS"
    assert "dk" not in caught.value.reason


def test_keys_have_a_least_length_and_metrics_a_key_of_its_own() -> None:
    with pytest.raises(InvalidArgument, match="at least 16 characters") as caught:
        made(environment={"DISCREET_API_KEY": "fifteen-letters"})
    assert caught.value.argument == "DISCREET_API_KEY"
    assert "fifteen" not in str(caught.value)
    keys = {"DISCREET_API_KEY": "a" * 16, "DISCREET_METRICS_KEY": "m" * 16}
    assert made(environment=keys).api_keys == {
        "a" * 16: frozenset({"serve", "admin"}),
        "m" * 16: frozenset({"metrics"}),
    }


def test_addresses_of_peers() -> None:
    text = "b=https://b.example, c=http://c:8002,b=https://b2.example"
    given = made(environment={"DISCREET_PEER_ADDRESSES": text})
    assert given.peer_addresses == {
        "b": ("https://b.example", "https://b2.example"),
        "c": ("http://c:8002",),
    }
    for wrong in ("b", "b=", "b=b.example", "b=ftp://x", "no name=http://x"):
        with pytest.raises(InvalidArgument, match="NAME=URL"):
            made(environment={"DISCREET_PEER_ADDRESSES": wrong})
