"""What waits, once for each of the two libraries: `_sync` has the second of each pair where `_async` has the first."""

from __future__ import annotations

import importlib
import time
from typing import IO, Any, AsyncIterator, Callable, Iterator, TypeVar

T = TypeVar("T")
_CHUNK = 65_536


def http() -> Any:
    """httpx2, or httpx where that is what there is. Asked for by the first client, so that an import stays fast."""
    for name in ("httpx2", "httpx"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
    raise ModuleNotFoundError("berth needs httpx2 (or httpx 0.23 or newer): pip install httpx2")


async def async_sleep(seconds: float) -> None:
    import anyio

    await anyio.sleep(seconds)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


async def async_in_thread(work: Callable[[], T]) -> T:
    """Reading and writing files does not hold up what else is awaited."""
    import anyio

    return await anyio.to_thread.run_sync(work)


def in_thread(work: Callable[[], T]) -> T:
    return work()


async def async_chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await async_in_thread(lambda: file.read(_CHUNK)):
        yield chunk


def chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
