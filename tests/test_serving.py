"""The socket, and gunicorn's settings. Workers really run in tests/end_to_end."""

import gc
import resource
import socket
import sys
import weakref

import pytest
import uvicorn

from discreet.errors import InvalidArgument
from discreet.serving import (
    GunicornServer,
    UvicornWorker,
    _Server,
    allow_connections,
    listen,
)
from discreet.settings import Settings
from tests.waiting import PATIENCE


def test_a_free_port_is_listened_on() -> None:
    with listen(Settings(port=0)) as listener:
        host, port = listener.getsockname()
        assert host == "127.0.0.1"
        with socket.create_connection((host, port), timeout=PATIENCE):
            pass


def test_a_port_in_use_and_a_foreign_address_are_named() -> None:
    with listen(Settings(port=0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidArgument, match="in use") as caught:
            listen(Settings(port=port))
    assert caught.value.argument == "--port"
    for host in ("203.0.113.7", "no-such-host.invalid"):
        with pytest.raises(InvalidArgument) as caught:
            listen(Settings(host=host, port=0))
        assert caught.value.argument == "--host"


def test_gunicorn_is_told_what_the_settings_say() -> None:
    settings = Settings(port=0, workers=3, keep_alive_seconds=7, stop_seconds=9)
    with listen(settings) as listener:
        server = GunicornServer(settings, listener, each_second=lambda: None)
        try:
            assert server.cfg.workers == 3
            assert server.cfg.keepalive == 7
            assert server.cfg.graceful_timeout == 9
            assert server.cfg.worker_class is UvicornWorker
            assert server.load().title == "Discreet"
        finally:
            socket.close(server._descriptor)


class Circle:
    """Refers to itself, as recommenders and their parts do to each other."""

    def __init__(self) -> None:
        self.own = self


@pytest.mark.anyio
async def test_what_comes_while_a_worker_starts_is_found_once_it_is_garbage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is frozen is never freed; a catalogue that is replaced has to be."""
    loaded: list[Circle] = []

    async def load(self: uvicorn.Server, sockets: object = None) -> None:
        loaded.append(Circle())

    monkeypatch.setattr(uvicorn.Server, "startup", load)
    thresholds, pace = gc.get_threshold(), sys.getswitchinterval()
    try:
        await _Server(uvicorn.Config("none")).startup()
        seen = weakref.ref(loaded.pop())
        gc.collect()
        assert seen() is None
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(pace)


@pytest.mark.parametrize(("hard", "most"), [(10_000, 4_096), (1_000, 744), (100, 16)])
def test_there_are_no_more_connections_than_files_may_be_open(
    monkeypatch: pytest.MonkeyPatch, hard: int, most: int
) -> None:
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (50, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: limits.append(wanted))
    assert allow_connections(Settings()).most_connections == most
    assert limits == [(min(4_096 + 256, hard), hard)]
