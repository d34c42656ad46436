"""The chart's Deployment, run as one container: its arguments, environment, files and limits.

What a kubelet would do with the rendered objects is done by hand: ConfigMaps and Secrets become
files with the modes that the volumes give them, emptyDirs become tmpfs. The chart's own Valkey runs
beside it, with its own command, and `helm test` runs in a container of its own.
"""

import base64
import os
import shutil
from pathlib import Path
from typing import Any

from tests.deploy.charts import CHART, RELEASE_NAME, objects, only, pod_of, template
from tests.deploy.valkey import own_store
from tests.ports import free_port

SERVICE = f"{RELEASE_NAME}-valkey"
VALUES = CHART / "ci" / "trial-values.yaml"
Objects = tuple[dict[str, Any], ...]


def files_of(found: Objects, volume: dict[str, Any]) -> dict[str, bytes]:
    """Return what a volume shows, by file name."""
    if "configMap" in volume:
        data = _named(found, "ConfigMap", volume["configMap"]["name"])["data"]
        return {name: text.encode() for name, text in data.items()}
    data = _named(found, "Secret", volume["secret"]["secretName"])["data"]
    return {item["path"]: base64.b64decode(data[item["key"]]) for item in volume["secret"]["items"]}


def _named(found: Objects, kind: str, name: str) -> dict[str, Any]:
    (one,) = [e for e in found if e["kind"] == kind and e["metadata"]["name"] == name]
    return one


def mounts(found: Objects, pod: dict[str, Any], folder: Path, port: int) -> list[str]:
    """Write a pod's volumes into a folder; return podman's options for them."""
    (container,) = pod["containers"]
    group = pod["securityContext"]["fsGroup"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    options = []
    for mount in container["volumeMounts"]:
        volume = volumes[mount["name"]]
        if "emptyDir" in volume:
            options += ["--tmpfs", f"{mount['mountPath']}:mode=1777"]
            continue
        place = folder / mount["name"]
        place.mkdir(parents=True)
        for name, content in files_of(found, volume).items():
            # The Service's name leads to this machine, where Valkey listens at another port.
            content = content.replace(f"{SERVICE}:6379".encode(), f"{SERVICE}:{port}".encode())
            (place / name).write_bytes(content)
            os.chown(place / name, 0, group)
            mode = volume.get("secret", {}).get("defaultMode", 0o644)
            (place / name).chmod(mode)
        options += ["--volume", f"{place}:{mount['mountPath']}:ro"]
    return options


def strictness(pod: dict[str, Any]) -> list[str]:
    """Return podman's options for what a pod's security contexts say."""
    (container,) = pod["containers"]
    own, whole = container["securityContext"], pod["securityContext"]
    assert own["readOnlyRootFilesystem"]
    assert own["capabilities"]["drop"] == ["ALL"]
    assert not own["allowPrivilegeEscalation"]
    return [
        "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges",
        "--user", f"{whole['runAsUser']}:{whole['runAsGroup']}",
        "--group-add", str(whole["fsGroup"]),
        "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--network", "host",
        "--add-host", f"{SERVICE}:127.0.0.1",
    ]  # fmt: skip


def check_deployment(shop: Any, image: str) -> str:
    """Run the pods of the trial's values; return what `helm test` says."""
    folder = shop.folder / "pods"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    found = tuple(objects(template("--values", VALUES)))
    held = _named(found, "Secret", f"{RELEASE_NAME}-valkey")["data"]
    password = base64.b64decode(held["valkey-password"]).decode()
    server, test = pod_of(only(found, "Deployment")), pod_of(only(found, "Pod", "test"))
    assert server is not None
    assert test is not None
    port = free_port()
    here = {"DISCREET_PORT": str(port), "DISCREET_HOST": "127.0.0.1"}
    (folder / "valkey").mkdir()
    with own_store(found, folder / "valkey", password=password) as store:
        name = f"discreet-pod-{port}"
        (container,) = server["containers"]
        environment = {entry["name"]: entry["value"] for entry in container["env"]} | here
        shop.podman(
            "run", "--detach", "--no-healthcheck", "--name", name, *strictness(server),
            *mounts(found, server, folder / "server", store.port), *_flags(environment),
            image, *container["args"],
        )  # fmt: skip
        try:
            shop.wait_until_ready(name, port)
            (container,) = test["containers"]
            environment = {entry["name"]: entry["value"] for entry in container["env"]}
            said = shop.podman(
                "run", "--rm", "--no-healthcheck", *strictness(test),
                *mounts(found, test, folder / "test", store.port),
                *_flags(environment | {"URL": f"http://127.0.0.1:{port}"}),
                "--entrypoint", container["command"][0], image,
                *container["command"][1:], *container["args"],
            )  # fmt: skip
            shop.podman("kill", "--signal", "TERM", name)
            assert shop.podman("wait", name) == "0", "the pod does not stop gracefully"
        finally:
            shop.podman("rm", "--force", name, check=False)
    return str(said)


def _flags(environment: dict[str, str]) -> list[str]:
    return [part for name, value in environment.items() for part in ("--env", f"{name}={value}")]
