"""Plain manifests from the chart, for `kubectl apply -k k8s`.

They are the chart with its default values, except that nothing is generated: the Secrets are made
by hand, once (k8s/README.md says how), so that no key is ever written to a file of the repository.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "deploy" / "helm" / "discreet"
TARGET = ROOT / "k8s"
HELM = Path(sys.executable).parent / "helm"
NAME = "discreet"
SETTINGS = {
    "keys.existingSecret": "discreet-keys",
    "metrics.existingSecret": "discreet-metrics",
    "valkey.existingSecret": "discreet-valkey",
    "valkey.tls.existingSecret": "discreet-valkey-tls",
    "metrics.serviceMonitor.enabled": "true",
    "metrics.rules.enabled": "true",
    "metrics.dashboards.enabled": "true",
}
WRITTEN = "# Written by `make k8s` from the chart: change that, or patch this with Kustomize.\n"
MONITORING = "monitoring"


def rendered() -> str:
    """Return what Helm makes of the chart."""
    command = [str(HELM), "template", NAME, str(CHART), "--namespace", NAME, "--skip-tests"]
    for name, value in SETTINGS.items():
        command += ["--set", f"{name}={value}"]
    # Every word of the command stands in this file.
    answer = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return answer.stdout


def plain(text: str) -> str:
    """Take out what only Helm means, and leave everything else as it is, comments included."""
    text = re.sub(r"^ +helm\.sh/chart: .*\n", "", text, flags=re.MULTILINE)
    return text.replace("managed-by: Helm", "managed-by: kubectl")


def files() -> dict[str, str]:
    """Return the files' contents by their path within k8s/: one for each template of the chart."""
    found: dict[str, str] = {}
    for part in re.split(r"^---\n", rendered(), flags=re.MULTILINE):
        source = re.match(r"# Source: discreet/templates/(\w+)\.yaml\n", part)
        if source is None:
            continue
        body = plain(part[source.end() :]).strip("\n") + "\n"
        document = yaml.safe_load(body)
        if document is None:
            continue
        name = source.group(1)
        if name == MONITORING:
            name = f"{MONITORING}/{_slug(document)}"
        path = f"{name}.yaml"
        found[path] = f"{found[path]}---\n{body}" if path in found else WRITTEN + body
    found["namespace.yaml"] = WRITTEN + NAMESPACE
    for folder in ("", f"{MONITORING}/"):
        names = sorted(
            path.removeprefix(folder)
            for path in found
            if path.startswith(folder) and "/" not in path.removeprefix(folder)
        )
        found[f"{folder}kustomization.yaml"] = WRITTEN + KUSTOMIZATION + _listed(names)
    return found


def _slug(document: dict[str, Any]) -> str:
    if document["kind"] == "ConfigMap":
        return str(document["metadata"]["name"]).removeprefix(f"{NAME}-")
    return str(document["kind"]).lower()


def _listed(names: list[str]) -> str:
    return "".join(f"  - {name}\n" for name in names)


NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: discreet
  labels:
    # Everything here runs under the strictest of Kubernetes' own profiles.
    pod-security.kubernetes.io/enforce: restricted
"""
KUSTOMIZATION = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
"""


def main() -> None:
    """Write the manifests anew; those that are no longer there are removed."""
    for stale in TARGET.rglob("*.yaml"):
        stale.unlink()
    for name, text in files().items():
        path = TARGET / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
