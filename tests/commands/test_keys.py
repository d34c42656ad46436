"""`discreet keys`, over a store that is already running."""

import asyncio
import base64
from pathlib import Path

import pytest

from discreet.cli import main
from discreet.decisions.tokens import KEY_BYTES
from discreet.preparation import opened
from discreet.settings import Settings
from tests.decisions.conftest import document
from tests.state.servers import valkey


def test_keys_are_created_listed_and_revoked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with valkey(tmp_path / "store") as store:

        def keys(*arguments: str) -> str:
            assert main(["keys", *arguments, "--store", store.url, "--init"]) == 0
            return capsys.readouterr().out

        assert keys("list") == ""
        secret = keys("create", "--label", "shop", "--scope", "serve", "--scope", "peer")
        listed = keys("list")
        assert secret.strip() not in listed
        key_id, scopes, bound, label = listed.split()
        assert (scopes, bound, label) == ("peer,serve", "*", "shop")
        assert keys("revoke", key_id) == ""
        assert keys("list") == ""
        assert main(["keys", "revoke", key_id, "--store", store.url]) == 2
        assert "no stored key has that id" in capsys.readouterr().err


def test_keys_can_be_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with valkey(tmp_path / "store") as store:
        asyncio.run(_put_films(store.url))

        def keys(*arguments: str, code: int = 0) -> str:
            assert main(["keys", *arguments, "--store", store.url]) == code
            told = capsys.readouterr()
            return told.err if code else told.out

        keys("create", "--label", "shop", "--scope", "serve", "--recommender", "films")
        assert keys("list").split()[1:] == ["serve", "films", "shop"]
        device = ("--label", "tablet", "--client", "ada", "--recommender", "films")
        secret = keys("create", "--scope", "profile", *device).strip()
        assert secret.startswith("dd_")
        listed = keys("list", "--client", "ada").split()
        assert listed[1:] == ["profile", "films", "tablet"]
        assert keys("list", "--client", "bob") == ""
        assert "no such key" in keys("revoke", listed[0], "--client", "bob", code=2)
        keys("revoke", listed[0], "--client", "ada")
        assert keys("list", "--client", "ada") == ""
        code = keys("code", "--client", "ada", "--recommender", "films").strip()
        assert len(code) == 14
        assert "--client" in keys("create", "--label", "x", "--scope", "profile", code=2)
        wrong = ("create", "--label", "x", "--scope", "serve", "--client", "ada")
        assert "scope profile" in keys(*wrong, code=2)


async def _put_films(url: str) -> None:
    settings = Settings(store=url, init=True, store_timeout_seconds=30)
    async with opened(settings, carries=False) as services:
        await services.registry.put("films", document())


@pytest.mark.parametrize("scope", ["root", ""])
def test_an_unknown_scope_is_refused(scope: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main(["keys", "create", "--label", "x", "--scope", scope])
    assert ending.value.code == 2
    assert "--scope" in capsys.readouterr().err


def test_a_token_key_needs_no_store(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "token"]) == 0
    assert len(base64.b64decode(capsys.readouterr().out)) == KEY_BYTES
