"""Several workers behind one socket: gunicorn's master, with uvicorn's server in each worker.

gunicorn's own ASGI worker parses requests in Python and costs twice the CPU of uvicorn with
httptools for each of them, so the worker here is uvicorn's server without uvicorn's own idea of
signals: the master decides when to stop, and requests in flight are finished first.
"""

import asyncio
import errno
import gc
import logging
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import uvicorn
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from gunicorn.workers.base import Worker as GunicornWorker
from prometheus_client.multiprocess import mark_process_dead

from discreet.app import create_app
from discreet.bounded_http import BoundedProtocol
from discreet.configuration import Configuration
from discreet.connections import MOST_REFUSED, ConnectionTable, HttpLimits
from discreet.errors import DiscreetError, InvalidArgument
from discreet.preparation import prepare
from discreet.protocol import DirectProtocol
from discreet.settings import Settings
from discreet.state.embedded import EmbeddedStore

log = logging.getLogger(__name__)

BACKLOG = 2_048
HUNG_SECONDS = 60
"""A worker whose event loop has not turned for so long is replaced."""


def serve(settings: Settings, configured: Configuration, *, demo: bool) -> None:
    """Serve these recommenders, and those that the store has already, until told to stop."""
    with ExitStack() as cleanup:
        listener = cleanup.enter_context(listen(settings))
        embedded: EmbeddedStore | None = None
        if settings.store is None:
            embedded = EmbeddedStore(settings.data_dir)
            cleanup.callback(embedded.stop)
            fresh = embedded.brand_new
            update = {"store": embedded.start(), "init": settings.init or fresh}
            settings = settings.model_copy(update=update)
        if demo:
            settings = settings.model_copy(update={"init": True})
        settings = allow_connections(settings)
        prepared = asyncio.run(prepare(settings, configured, demo=demo))
        port = listener.getsockname()[1]
        text = prepared.announcement(settings, port=port, embedded=embedded is not None)
        print(text, flush=True)
        # Only now may an empty store be begun: a worker that finds one later must not.
        settings = settings.model_copy(update={"init": False})
        GunicornServer(settings, listener, each_second=lambda: _restart_if_gone(embedded)).run()


def _restart_if_gone(embedded: EmbeddedStore | None) -> None:
    """Replace a keeper that was killed; it replaces its server by itself."""
    if embedded is None or embedded.running:
        return
    log.error("the embedded store's keeper is gone; starting another")
    embedded.stop()
    try:
        embedded.start()
    except DiscreetError:
        log.exception("the embedded store does not start")


_OTHER_FILES = MOST_REFUSED + 128
"""Descriptors of a worker that are no connections of callers: those that are being refused, the
store's, other instances', files."""
_FEWEST_CONNECTIONS = 16


