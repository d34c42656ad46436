"""`make image`: build the image and see it serve, as strictly as Kubernetes would run it.

There is no Docker here: buildah builds, podman runs with runc, both as root. The Dockerfile's base
comes from a registry; this check makes one of Debian's own packages instead (mmdebstrap), and
hands pip a wheelhouse that this machine's pip filled, so that it needs what pip and apt need and
nothing else. What is checked:

    - it builds from files that have the hashes in deploy/image, and lists what it is made of
    - it holds neither pip nor a compiler nor anything of the repository but the service
    - it runs as nobody in particular, on a read-only root, without capabilities
    - it answers, learns, tells its health by its own HEALTHCHECK
    - told to stop, it finishes and ends with 0, and what it learned and spent is there afterwards
    - it does so as the chart's Deployment says, beside the chart's Valkey, and passes `helm test`
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.deploy.pod import check_deployment
from tests.house import ROOT
from tests.ports import free_port
from tests.requirements import REQUIREMENTS

IMAGE = "localhost/discreet:check"
BASE = "localhost/discreet-base:check"
PACKAGES = "python3,python3-venv,ca-certificates,binutils"
KEY = "key-for-the-image"
USER = 10001


class Failed(Exception):
    """Something is not as it should be."""


def expect(truth: object, complaint: str) -> None:
    """Say what is wrong, unless it is right."""
    if not truth:
        raise Failed(complaint)


class Workshop:
    """A folder with storage of its own, so that nobody's images are touched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        driver = "overlay" if _overlay_works(folder) else "vfs"
        (folder / "storage.conf").write_text(
            f'[storage]\ndriver = "{driver}"\n'
            f'runroot = "{folder}/run"\ngraphroot = "{folder}/graph-{driver}"\n'
        )
        self.environment = os.environ | {
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            "STORAGE_DRIVER": driver,
            "BUILDAH_ISOLATION": "chroot",
        }

    def run(self, *command: str | Path, check: bool = True) -> str:
        """Run a program in this storage and return what it says."""
        answer = subprocess.run(command, capture_output=True, text=True, env=self.environment)
        if check and answer.returncode != 0:
            shown = " ".join(map(str, command))
            raise Failed(f"{shown} ended with {answer.returncode}:\n{answer.stderr[-3000:]}")
        return answer.stdout.strip()

    def podman(self, *command: str | Path, check: bool = True) -> str:
        """Run podman without systemd, which need not be there."""
        return self.run(
            "podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs", *command, check=check
        )

    def wait_until_ready(self, name: str, port: int) -> None:
        """Wait as an orchestrator would."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                if httpx.get(f"http://127.0.0.1:{port}/health/ready", timeout=5).is_success:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.2)
        raise Failed(f"{name} is not ready in time:\n{self.podman('logs', name, check=False)}")


def _overlay_works(folder: Path) -> bool:
    """Tell whether layers can be laid over each other here; copying them is much slower."""
    parts = {name: folder / "overlay" / name for name in ("lower", "upper", "work", "merged")}
    for part in parts.values():
        part.mkdir(parents=True, exist_ok=True)
    options = "lowerdir={lower},upperdir={upper},workdir={work}".format(**parts)
    mount = ["mount", "-t", "overlay", "overlay", "-o", options, str(parts["merged"])]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        return False
    subprocess.run(["umount", str(parts["merged"])], check=True)
    return True


def make_base(shop: Workshop) -> None:
    """Make a Debian with Python, unless it was made before."""
    if BASE in shop.run("buildah", "images", "--format", "{{.Name}}:{{.Tag}}"):
        return
    archive = shop.folder / "base.tar"
    shop.run("mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", archive)
    container = shop.run("buildah", "from", "scratch")
    shop.run("buildah", "add", container, archive, "/")
    shop.run("buildah", "config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", container)
    shop.run("buildah", "commit", container, BASE)
    shop.run("buildah", "rm", container)
    archive.unlink()


def make_wheels(shop: Workshop) -> Path:
    """Fill a folder with the files that the image's locks name; each has the hash it has there."""
    wheels = shop.folder / "wheels"
    for lock in sorted((ROOT / "deploy" / "image").glob("*.lock")):
        shop.run(
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--require-hashes", "--dest", wheels, "-r", lock,
        )  # fmt: skip
    return wheels


def build(shop: Workshop, wheels: Path) -> dict[str, Any]:
    """Build the image; return what is written on it."""
    shop.run(
        "buildah", "build", "--quiet", "--format", "docker", "--volume", f"{wheels}:/wheels:ro",
        "--build-arg", f"BASE={BASE}",
        "--build-arg", "PIP_ARGUMENTS=--no-index --find-links /wheels",
        "--tag", IMAGE, ROOT,
    )  # fmt: skip
    inspected: dict[str, Any] = json.loads(shop.podman("image", "inspect", IMAGE))[0]
    return inspected


def check_label(image: dict[str, Any]) -> None:
    """Check what the image says about itself."""
    config = image["Config"]
    expect(config["User"] == f"{USER}:{USER}", f"the image runs as {config['User']}")
    expect(config["StopSignal"] in ("SIGTERM", "15"), "the image is not stopped by SIGTERM")
    expect(image.get("Healthcheck") or config.get("Healthcheck"), "the image has no health check")


