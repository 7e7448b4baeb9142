"""A WebSocket, once for each of the two libraries. It takes `websockets`, which is asked for by the first terminal. Debian
12 has a version that knows asyncio alone: who waits where they stand has it in a thread."""

from __future__ import annotations

import asyncio
import importlib
import threading
from typing import Any, Coroutine, Mapping, TypeVar

T = TypeVar("T")


class NotOpenedError(Exception):
    """The service refused it, or was not reached."""


class AsyncSocket:
    def __init__(self, connection: Any, closed: type[Exception]) -> None:
        self._connection = connection
        self._closed = closed

    @staticmethod
    async def open(url: str, headers: Mapping[str, str], timeout: float) -> AsyncSocket:
        connect, named, closed, failed = _library()
        given = {"max_size": None, "compression": None, "open_timeout": timeout, "subprotocols": ["berth.v1"]}
        try:
            connection = await connect(url, **given, **{named: dict(headers)})
        except failed as error:
            raise NotOpenedError(str(error) or type(error).__name__) from error
        return AsyncSocket(connection, closed)

    async def send(self, message: str | bytes) -> None:
        """What is sent to one that has closed goes nowhere."""
        try:
            await self._connection.send(message)
        except self._closed:
            pass

    async def receive(self) -> str | bytes | None:
        """None: it has closed."""
        try:
            message: str | bytes = await self._connection.recv()
        except self._closed:
            return None
        return message

    async def close(self) -> None:
        await self._connection.close()


class Socket:
    def __init__(self, loop: _Loop, socket: AsyncSocket) -> None:
        self._loop = loop
        self._socket = socket

    @staticmethod
    def open(url: str, headers: Mapping[str, str], timeout: float) -> Socket:
        loop = _Loop()
        try:
            return Socket(loop, loop.run(AsyncSocket.open(url, headers, timeout)))
        except BaseException:
            loop.stop()
            raise

    def send(self, message: str | bytes) -> None:
        if self._loop.is_running():
            self._loop.run(self._socket.send(message))

    def receive(self) -> str | bytes | None:
        return self._loop.run(self._socket.receive()) if self._loop.is_running() else None

    def close(self) -> None:
        if self._loop.is_running():
            self._loop.run(self._socket.close())
            self._loop.stop()


class _Loop:
    """An event loop in a thread, which does not keep the program from ending."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="berth-terminal")
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def is_running(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _library() -> tuple[Any, str, type[Exception], tuple[type[Exception], ...]]:
    """What connects, the name of its argument for headers, and what it raises: of version 13 and newer, or 10 to 12."""
    try:
        errors = importlib.import_module("websockets.exceptions")
    except ModuleNotFoundError as error:
        if error.name != "websockets":
            raise
        raise ModuleNotFoundError("unit.terminal() needs websockets 10 or newer: pip install websockets") from error
    failed = (OSError, asyncio.TimeoutError, errors.WebSocketException)
    try:
        connect = importlib.import_module("websockets.asyncio.client").connect
    except ModuleNotFoundError:
        connect = importlib.import_module("websockets.client").connect
        return connect, "extra_headers", errors.ConnectionClosed, failed
    return connect, "additional_headers", errors.ConnectionClosed, failed
