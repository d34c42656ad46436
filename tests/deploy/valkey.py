"""The chart's own Valkey, started with its pod's command and configuration on this machine.

The embedded store's program speaks no TLS. Debian's does: `redis-check-rdb` is the server under
another name, and behaves as such when it is called by the server's.
"""

import base64
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.deploy.charts import only, pod_of
from tests.ports import free_port
from tests.requirements import REQUIREMENTS
from tests.waiting import PATIENCE

MOUNTS = ("/etc/valkey", "/run/valkey")
TLS = "/run/valkey-tls"


@dataclass(frozen=True)
class Valkey:
    """Where it listens, who signed its certificate, and its process."""

    port: int
    authority: Path
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
    (folder / "valkey.conf").write_text(text.replace(TLS, str(folder)))
    (folder / "valkey-password").write_text(password)
    for name, content in only(found, "Secret", "valkey-tls")["data"].items():
        (folder / name).write_bytes(base64.b64decode(content))
    script = container["args"][0]
    for mount in MOUNTS:
        assert mount in script
        script = script.replace(mount, str(folder))
    server = REQUIREMENTS["redis-check-rdb"].find()
    assert server is not None
    (folder / "valkey-server").symlink_to(server)
    process = subprocess.Popen(
        [*container["command"], script],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        stdout=subprocess.DEVNULL,
    )
    try:
        yield Valkey(port, folder / "ca.crt", process)
    finally:
        process.terminate()
        process.wait(PATIENCE)
