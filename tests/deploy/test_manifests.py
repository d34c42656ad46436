"""k8s/: in step with the chart, valid, restricted, and accepted by kubectl."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy import manifests
from tests.deploy.charts import VERSIONS, breaches, fault_of, objects, pod_of
from tests.requirements import need

CUSTOM = {"ServiceMonitor", "PrometheusRule", "Kustomization"}


def test_the_manifests_are_in_step_with_the_chart() -> None:
    wanted = manifests.files()
    present = {
        str(path.relative_to(manifests.TARGET)): path.read_text()
        for path in manifests.TARGET.rglob("*.yaml")
    }
    assert present == wanted, "run `make k8s`"


def _all() -> Iterator[dict[str, Any]]:
    for path in sorted(manifests.TARGET.rglob("*.yaml")):
        yield from objects(path.read_text())


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid(version: str) -> None:
    for each in _all():
        if each["kind"] not in CUSTOM:
            assert fault_of(each, version) == ""


def test_every_pod_is_restricted_and_nothing_is_secret() -> None:
    pods = [pod for each in _all() if (pod := pod_of(each)) is not None]
    assert len(pods) == 3
    assert [breaches(pod) for pod in pods] == [[], [], []]
    assert "Secret" not in {each["kind"] for each in _all()}
    text = "".join(path.read_text() for path in manifests.TARGET.rglob("*.yaml"))
    assert "helm.sh" not in text


@pytest.mark.needs("kubectl")
@pytest.mark.parametrize("folder", ["", "monitoring"])
def test_kubectl_puts_them_together(folder: str) -> None:
    answer = subprocess.run(
        [need("kubectl"), "kustomize", manifests.TARGET / folder],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert len(list(objects(answer.stdout))) >= 6


@pytest.mark.needs("kubectl")
def test_the_readmes_overlay_works(tmp_path: Path) -> None:
    page = (manifests.TARGET / "README.md").read_text()
    overlay = page.partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "k8s").symlink_to(manifests.TARGET)
    (tmp_path / "kustomization.yaml").write_text(overlay)
    answer = subprocess.run(
        [need("kubectl"), "kustomize", "--load-restrictor", "LoadRestrictionsNone", tmp_path],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    found = {(each["kind"], each["metadata"]["name"]): each for each in objects(answer.stdout)}
    assert "films" in found["ConfigMap", "discreet"]["data"]["discreet.yaml"]
    (container,) = found["Deployment", "discreet"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.org/team/discreet:0.1.0"
