"""The chart: valid for several Kubernetes versions, strict about values, and safe by default."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from discreet import __version__, configuration
from tests.deploy.charts import (
    CHART,
    EXAMPLES,
    NAMESPACE,
    RELEASE,
    VERSIONS,
    breaches,
    fault_of,
    helm,
    objects,
    only,
    pod_of,
    rendered,
    template,
)

DEFAULT = CHART / "ci" / "default-values.yaml"
PRODUCTION = CHART / "ci" / "production-values.yaml"
TRIAL = CHART / "ci" / "trial-values.yaml"
CUSTOM = {"ServiceMonitor", "PrometheusRule"}
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
each_example = pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)


def test_there_are_examples_of_everything() -> None:
    assert len(EXAMPLES) >= 6


@each_example
def test_lint_finds_nothing(values: Path) -> None:
    answer = helm("lint", "--strict", CHART, "--values", values)
    assert answer.returncode == 0, answer.stdout
    assert "[WARNING]" not in answer.stdout


def test_the_chart_is_the_same_for_every_version() -> None:
    """So one rendering stands for all of them."""
    for path in (CHART / "templates").rglob("*"):
        assert not path.is_file() or ".Capabilities" not in path.read_text(), path.name
    for version in VERSIONS:
        found = list(objects(template("--values", DEFAULT, version=version)))
        for each, other in zip(found, rendered(DEFAULT), strict=True):
            if each["kind"] == "Secret":  # its keys are drawn
                assert each.pop("data").keys() == other["data"].keys()
                other = {name: value for name, value in other.items() if name != "data"}
            assert each == other


@pytest.mark.parametrize("version", VERSIONS)
@each_example
def test_every_object_is_valid(values: Path, version: str) -> None:
    for each in rendered(values):
        if each["kind"] not in CUSTOM:
            assert fault_of(each, version) == ""
        where = each["metadata"].get("namespace")
        assert where in (NAMESPACE, "monitoring"), each["metadata"]["name"]


def test_a_misspelt_field_would_be_found() -> None:
    planted = copy.deepcopy(only(rendered(DEFAULT), "Deployment"))
    planted["spec"]["template"]["spec"]["container"] = []
    assert "'container' was unexpected" in fault_of(planted, VERSIONS[-1])


def test_the_defaults_are_complete() -> None:
    found = tuple(objects(template()))
    kinds = sorted(each["kind"] for each in found)
    assert kinds == [
        "ConfigMap", "ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Job",
        "NetworkPolicy", "NetworkPolicy", "Pod", "PodDisruptionBudget", "Secret", "Secret",
        "Secret", "Secret", "Service", "Service", "Service", "ServiceAccount", "StatefulSet",
    ]  # fmt: skip
    _everything_that_is_named_exists(found)


@pytest.mark.parametrize("values", [DEFAULT, TRIAL], ids=lambda path: path.stem)
def test_nothing_is_named_that_does_not_exist(values: Path) -> None:
    _everything_that_is_named_exists(rendered(values))


def _everything_that_is_named_exists(found: tuple[dict[str, Any], ...]) -> None:
    """Follow every name from one object to another; nothing here is brought by the user."""
    names = {(each["kind"], each["metadata"]["name"]): each for each in found}
    for each in found:
        pod = pod_of(each)
        if pod is None:
            continue
        assert ("ServiceAccount", pod["serviceAccountName"]) in names
        claimed = {
            claim["metadata"]["name"] for claim in each["spec"].get("volumeClaimTemplates", ())
        }
        volumes = {volume["name"] for volume in pod["volumes"]} | claimed
        for volume in pod["volumes"]:
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in names
            if "secret" in volume:
                held = names["Secret", volume["secret"]["secretName"]]["data"]
                assert {item["key"] for item in volume["secret"]["items"]} <= set(held)
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    for each in found:
        if each["kind"] == "Service":
            assert [
                other
                for other in found
                if each["spec"]["selector"].items()
                <= other.get("spec", {}).get("template", {}).get("metadata", {})
                .get("labels", {}).items()
            ], each["metadata"]["name"]  # fmt: skip


@each_example
def test_every_pod_is_restricted(values: Path) -> None:
    pods = [pod for each in rendered(values) if (pod := pod_of(each)) is not None]
    assert len(pods) >= 2
    for pod in pods:
        assert breaches(pod) == []
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["resources"]["limits"].keys() >= {"cpu", "memory"}


@pytest.mark.parametrize(
    "breach",
    [
        {"hostNetwork": True},
        {"securityContext": {}},
        {"volumes": [{"name": "host", "hostPath": {"path": "/"}}]},
        {"containers": [{"securityContext": {"allowPrivilegeEscalation": False}}]},
        {"containers": [{"securityContext": {"capabilities": {"drop": ["ALL"]}}}]},
    ],
)
def test_a_pod_that_is_not_restricted_is_found(breach: dict[str, Any]) -> None:
    pod = pod_of(only(rendered(DEFAULT), "Deployment"))
    assert pod is not None
    assert breaches(pod) == []
    assert breaches({**pod, **breach}) != []


WRONG = {
    "replica": (3, "(root): Additional property replica "),
    "replicas": (0, "replicas: Must be greater "),
    "image": ({"tags": 1}, "image: Additional property tags "),
    "image.digest": ("1234", "image.digest: Does not match "),
    "keys": ({"existingSecrets": "x"}, "keys: Additional property existingSecrets "),
    "store.url": ("http://x", "store.url: Does not match "),
    "settings": ({"port": 9000}, "settings: Additional property port "),
    "settings.log_level": ("loud", "settings.log_level must be one of "),
    "autoscaling.maxReplicas": ("many", "autoscaling.maxReplicas: Invalid type"),
    "recommenders.films": ({"algorithm": "magic"}, "recommenders.films.algorithm must be one of "),
    "recommenders.books": ({"items": ["a"]}, "recommenders.books: algorithm is required"),
    "metrics.serviceMonitor.interval": (15, "metrics.serviceMonitor.interval: Invalid type"),
    "networkPolicy.enabled": ("perhaps", "networkPolicy.enabled: Invalid type"),
    "resources.limits": ({"cpus": 1}, "resources.limits: Additional property cpus "),
    "valkey.maxMemory": ("1Gi", "valkey.maxMemory: Does not match "),
}
"""Of each path, a wrong value and what is said about it."""


@pytest.mark.parametrize("command", ["lint", "template"])
def test_wrong_values_are_refused(command: str, tmp_path: Path) -> None:
    """All at once: each is refused by a line of its own."""
    values: dict[str, Any] = {}
    for path, (wrong, _) in WRONG.items():
        *parents, last = path.split(".")
        place = values
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = {**place.get(last, {}), **wrong} if isinstance(wrong, dict) else wrong
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(values))
    answer = helm(command, CHART, "--values", tmp_path / "wrong.yaml")
    assert answer.returncode != 0
    lines = (answer.stdout + answer.stderr).splitlines()
    for _, reason in WRONG.values():
        assert any(reason in line for line in lines), reason


def test_the_stores_url_holds_no_password() -> None:
    answer = helm("template", CHART, "--set", "store.url=redis://user:password@x")
    assert answer.returncode != 0
    assert "store.url: Does not match " in answer.stderr


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (["store.url=redis://x", "store.existingSecret=y"], "either url or existingSecret"),
        (["keys.tokenKeys=true"], "needs keys.existingSecret"),
        (["ingress.enabled=true"], "name at least one host"),
        (["store.url=redis://x"], "say where the store is"),
        (["peers.existingSecret=x"], "say where the peers are"),
    ],
)
def test_values_that_contradict_each_other_are_refused(wrong: list[str], named: str) -> None:
    flags = [part for each in wrong for part in ("--set", each)]
    answer = helm("template", RELEASE, CHART, *flags)
    assert answer.returncode != 0
    assert named in answer.stderr


def _paths(value: Any, prefix: str = "") -> set[str]:
    """Return the paths of all values that are no mapping, or an empty one."""
    if isinstance(value, dict) and value:
        return {path for name in value for path in _paths(value[name], f"{prefix}{name}.")}
    return {prefix.rstrip(".")}


def test_the_schema_knows_every_value_and_no_other() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    def declared(part: dict[str, Any], values: Any) -> None:
        if not isinstance(values, dict) or part.get("additionalProperties") is not False:
            return
        assert set(values) <= set(part["properties"])
        for name in values:
            declared(part["properties"][name], values[name])

    declared(schema, VALUES)
    assert schema["additionalProperties"] is False
    # Settings have defaults of their own in the service.
    unknown = set(schema["properties"]) - set(VALUES)
    assert unknown == {"global"}


def test_the_readme_lists_every_value() -> None:
    rows = re.findall(r"^\| `([\w.*]+)` \|", (CHART / "README.md").read_text(), re.MULTILINE)
    listed = {row.removesuffix(".*") for row in rows}
    wanted = _paths(VALUES)
    missing = {path for path in wanted if not any(path.startswith(row) for row in listed)}
    unknown = {row for row in listed if not any(path.startswith(row) for path in wanted)}
    assert (missing, unknown) == (set(), set())


@each_example
def test_the_service_reads_its_configuration(values: Path, tmp_path: Path) -> None:
    text = only(rendered(values), "ConfigMap")["data"]["discreet.yaml"]
    (tmp_path / "discreet.yaml").write_text(text)
    read = configuration.read(tmp_path / "discreet.yaml")
    given = yaml.safe_load(values.read_text()) or {}
    assert set(read.recommenders) == set(given.get("recommenders", {}))


def test_another_configuration_is_another_pod() -> None:
    def checksum(found: tuple[dict[str, Any], ...]) -> str:
        annotations = only(found, "Deployment")["spec"]["template"]["metadata"]["annotations"]
        return str(annotations["checksum/config"])

    same = checksum(rendered(DEFAULT))
    changed = template("--values", DEFAULT, "--set", "settings.log_level=debug")
    assert same != checksum(tuple(objects(changed)))
    assert same != checksum(rendered(TRIAL))


def test_liveness_does_not_ask_the_store_and_stopping_leaves_time() -> None:
    pod = pod_of(only(rendered(DEFAULT), "Deployment"))
    assert pod is not None
    (container,) = pod["containers"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/health/live"
    assert container["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    startup = container["startupProbe"]
    waits = next(e["value"] for e in container["env"] if e["name"] == "DISCREET_WAIT_STORE_SECONDS")
    assert startup["periodSeconds"] * startup["failureThreshold"] > float(waits)
    stops = next(e["value"] for e in container["env"] if e["name"] == "DISCREET_STOP_SECONDS")
    leaves = container["lifecycle"]["preStop"]["exec"]["command"][1]
    assert pod["terminationGracePeriodSeconds"] > float(stops) + float(leaves)


def test_secrets_are_files_and_never_stand_in_a_manifest() -> None:
    found = rendered(PRODUCTION)
    assert all(each["kind"] != "Secret" for each in found)
    pod = pod_of(only(found, "Deployment", "discreet"))
    assert pod is not None
    for entry in pod["containers"][0]["env"]:
        assert "valueFrom" not in entry
        assert not re.search("KEY|STORE$", entry["name"]) or entry["name"].endswith("_FILE")
    held = {v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v}
    assert held == {
        "discreet-keys", "discreet-metrics", "discreet-store", "discreet-store-tls",
    }  # fmt: skip


def test_the_alerts_and_dashboards_come_along() -> None:
    found = rendered(PRODUCTION)
    rules = only(found, "PrometheusRule")["spec"]["groups"]
    links = {
        rule["annotations"]["runbook_url"].split("#")[0]
        for group in rules
        for rule in group["rules"]
        if "alert" in rule
    }
    assert links == {"https://wiki.example.org/discreet"}
    shown = [e for e in found if e["metadata"].get("labels", {}).get("grafana_dashboard") == "1"]
    assert len(shown) == 4
    for each in shown:
        assert each["metadata"]["namespace"] == "monitoring"
        (text,) = each["data"].values()
        assert json.loads(text)["uid"].startswith("discreet-")


def test_versions_agree() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__
