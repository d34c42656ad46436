"""Options that several commands share."""

import argparse
from pathlib import Path

import pytest

from discreet.commands.options import add_store_options, settings_of, with_store
from discreet.settings import Settings
from discreet.state.embedded import EmbeddedStore


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_store_options(parser)
    return parser.parse_args(arguments)


def test_an_option_wins_and_one_that_is_not_given_hides_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DISCREET_STORE", "redis://from-the-environment")
    monkeypatch.setenv("DISCREET_NAMESPACE", "from-the-environment")
    settings = settings_of(parsed("--namespace", "given"), {"wait_store_seconds": 5})
    assert settings.store == "redis://from-the-environment"
    assert settings.namespace == "given"
    assert settings.wait_store_seconds == 5


def test_a_store_by_url_is_used_as_it_is() -> None:
    settings = Settings(store="redis://somewhere")
    with with_store(settings) as found:
        assert found == settings


def test_the_embedded_store_is_the_servers_own_or_one_for_a_moment(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    with with_store(settings) as alone:
        assert alone.store is not None
    with EmbeddedStore(tmp_path) as url:
        with with_store(settings) as joined:
            assert joined.store == url
        with with_store(settings) as again:
            assert again.store == url, "it was left running"
