"""The chart, rendered, and what Kubernetes' "restricted" profile asks of a pod."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.house import ROOT

CHART = ROOT / "deploy" / "helm" / "discreet"
BIN = Path(sys.executable).parent
HELM = BIN / "helm"
EXAMPLES = sorted((CHART / "ci").glob("*-values.yaml"))
VERSIONS = ("1.30", "1.32", "1.34")
RELEASE = "shop"
NAMESPACE = "recommendations"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Helm, whatever comes of it, without anybody's own repositories and settings."""
    return subprocess.run(
        [HELM, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        # Its garbage is not worth collecting: it ends after a tenth of a second.
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GOGC": "off"},
    )


def template(*arguments: str | Path, version: str = VERSIONS[-1]) -> str:
    """Return the chart as text; a chart that cannot be rendered fails the test."""
    answer = helm(
        "template", RELEASE, CHART, "--namespace", NAMESPACE, "--kube-version", f"{version}.0",
        "--api-versions", "monitoring.coreos.com/v1", *arguments,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@cache
def rendered(values: Path) -> tuple[dict[str, Any], ...]:
    """Return the objects that a file of values gives."""
    return tuple(objects(template("--values", values)))


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Read manifests; libyaml does in a tenth of the time what is the same in Python."""
    return (each for each in yaml.load_all(text, Loader=LOADER) if each)


def fault_of(one: dict[str, Any], version: str) -> str:
    """Return what a version of Kubernetes would refuse about an object, or nothing."""
    return _fault_of(json.dumps(one), version)


@cache  # many files of values give the same object
def _fault_of(text: str, version: str) -> str:
    kubernetes = _kubernetes()
    try:
        kubernetes.validate(json.loads(text), version, strict=True)
    except kubernetes.ValidationError as error:
        return str(error.message)
    return ""


@cache
def _kubernetes() -> Any:
    """Return what validates; it would read the definitions of a version anew for every object."""
    # Imported here: it reads a grammar for a second, in every process that collects tests.
    from kubernetes_validate import utils

    utils.schema_contents = cache(utils.schema_contents)
    return utils


def only(found: tuple[dict[str, Any], ...], kind: str, ending: str = "") -> dict[str, Any]:
    """Return the one object of a kind whose name ends so."""
    (one,) = [
        each
        for each in found
        if each["kind"] == kind and each["metadata"]["name"].endswith(ending or RELEASE_NAME)
    ]
    return one


RELEASE_NAME = f"{RELEASE}-discreet"


def pod_of(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the pod that an object is, or makes."""
    if found["kind"] == "Pod":
        return dict(found["spec"])
    template = found.get("spec", {}).get("template", {}) if found["kind"] != "ConfigMap" else {}
    return dict(template["spec"]) if "spec" in template else None


ALLOWED_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
    "projected", "secret",
}  # fmt: skip


def breaches(pod: Mapping[str, Any]) -> list[str]:
    """Say where a pod breaks the profile "restricted" of the Pod Security Standards.

    After the standard's own table; what is allowed there but never used here is refused as well.
    """
    found = [f"{name} is shared" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)]
    whole = pod.get("securityContext", {})
    for volume in pod.get("volumes", []):
        found += [f"volume {kind}" for kind in volume if kind not in ALLOWED_VOLUMES | {"name"}]
    if whole.get("sysctls"):
        found.append("sysctls are set")
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        own = container.get("securityContext", {})
        effective = {**whole, **own}
        if own.get("privileged"):
            found.append("privileged")
        if own.get("allowPrivilegeEscalation") is not False:
            found.append("privileges may grow")
        if own.get("capabilities", {}).get("drop") != ["ALL"]:
            found.append("capabilities are kept")
        if own.get("capabilities", {}).get("add"):
            found.append("capabilities are added")
        if effective.get("runAsNonRoot") is not True or effective.get("runAsUser") == 0:
            found.append("may run as root")
        if effective.get("seccompProfile", {}).get("type") != "RuntimeDefault":
            found.append("no seccomp profile")
        if any("hostPort" in port for port in container.get("ports", [])):
            found.append("a port of the host")
    return found
