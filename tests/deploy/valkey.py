"""The chart's own Valkey, started with its pod's command and configuration on this machine."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.state.keeper import find_server
from tests.deploy.charts import only, pod_of
from tests.end_to_end.servers import free_port

MOUNTS = ("/etc/valkey", "/run/valkey")


@dataclass(frozen=True)
class Valkey:
    """Where it listens, and its process."""

    port: int
    process: subprocess.Popen[bytes]


@contextmanager
def own_store(
    found: tuple[dict[str, Any], ...], folder: Path, *, password: str
) -> Iterator[Valkey]:
    """Run the StatefulSet's container without a container: its paths are moved into a folder."""
    pod = pod_of(only(found, "StatefulSet", "valkey"))
    assert pod is not None
    (container,) = pod["containers"]
    port = free_port()
    text = only(found, "ConfigMap", "valkey")["data"]["valkey.conf"]
    text = text.replace("dir /data", f"dir {folder}").replace("6379", str(port))
    (folder / "valkey.conf").write_text(text)
    (folder / "valkey-password").write_text(password)
    script = container["args"][0]
    for mount in MOUNTS:
        assert mount in script
        script = script.replace(mount, str(folder))
    process = subprocess.Popen(
        [*container["command"], script],
        env={"PATH": f"{Path(find_server()).parent}:/usr/bin:/bin"},
        stdout=subprocess.DEVNULL,
    )
    try:
        yield Valkey(port, process)
    finally:
        process.terminate()
        process.wait(30)
