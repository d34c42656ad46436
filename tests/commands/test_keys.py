"""`discreet keys`, over a store that is already running."""

import base64
from pathlib import Path

import pytest

from discreet.cli import main
from discreet.decisions.tokens import KEY_BYTES
from tests.state.servers import valkey


def test_keys_are_created_listed_and_revoked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with valkey(tmp_path / "store") as store:

        def keys(*arguments: str) -> str:
            assert main(["keys", *arguments, "--store", store.url]) == 0
            return capsys.readouterr().out

        assert keys("list") == ""
        secret = keys("create", "--label", "shop", "--scope", "serve", "--scope", "peer")
        listed = keys("list")
        assert secret.strip() not in listed
        key_id, scopes, label = listed.split()
        assert (scopes, label) == ("peer,serve", "shop")
        assert keys("revoke", key_id) == ""
        assert keys("list") == ""
        assert main(["keys", "revoke", key_id, "--store", store.url]) == 2
        assert "no stored key has that id" in capsys.readouterr().err


@pytest.mark.parametrize("scope", ["root", ""])
def test_an_unknown_scope_is_refused(scope: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main(["keys", "create", "--label", "x", "--scope", scope])
    assert ending.value.code == 2
    assert "--scope" in capsys.readouterr().err


def test_a_token_key_needs_no_store(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "token"]) == 0
    assert len(base64.b64decode(capsys.readouterr().out)) == KEY_BYTES
