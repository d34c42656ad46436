"""A port is given once, to whichever process asks, and a server can listen on it."""

import socket
import subprocess
import sys

import pytest

from tests import ports
from tests.house import ROOT

PROGRAM = """
import socket, sys
from tests import ports
ports.FIRST, ports.LAST = map(int, sys.argv[1:])
print(ports.free_port())
"""


def other_process(first: int, last: int) -> subprocess.CompletedProcess[str]:
    """Choose from a range as another run would."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(first), str(last)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_no_port_is_given_twice() -> None:
    assert len(set(ports.free_ports(50))) == 50


def test_a_server_can_listen_on_it_again_and_again() -> None:
    port = ports.free_port()
    for _ in range(2):
        with socket.create_server(("127.0.0.1", port)) as server:
            assert server.getsockname()[1] == port


def test_another_process_does_not_get_what_is_held_here() -> None:
    port = ports.free_port()
    refused = other_process(port, port)
    assert refused.returncode != 0
    assert f"no port from {port} to {port} is free" in refused.stderr


def test_what_somebody_listens_on_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(ports, "FIRST", port)
        monkeypatch.setattr(ports, "LAST", port)
        with pytest.raises(AssertionError, match="is free"):
            ports.free_port()
