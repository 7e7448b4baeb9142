"""An interactive command in a unit, over a WebSocket: what is typed goes in as it is typed, and output comes as it is
printed."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, AsyncIterator, Mapping, Sequence

from .._calls import Call, headers_of, url_of
from .._pieces import Exit, OutputPiece
from .._shell import argv_of
from .._sockets import AsyncSocket, NotOpenedError
from ..errors import BerthError, ConnectionFailedError, error_of_envelope
from .transport import AsyncTransport

_STREAMS = {1: "stdout", 2: "stderr"}


class AsyncTerminal:
    """Iterate over its output, once. A command whose output is not read waits; it ends with its terminal."""

    def __init__(self, socket: AsyncSocket) -> None:
        self._socket = socket
        self._exit: Exit | None = None
        self._error: BerthError | None = None

    async def write(self, data: str | bytes) -> None:
        """Text, or bytes, for its standard input. Enter is `\\r`."""
        await self._socket.send(b"\0" + (data.encode() if isinstance(data, str) else data))

    async def resize(self, columns: int, rows: int) -> None:
        await self._tell(resize=[columns, rows])

    async def signal(self, name: str) -> None:
        """HUP, INT, QUIT, TERM, USR1 or USR2 for what runs in its foreground; KILL is for all that came of the command."""
        await self._tell(signal=name)

    async def end(self) -> None:
        """Ends its standard input."""
        await self._tell(eof=True)

    async def __aiter__(self) -> AsyncIterator[OutputPiece]:
        while (message := await self._socket.receive()) is not None:
            if isinstance(message, bytes):
                yield OutputPiece(_STREAMS.get(message[0], "stdout"), message[1:])
            else:
                self._hear(json.loads(message))

    async def wait(self) -> Exit:
        """Wait for its end. Unread output is dropped. Raises if it could not be run, or was killed with its unit."""
        async for _ in self:
            pass
        if self._exit is not None:
            return self._exit
        raise self._error or ConnectionFailedError("The connection ended before the command did.")

    async def close(self) -> None:
        """Ends the command in the unit, unless it has ended."""
        await self._socket.close()

    async def __aenter__(self) -> AsyncTerminal:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _tell(self, **message: Any) -> None:
        await self._socket.send(json.dumps(message))

    def _hear(self, told: Mapping[str, Any]) -> None:
        if "exit" in told:
            self._exit = Exit(told["exit"]["exitCode"], told["exit"]["timedOut"])
        else:
            self._error = error_of_envelope(told, {})


async def open_terminal(
    transport: AsyncTransport,
    unit_id: str,
    command: str | Sequence[str] | None,
    *,
    tty: bool,
    columns: int | None,
    rows: int | None,
    cwd: str | None,
    env: Mapping[str, str] | None,
    user: str | None,
    session: str | None,
    timeout: float | None,
) -> AsyncTerminal:
    query = {
        "tty": None if tty else "0",
        "cols": columns,
        "rows": rows,
        "cwd": cwd,
        "user": user,
        "session": session,
        "cmd": None if command is None else argv_of(command),
        "env": [f"{name}={value}" for name, value in (env or {}).items()],
    }
    call = Call("GET", f"/v1/units/{unit_id}/exec", query=query, timeout=timeout)
    settings = transport.settings
    headers = headers_of(settings, call, "*/*")
    url = "ws" + url_of(settings, call).removeprefix("http")
    try:
        socket = await AsyncSocket.open(url, headers, settings.timeout if timeout is None else timeout)
    except NotOpenedError as error:
        # Why it was refused is said in words to the same call without a WebSocket.
        try:
            await transport.json(call)
        except BerthError as refused:
            if not _is_about_upgrade(refused):
                raise refused from error
        raise ConnectionFailedError(f"{settings.url} cannot be reached: {error}") from error
    return AsyncTerminal(socket)


def _is_about_upgrade(error: BerthError) -> bool:
    """Whether nothing was wrong but that the call asked for no WebSocket."""
    details: Any = error.details if error.code == "validation" else None
    return isinstance(details, list) and all(each.get("path") == "upgrade" for each in details)