STRICT = (
    "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges",
    "--tmpfs", "/tmp:mode=1777", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024",
)  # fmt: skip


@contextmanager
def container(shop: Workshop, data: Path, port: int, *command: str) -> Iterator[str]:
    """Run the image, and remove the container in the end."""
    name = f"discreet-check-{port}"
    shop.podman(
        "run", "--detach", "--name", name, "--no-healthcheck", "--network", "host", *STRICT,
        "--volume", f"{data}:/data", "--env", f"DISCREET_PORT={port}",
        "--env", "DISCREET_HOST=127.0.0.1", "--env", f"DISCREET_API_KEY={KEY}", IMAGE, *command,
    )  # fmt: skip
    try:
        yield name
    finally:
        shop.podman("rm", "--force", name, check=False)


def call(port: int, method: str, path: str, body: Any = None) -> Any:
    """Call the service and insist on success."""
    answer = httpx.request(
        method, f"http://127.0.0.1:{port}{path}", json=body, timeout=120,
        headers={"Authorization": f"Bearer {KEY}"},
    )  # fmt: skip
    expect(answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}")
    return answer.json()


def check_life(shop: Workshop, image: dict[str, Any]) -> None:
    """Start it, use it, look inside, stop it, and find everything again."""
    data = shop.folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    os.chown(data, USER, USER)
    port = free_port()
    question = {"recommender": "films", "client": "ada", "context": [0.2, 0.7]}
    with container(shop, data, port, "serve", "--demo") as name:
        shop.wait_until_ready(name, port)
        answer = call(port, "POST", "/recommend", question)
        expect(answer["personalised"], "the answer is not personalised")
        feedback = {"recommendation_id": answer["recommendation_id"], "reward": 1}
        receipt = call(port, "POST", "/feedback", feedback)
        expect(receipt["accepted"] and receipt["learned"], "feedback is not learned")
        check_inside(shop, name, image)
        began = time.monotonic()
        shop.podman("kill", "--signal", "TERM", name)
        code = shop.podman("wait", name)
        expect(code == "0", f"it ends with {code} when it is told to stop")
        print(f"  stopped with 0 after {time.monotonic() - began:.1f} s")
    with container(shop, data, port, "serve", "--demo") as name:
        shop.wait_until_ready(name, port)
        accounts = call(port, "GET", "/clients/ada/budget?recommender=films")
        spent = accounts["answers"]["spent"]["epsilon"]
        expect(spent == 2.0, f"after a restart ada has spent {spent} on answers, not 2")
        expect(accounts["feedback"]["spent"]["epsilon"] > 0, "ada's feedback cost nothing")
        repeated = call(port, "POST", "/feedback", feedback)
        expect(repeated["duplicate"], "after a restart the same feedback is counted twice")
        shop.podman("kill", "--signal", signal.SIGTERM.name, name)
        shop.podman("wait", name)


def check_inside(shop: Workshop, name: str, image: dict[str, Any]) -> None:
    """Look around in the running container."""

    def inside(*command: str) -> str:
        return shop.podman("exec", name, *command)

    status = inside("cat", "/proc/1/status")
    expect(f"Uid:\t{USER}" in status, "its first process is somebody else")
    expect("CapEff:\t0000000000000000" in status, "it has capabilities")
    expect("NoNewPrivs:\t1" in status, "it can gain privileges")
    health = (image.get("Healthcheck") or image["Config"]["Healthcheck"])["Test"]
    expect(health[0] == "CMD", "the health check is no plain command")
    inside(*health[1:])
    for absent in ("pip", "gcc"):
        found = shop.podman("exec", name, "sh", "-c", f"command -v {absent}", check=False)
        expect(not found, f"the image holds {found}")
    parts = json.loads(inside("cat", "/opt/discreet/sbom.cdx.json"))["components"]
    listed = {part["name"] for part in parts}
    expect({"fastapi", "numpy", "opendp"} <= listed, "its list of parts is not complete")
    expect("cyclonedx-bom" not in listed, "what built it is still in it")
    written = shop.podman("exec", name, "sh", "-c", "touch /opt/x && echo yes", check=False)
    expect(written != "yes", "its root can be written")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, check, and say what came of it."""
    parser = argparse.ArgumentParser(prog="make image")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "image")
    parser.add_argument("--keep", action="store_true", help="keep the images and the base")
    options = parser.parse_args(arguments)
    for name in ("buildah", "podman", "runc", "mmdebstrap"):
        if REQUIREMENTS[name].find() is None:
            print(f"{name} is missing; {REQUIREMENTS[name].remedy}", file=sys.stderr)
            return 1
    shop = Workshop(options.folder.resolve())
    try:
        print("making a base, and collecting wheels", flush=True)
        make_base(shop)
        wheels = make_wheels(shop)
        print("building", flush=True)
        image = build(shop, wheels)
        base = json.loads(shop.podman("image", "inspect", BASE))[0]["Size"]
        print(f"  {image['Size'] / 1e6:.0f} MB, of which the base is {base / 1e6:.0f} MB")
        check_label(image)
        print("running it", flush=True)
        check_life(shop, image)
        print("running it as the chart's Deployment, with the chart's store", flush=True)
        print(f"  helm test: {check_deployment(shop, IMAGE)}")
    except Failed as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    finally:
        if not options.keep:
            shutil.rmtree(shop.folder, ignore_errors=True)
    print("the image is as it should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
