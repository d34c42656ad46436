"""The compose file: whole, closed to other machines, in step with what it names; its keys work."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from discreet import __version__, configuration
from discreet.settings import Settings, from_environment
from discreet.state.urls import parse
from tests.deploy.charts import CHART
from tests.house import ROOT
from tests.requirements import need

FOLDER = ROOT / "deploy" / "compose"
DIGEST = "sha256:[0-9a-f]{64}"
FILE = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = FILE["services"]


def test_every_file_that_is_mounted_exists() -> None:
    mounted = [
        mount.split(":")[0]
        for service in SERVICES.values()
        for mount in service.get("volumes", ())
        if mount.startswith(".") and not mount.startswith("./data/")  # `keys` makes those
    ]
    mounted += [config["file"] for config in FILE["configs"].values()]
    assert len(mounted) >= 6
    assert [path for path in mounted if not (FOLDER / path).exists()] == []


def test_everything_that_is_named_is_declared() -> None:
    for name, service in SERVICES.items():
        assert set(service.get("secrets", ())) <= set(FILE["secrets"]), name
        assert set(service.get("depends_on", ())) <= set(SERVICES), name
        named = {mount.split(":")[0] for mount in service.get("volumes", ())}
        assert all(each.startswith(".") for each in named), name


def test_only_this_machine_can_reach_it_and_images_are_pinned() -> None:
    for name, service in SERVICES.items():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        if name != "discreet":
            assert re.fullmatch(rf"\S+:v?\d+\.\d+\.\d+@{DIGEST}", service["image"]), name
    assert SERVICES["discreet"]["image"] == f"discreet:{__version__}"
    values = yaml.safe_load((CHART / "values.yaml").read_text())["valkey"]["image"]
    assert SERVICES["valkey"]["image"] == "{repository}:{tag}@{digest}".format(**values)


def test_the_image_is_built_on_a_base_that_nobody_can_exchange() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert not [line for line in lines if line.startswith("# syntax=")]  # an image by tag, too
    (base,) = (line for line in lines if line.startswith("ARG BASE="))
    assert re.search(rf":\d+\.\d+\.\d+-\S+@{DIGEST}$", base)
    assert {line.split()[1] for line in lines if line.startswith("FROM ")} == {"${BASE}"}


def test_the_service_reads_its_configuration() -> None:
    assert configuration.read(FOLDER / "discreet.yaml").recommenders == {}


@pytest.mark.needs("promtool")
def test_prometheus_reads_its_configuration(tmp_path: Path) -> None:
    text = (FOLDER / "prometheus.yaml").read_text()
    (tmp_path / "key").write_text("key")
    (tmp_path / "prometheus.yml").write_text(
        text.replace("/run/secrets/metrics-key", str(tmp_path / "key"))
    )
    shutil.copy(ROOT / "deploy" / "prometheus" / "rules.yaml", tmp_path)
    answer = subprocess.run(
        [need("promtool"), "check", "config", tmp_path / "prometheus.yml"],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_the_keys_are_made_once_and_fit_together(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "keys", tmp_path)
    secrets = tmp_path / "secrets"
    made = []
    for _ in range(2):
        subprocess.run([tmp_path / "keys"], check=True, capture_output=True, timeout=600)
        made.append({path.name: path.read_text() for path in secrets.iterdir()})
    assert made[0] == made[1]
    assert set(made[0]) == set(FILE["secrets"])
    assert {stat.S_IMODE(path.stat().st_mode) for path in secrets.iterdir()} == {0o600}
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    owner = (tmp_path / ".env").read_text()
    assert owner == f"OWNER={os.getuid()}:{os.getgid()}\n"
    for name, service in SERVICES.items():
        folders = [mount.split(":")[0] for mount in service.get("volumes", ())]
        for folder in folders:
            assert not folder.startswith("./data/") or (tmp_path / folder).is_dir(), name
        if service.get("secrets"):
            assert service["user"].startswith("${OWNER:?"), name
    environment = SERVICES["discreet"]["environment"]
    given = {
        name: value.replace("/run/secrets", str(secrets)) for name, value in environment.items()
    }
    settings = from_environment(given)
    assert len(settings["api_key"]) == len(settings["metrics_key"]) == 48
    # Prometheus is given a key that opens nothing but metrics.
    assert SERVICES["prometheus"]["secrets"] == ["metrics-key"]
    assert settings["metrics_key"] != settings["api_key"]
    opened = Settings(**settings).api_keys[settings["metrics_key"]]
    assert opened == {"metrics"}
    location = parse(settings["store"])
    assert location.nodes[0].host == "valkey"
    assert location.credentials.password == made[0]["valkey-password"]
