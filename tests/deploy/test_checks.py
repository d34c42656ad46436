"""What others' tools say: checkov about the manifests, TypeScript about what Grafana and the
Prometheus operator accept, hadolint about the Dockerfile."""

import copy
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.charts import BIN, CHART, only, rendered, template
from tests.deploy.queries import DASHBOARDS
from tests.house import ROOT
from tests.requirements import need

PRODUCTION = CHART / "ci" / "production-values.yaml"

ACCEPTED = {
    # A tag that does not move is fetched once; with a digest there is nothing to fetch again.
    "CKV_K8S_15": "image pull policy",
    # The default values cannot know the digest of an image that is not built yet.
    "CKV_K8S_43": "image digest",
    # A policy that shuts out callers whom nobody named yet is no default.
    "CKV2_K8S_6": "network policy",
}
OF_A_TEST_THAT_RUNS_ONCE = {"CKV_K8S_8", "CKV_K8S_9"}


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[tuple[str, str]]]:
    """What checkov finds, by file: the checks that fail, and for what kind of object."""
    folder = tmp_path_factory.mktemp("manifests")
    (folder / "default.yaml").write_text(template())
    (folder / "production.yaml").write_text(template("--values", PRODUCTION))
    careless = template().replace("allowPrivilegeEscalation: false", "privileged: true")
    (folder / "careless.yaml").write_text(careless)
    answer = subprocess.run(
        [need("checkov"), "--framework", "kubernetes", "--skip-download", "--output", "json",
         "--directory", folder],
        capture_output=True, text=True, timeout=600,
        # Its own environment: it must neither find ours nor ask anybody for anything.
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
    )  # fmt: skip
    found = json.loads(answer.stdout)
    assert found["summary"]["passed"] > 300, answer.stderr
    failed: dict[str, set[tuple[str, str]]] = {path.stem: set() for path in folder.iterdir()}
    for check in found["results"]["failed_checks"]:
        kind = check["resource"].split(".")[0]
        failed[Path(check["file_path"]).stem].add((check["check_id"], kind))
    return failed


Failures = dict[str, set[tuple[str, str]]]


@pytest.mark.needs("checkov")
def test_checkov_finds_nothing_that_we_did_not_decide(failures: Failures) -> None:
    once = {(check, "Pod") for check in OF_A_TEST_THAT_RUNS_ONCE}
    assert {check for check, _ in failures["default"] - once} <= set(ACCEPTED)


@pytest.mark.needs("checkov")
def test_checkov_finds_less_in_production(failures: Failures) -> None:
    found = {check for check, kind in failures["production"] if kind == "Deployment"}
    assert found <= {"CKV_K8S_15"}


@pytest.mark.needs("checkov")
def test_checkov_would_find_a_careless_pod(failures: Failures) -> None:
    assert ("CKV_K8S_16", "Deployment") in failures["careless"]


TYPES = {
    "Dashboard": "@grafana/schema",
    "IServiceMonitor": (
        "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor"
    ),
    "IPrometheusRule": (
        "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule"
    ),
}


# JSON has no enumerations: their values stand for them.
PLAIN = """\
type Plain<T> = T extends string ? `${T}`
  : T extends number ? (`${T}` extends `${infer N extends number}` ? N : T)
  : T extends (infer Each)[] ? Plain<Each>[]
  : T extends object ? { [K in keyof T]: Plain<T[K]> }
  : T;"""


def _complaints(folder: Path, values: list[tuple[str, Any]]) -> str:
    """Type-check values as literals, which may have no field that their type does not know."""
    node = need("tsc").parents[2]
    lines = [f'import type {{ {name} }} from "{place}";' for name, place in TYPES.items()]
    lines.append(PLAIN)
    lines += [
        f"export const value{number}: Plain<{name}> = {json.dumps(value, indent=1)};"
        for number, (name, value) in enumerate(values)
    ]
    (folder / "values.ts").write_text("\n".join(lines))
    if not (folder / "node_modules").exists():
        (folder / "node_modules").symlink_to(node / "node_modules")
    answer = subprocess.run(
        [need("tsc"), "--noEmit", "--strict", "--skipLibCheck", "--module", "esnext",
         "--moduleResolution", "bundler", "--target", "es2022", "values.ts"],
        cwd=folder, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    return re.sub(r"\s+", " ", answer.stdout + answer.stderr)


def _dashboards() -> list[tuple[str, Any]]:
    return [("Dashboard", json.loads(path.read_text())) for path in DASHBOARDS]


def _custom() -> list[tuple[str, Any]]:
    found = rendered(PRODUCTION)
    return [(f"I{kind}", only(found, kind)) for kind in ("ServiceMonitor", "PrometheusRule")]


@pytest.mark.needs("tsc")
def test_grafana_and_the_operator_accept_what_we_write(tmp_path: Path) -> None:
    assert _complaints(tmp_path, _dashboards() + _custom()) == ""


@pytest.mark.needs("tsc")
def test_a_misspelt_field_would_be_found(tmp_path: Path) -> None:
    values = copy.deepcopy(_dashboards()[:1] + _custom())
    values[0][1]["panels"][1]["fieldConfg"] = {}
    values[1][1]["spec"]["endpoints"][0]["intervall"] = "15s"
    values[2][1]["spec"]["groups"][0]["rules"][0].pop("expr")
    found = _complaints(tmp_path, values)
    for named in ("fieldConfg", "intervall", "expr"):
        assert named in found


def test_hadolint_finds_nothing() -> None:
    answer = subprocess.run(
        [BIN / "hadolint", "--failure-threshold", "info", ROOT / "Dockerfile"],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout


def test_hadolint_would_find_a_careless_line(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM debian:latest\nRUN apt-get install python3\n")
    answer = subprocess.run(
        [BIN / "hadolint", tmp_path / "Dockerfile"], capture_output=True, text=True, timeout=600
    )
    assert answer.returncode != 0
