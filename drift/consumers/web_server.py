"""How requests come in: sockets, limits of connections, names of hosts; uvicorn's only importer.

uvicorn closes no connection that never finishes a request's head, and refuses what is beyond its
limit. Here heads have a time, and an idle connection makes room for a new one.
"""

from __future__ import annotations

import gc
import socket
import sys
from contextlib import contextmanager
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from drift.consumers._json import as_json
from drift.errors import ParameterError, needing

with needing("starlette or uvicorn", "serve"):
    import h11
    import uvicorn
    from starlette.datastructures import Headers
    from starlette.responses import Response
    from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["CONNECTIONS", "KnownHosts", "is_local", "listening", "server", "short_pauses"]

#: Predictions that are answered at once, and connections that health has more: beyond both, the one
#: that has been idle for longest makes room.
CONNECTIONS, SPARE = 1_000, 50
#: Bytes of a request's head.
_HEAD = 16 << 10
#: Seconds for which a connection is kept between requests, and an answer waited for at the end.
_KEEP_ALIVE, _LAST = 65, 5
#: Seconds after which a thread that wants to run gets its turn: see `sys.setswitchinterval`.
_SWITCH = 0.0005
#: As of `gc.set_threshold`: a checkpoint brings 100,000 objects, and none of them is garbage.
_COLLECT = 20_000, 20, 20


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address.

    Raises
    ------
    ParameterError
        If the port is taken, or the address none of this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol, by which asyncio knows that answers are not to be held back.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as problem:
        listener.close()
        raise ParameterError(
            f"{host}:{port} cannot be listened at ({problem}): give a free port and an address "
            "of this machine"
        ) from None
    return listener


def server(app: ASGIApp, timeout: float) -> uvicorn.Server:
    """Return a server of an application; a request's head may take so many seconds."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            log_level="error",
            access_log=False,
            ws="none",
            lifespan="off",
            proxy_headers=False,
            server_header=False,
            backlog=CONNECTIONS,
            limit_concurrency=CONNECTIONS + SPARE,
            http=partial(_Connection, timeout=timeout),  # type: ignore[arg-type]
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=_LAST,
            h11_max_incomplete_event_size=_HEAD,
        )
    )


class _Connection(H11Protocol):
    """Closes a connection whose request's head does not come in time, or that has to make room."""

    def __init__(self, *given: Any, timeout: float, **more: Any) -> None:
        super().__init__(*given, **more)
        self._timeout = timeout
        self._due: asyncio.TimerHandle | None = None  # when a head has to be there
        self.since = self.loop.time()  # when something came

    @property
    def is_idle(self) -> bool:
        """Whether no request is read or answered."""
        return self.conn.their_state is h11.IDLE

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()
        if len(self.connections) >= CONNECTIONS + SPARE:
            ours = (
                connection for connection in self.connections if isinstance(connection, _Connection)
            )
            idle = [
                connection for connection in ours if connection is not self and connection.is_idle
            ]
            if idle:
                min(idle, key=lambda connection: connection.since).give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.since = self.loop.time()
        super().data_received(data)
        self._wait_for_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.trailing_data[0]:  # the beginning of the next request
            self._wait_for_head()

    def _wait_for_head(self) -> None:
        if not self.is_idle:
            self._end_waiting()
        elif self._due is None:
            self._due = self.loop.call_later(self._timeout, self.give_up)

    def _end_waiting(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def give_up(self) -> None:
        """Close it."""
        self._end_waiting()
        self.connections.discard(self)
        self.transport.close()


def is_local(host: str) -> bool:
    """Whether an address is reached from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class KnownHosts:
    """Refuses requests to names that are not known; an address is no other site's name."""

    def __init__(self, app: ASGIApp, known: set[str]) -> None:
        self.app, self.known = app, known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it; what is none has no host."""
        is_request = scope["type"] == "http"
        host = Headers(scope=scope).get("host", "") if is_request else ""
        if not is_request or self._is_known(host):
            await self.app(scope, receive, send)
            return
        error = f"{host!r:.100} is no name of this service: add it to hosts, in [serve]"
        await Response(as_json({"error": error}), 403, media_type="application/json")(
            scope, receive, send
        )

    def _is_known(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
            return name in self.known or bool(ip_address(name))
        except ValueError:
            return False


@contextmanager
def short_pauses() -> Iterator[None]:
    """Shorten pauses of the interpreter that would delay answers."""
    before = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(_SWITCH)
    gc.set_threshold(*_COLLECT)
    try:
        yield
    finally:
        sys.setswitchinterval(before[0])
        gc.set_threshold(*before[1])
