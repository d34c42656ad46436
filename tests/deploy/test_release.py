"""What the chart starts and says: its notes, its Valkey, its test, each tried for real."""

import shutil
import socket
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from tests.deploy.charts import (
    CHART,
    NAMESPACE,
    RELEASE,
    RELEASE_NAME,
    helm,
    only,
    pod_of,
    rendered,
)
from tests.deploy.valkey import own_store
from tests.end_to_end.servers import KEY, serving

DEFAULT = CHART / "ci" / "default-values.yaml"
TRIAL = CHART / "ci" / "trial-values.yaml"


def _notes(folder: Path, *flags: str | Path) -> str:
    """Render the notes as if they were a manifest: Helm shows them only with a cluster at hand."""
    chart = folder / "chart"
    shutil.copytree(CHART, chart)
    text = (chart / "templates" / "NOTES.txt").read_text()
    (chart / "templates" / "notes.yaml").write_text(
        '{{- define "notes" -}}\n'
        + text
        + '{{- end -}}\nnotes: |\n  {{- include "notes" . | nindent 2 }}\n'
    )
    answer = helm(
        "template", RELEASE, chart, "--namespace", NAMESPACE, "-s", "templates/notes.yaml", *flags
    )
    assert answer.returncode == 0, answer.stderr
    return str(yaml.safe_load(answer.stdout)["notes"])


def test_the_notes_tell_what_to_do_next(tmp_path: Path) -> None:
    notes = _notes(tmp_path)
    for wanted in (
        "1.",
        "2.",
        "3.",
        f"get secret {RELEASE_NAME}-keys",
        f"helm -n {NAMESPACE} test",
    ):
        assert wanted in notes
    assert "so make one" in notes
    assert "WARNING" not in notes


def test_the_notes_warn_of_a_ledger_that_can_be_lost(tmp_path: Path) -> None:
    notes = _notes(tmp_path, "--values", TRIAL)
    assert "See what is served" in notes
    assert "WARNING: the store has no disk" in notes


@pytest.mark.needs("redis-check-rdb")
def test_the_store_that_comes_along_keeps_its_promises(tmp_path: Path) -> None:
    secret = "open-sesame"
    promised = {
        "appendonly": "yes",
        "appendfsync": "always",
        "maxmemory": str(640 * 2**20),
        "maxmemory-policy": "noeviction",
    }
    with own_store(rendered(DEFAULT), tmp_path, password=secret) as store:

        def client(**changes: Any) -> redis.Redis:
            patience = Retry(ConstantBackoff(0.1), 100)
            tls = {"ssl": True, "ssl_ca_certs": str(store.authority), "ssl_check_hostname": False}
            return redis.Redis(port=store.port, **{"retry": patience, **tls, **changes})

        with client(password=secret) as asked:
            assert asked.ping()
            told = asked.config_get(*promised)
        assert {_text(name): _text(value) for name, value in told.items()} == promised
        assert secret not in Path(f"/proc/{store.process.pid}/cmdline").read_text()
        with pytest.raises(redis.AuthenticationError), client() as stranger:
            stranger.ping()
        once = Retry(ConstantBackoff(0), 0)
        with pytest.raises(redis.ConnectionError), client(ssl=False, retry=once) as listening:
            listening.ping()
        # The certificate is for the Service's name, and for no other.
        named = ssl.create_default_context(cafile=store.authority)
        for name, welcome in ((f"{RELEASE_NAME}-valkey", True), ("elsewhere", False)):
            with socket.create_connection(("127.0.0.1", store.port), 30) as plain:
                if welcome:
                    named.wrap_socket(plain, server_hostname=name).close()
                else:
                    with pytest.raises(ssl.SSLCertVerificationError):
                        named.wrap_socket(plain, server_hostname=name)
    assert store.process.returncode == 0


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


@pytest.fixture(scope="module")
def trial_server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with the trial's recommenders, as its ConfigMap gives them."""
    folder = tmp_path_factory.mktemp("trial")
    config = folder / "discreet.yaml"
    config.write_text(only(rendered(TRIAL), "ConfigMap")["data"]["discreet.yaml"])
    with serving(folder / "data", "--config", str(config)) as server:
        yield server


@pytest.mark.parametrize(
    ("key", "recommenders", "complaint"),
    [
        (KEY, "films", None),
        ("another-key", "films", "is the key in the Secret"),
        (KEY, "films songs", "not served: ['songs']"),
    ],
)
def test_helm_test_tells_right_from_wrong(
    trial_server: Any, tmp_path: Path, key: str, recommenders: str, complaint: str | None
) -> None:
    pod = pod_of(only(rendered(TRIAL), "Pod", "test"))
    assert pod is not None
    (container,) = pod["containers"]
    assert container["command"] == ["python3", "-c"]
    (tmp_path / "key").write_text(key)
    answer = subprocess.run(
        [sys.executable, "-c", *container["args"]],
        env={
            "URL": trial_server.url,
            "KEY_FILE": str(tmp_path / "key"),
            "RECOMMENDERS": recommenders,
        },
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (answer.returncode == 0) == (complaint is None), answer.stderr
    assert complaint is None or complaint in answer.stderr