def allow_connections(settings: Settings) -> Settings:
    """Let workers open as many descriptors as they may have connections, as far as we are let.

    Return settings with as many connections as there can be descriptors for.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.most_connections + _OTHER_FILES
    if hard != resource.RLIM_INFINITY and hard < wanted:
        most = max(hard - _OTHER_FILES, _FEWEST_CONNECTIONS)
        log.warning(
            "a process may have %d open files here, so a worker takes %d connections instead of "
            "%d: raise the hard limit (ulimit -n)",
            hard,
            most,
            settings.most_connections,
        )
        settings = settings.model_copy(update={"most_connections": most})
        wanted = hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return settings


def listen(settings: Settings) -> socket.socket:
    """Return a socket bound to the address, or say why it cannot be."""
    where = f"{settings.host}:{settings.port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host.strip("[]"), settings.port, type=socket.SOCK_STREAM
        )[0]
    except socket.gaierror:
        raise InvalidArgument("--host", f"{settings.host} is not an address here") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise InvalidArgument("--port", f"{where} is in use; choose another") from None
        raise InvalidArgument("--host", f"cannot listen on {where}: {error.strerror}") from None
    return listener


_GARBAGE_THRESHOLDS = (50_000, 20, 50)
"""Requests leave next to no cycles behind, so looking for them seldom costs little memory; at
Python's own pace it takes a fifth of a worker's time."""


_SWITCH_SECONDS = 0.0005
"""How long a thread keeps the interpreter that requests wait for, while it makes a model. Python's
own pace, five milliseconds, is five requests."""


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and leave what was loaded before out of all later searches for garbage; but not
        recommenders, which come while it starts: one that is replaced has to be found."""
        gc.collect()
        gc.freeze()
        await super().startup(sockets)
        sys.setswitchinterval(_SWITCH_SECONDS)
        gc.set_threshold(*_GARBAGE_THRESHOLDS)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the worker."""
        yield


class UvicornWorker(GunicornWorker):  # type: ignore[misc]
    """One process, one event loop, one application."""

    def init_signals(self) -> None:
        for each in self.SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        # A terminal sends Ctrl-C to everybody in the foreground; only the master acts on it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def run(self) -> None:
        with asyncio.Runner(loop_factory=_event_loop()) as runner:
            started = runner.run(self._serve())
        if not started:
            # Not gunicorn's "boot error", which would halt the whole service: the store may only
            # be away for a moment, and the next worker will find it.
            time.sleep(0.5)
            sys.exit(1)

    async def _serve(self) -> bool:
        settings: Settings = self.app.settings
        server = _Server(
            uvicorn.Config(
                self.wsgi,
                interface="asgi3",
                http=_protocol(settings),  # type: ignore[arg-type]
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=BACKLOG,
                timeout_keep_alive=self.cfg.keepalive,
                timeout_graceful_shutdown=self.cfg.graceful_timeout,
                timeout_notify=1,
                callback_notify=self._tick,
            )
        )
        self._server = server
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stop)
        loop.add_signal_handler(signal.SIGQUIT, self._stop_now)
        try:
            await server.serve(sockets=[one.sock for one in self.sockets])
        except SystemExit:
            # uvicorn's way of saying that the lifespan did not start.
            return False
        return bool(server.started)

    async def _tick(self) -> None:
        self.notify()
        if os.getppid() != self.ppid:
            log.warning("the master is gone; this worker stops")
            self._stop()

    def _stop(self) -> None:
        self._server.should_exit = True

    def _stop_now(self) -> None:
        self._server.should_exit = True
        self._server.force_exit = True


def _protocol(settings: Settings) -> Callable[..., asyncio.Protocol]:
    """Return what makes the protocol of each connection of this worker."""
    limits = HttpLimits(
        header_bytes=settings.most_header_bytes,
        headers=settings.most_headers,
        header_seconds=settings.header_seconds,
        body_seconds=settings.body_seconds,
        idle_seconds=settings.keep_alive_seconds,
        connections=settings.most_connections,
        connections_by_address=settings.most_connections_by_address,
    )
    kind = DirectProtocol if settings.http == "direct" else BoundedProtocol
    return partial(kind, table=ConnectionTable(limits))


def _event_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


class ServerLogger(Logger):  # type: ignore[misc]
    """gunicorn's logger, writing through ours. Requests are logged by the application."""

    def setup(self, cfg: Any) -> None:
        self.cfg = cfg
        self.loglevel = self.error_log.level
        self._access_log_enabled = False
        self.error_log.propagate = True

    def reopen_files(self) -> None:
        """There are no files."""


class _Master(Arbiter):  # type: ignore[misc]
    def handle_int(self) -> None:
        """Stop as for SIGTERM: requests in flight are finished. A second Ctrl-C is impatient."""
        self.handle_term()

    def handle_usr2(self) -> None:
        """Nothing: a second master would start a second embedded store on the same data."""

    def spawn_worker(self) -> int:
        """Fork a worker. The child ends here: unwinding would run what only the master may do."""
        try:
            pid: int = super().spawn_worker()
        except SystemExit as ending:
            if os.getpid() == self.pid:
                raise
            code = ending.code if isinstance(ending.code, int) else 0
            sys.stderr.flush()
            os._exit(code)
        return pid

    def manage_workers(self) -> None:
        self.app.each_second()
        super().manage_workers()


class GunicornServer(BaseApplication):  # type: ignore[misc]
    """The application as gunicorn knows it. `each_second` is called about once a second."""

    def __init__(
        self, settings: Settings, listener: socket.socket, each_second: Callable[[], None]
    ) -> None:
        self.settings = settings
        # gunicorn takes the descriptor over, and closes it when it stops.
        self._descriptor = listener.detach()
        self.each_second = each_second
        super().__init__()

    def load_config(self) -> None:
        for name, value in {
            "bind": f"fd://{self._descriptor}",
            "workers": self.settings.workers,
            "worker_class": UvicornWorker,
            "logger_class": ServerLogger,
            "keepalive": self.settings.keep_alive_seconds,
            "graceful_timeout": self.settings.stop_seconds,
            "timeout": HUNG_SECONDS,
            "control_socket_disable": True,
            "proc_name": "discreet",
            "child_exit": _forget,
        }.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        return create_app(self.settings)

    def run(self) -> None:
        """Serve until told to stop; returns when every worker has finished."""
        # Workers share the pages of what is loaded, as long as nobody looks there for garbage.
        gc.collect()
        gc.freeze()
        try:
            _Master(self).run()
        except SystemExit as ending:
            if ending.code:
                raise


def _forget(server: Any, worker: Any) -> None:
    """Drop a dead worker's gauges; what it counted stays counted."""
    mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
