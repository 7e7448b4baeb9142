"""Files of a unit: up to 1 MB each by `read` and `write`, any size as a stream, directories of up to 2 GB as tar archives."""

from __future__ import annotations

import base64
import os
from typing import IO, TYPE_CHECKING, Any, AsyncIterator, Iterable, List

from .._archives import opened, packed, remote, unpacked
from .._calls import MAX_WAIT, Call, without_none
from .._pieces import Change, Page
from .._waiting import async_in_thread
from .lists import AsyncPages
from .transport import AsyncTransport

if TYPE_CHECKING:
    from .. import types as t

#: In seconds.
_LONGEST_STREAM = 3600.0

RemotePath = str | os.PathLike[str]


class AsyncFiles:
    def __init__(self, transport: AsyncTransport, unit_id: str) -> None:
        self._transport = transport
        self._unit = f"/v1/units/{unit_id}"

    async def write(
        self,
        path: RemotePath,
        content: str | bytes | os.PathLike[str] | IO[bytes],
        *,
        mode: int | None = None,
        user: str | None = None,
        timeout: float | None = None,
    ) -> t.FileWritten:
        """Text, bytes, a file here by its `pathlib.Path`, or an open one. Makes the directories on the way. Raises
        ValidationError over 1 MB. Without `mode`, such as 0o755, a file that exists keeps its own. `user`: whose it is to be, a
        name or a number of the unit's `/etc/passwd`."""
        if isinstance(content, str):
            data = content.encode()
        elif isinstance(content, bytes):
            data = content
        else:
            source = content
            data = await async_in_thread(lambda: _whole(source))
        query = {"path": remote(path), "mode": _octal(mode), "user": user}
        call = Call("PUT", f"{self._unit}/files", query=query, content=data, timeout=timeout)
        written: t.FileWritten = await self._transport.json(call)
        return written

    async def read(
        self, path: RemotePath, *, user: str | None = None, timeout: float | None = None
    ) -> bytes:
        """`user`: as whom to read, a name or a number of the unit's `/etc/passwd`; without one, as root. Raises NotFoundError where there is none, ValidationError over 1 MB."""
        call = Call("GET", f"{self._unit}/files", query={"path": remote(path), "user": user}, timeout=timeout)
        told: t.FileRead = await self._transport.json(call)
        return base64.b64decode(told["contentBase64"])

    async def read_text(
        self, path: RemotePath, *, user: str | None = None, timeout: float | None = None
    ) -> str:
        """As UTF-8."""
        return (await self.read(path, user=user, timeout=timeout)).decode("utf-8", "replace")

    def read_stream(
        self, path: RemotePath, *, user: str | None = None, timeout: float | None = None
    ) -> AsyncIterator[bytes]:
        """A file of any size, as it is read."""
        query = {"path": remote(path), "user": user}
        call = Call("GET", f"{self._unit}/files/content", query=query, timeout=timeout)
        return self._transport.chunks(call)

    async def write_stream(
        self,
        path: RemotePath,
        content: bytes | os.PathLike[str] | IO[bytes],
        *,
        mode: int | None = None,
        user: str | None = None,
        timeout: float | None = None,
    ) -> t.FileWritten:
        """Writes a file of any size: bytes, a file here by its `pathlib.Path`, or an open one."""
        file = await async_in_thread(lambda: opened(content))
        query = {"path": remote(path), "mode": _octal(mode), "user": user}
        try:
            call = Call(
                "PUT",
                f"{self._unit}/files/content",
                query=query,
                content=file,
                timeout=timeout,
                extra=_LONGEST_STREAM,
            )
            written: t.FileWritten = await self._transport.json(call)
            return written
        finally:
            if file is not content:
                file.close()

    async def watch(
        self, path: RemotePath, *, recursive: bool = False, timeout: float | None = None
    ) -> AsyncIterator[Change]:
        """What changes in a directory, with `recursive` also below it, until it is removed or the unit's run ends. `overflow`
        says that some changes were lost."""
        query = {"path": remote(path), "recursive": recursive}
        call = Call("GET", f"{self._unit}/files/watch", query=query, timeout=timeout)
        async for event, data, _ in self._transport.events(call):
            if event == "end":
                return
            yield Change(event, data.get("path", ""), data.get("isDirectory", False), data.get("pathEncoding"))

    async def facts(
        self, path: RemotePath, *, user: str | None = None, timeout: float | None = None
    ) -> t.FileFacts:
        """What is at a path: its type, size, mode and owner. A link is not followed."""
        query = {"path": remote(path), "user": user}
        call = Call("GET", f"{self._unit}/files/facts", query=query, timeout=timeout)
        facts: t.FileFacts = await self._transport.json(call)
        return facts

    async def move(
        self, path: RemotePath, to: RemotePath, *, user: str | None = None, timeout: float | None = None
    ) -> t.FileMoved:
        """Makes the directories above the new path, and replaces a file there."""
        body = without_none(path=remote(path), to=remote(to), user=user)
        call = Call("POST", f"{self._unit}/files/move", body=body, timeout=timeout)
        moved: t.FileMoved = await self._transport.json(call)
        return moved

    async def make_directory(
        self, path: RemotePath, *, mode: int | None = None, user: str | None = None, timeout: float | None = None
    ) -> t.DirectoryMade:
        """With those above it."""
        body = without_none(path=remote(path), mode=_octal(mode), user=user)
        call = Call("POST", f"{self._unit}/directory", body=body, timeout=timeout)
        made: t.DirectoryMade = await self._transport.json(call)
        return made

    def list(
        self,
        path: RemotePath,
        *,
        depth: int | None = None,
        limit: int | None = None,
        user: str | None = None,
        timeout: float | None = None,
    ) -> AsyncPages[t.DirectoryEntry]:
        """What is in a directory, by name; with `depth` also what is in its directories."""

        async def read(after: str | None) -> Page[t.DirectoryEntry]:
            query = {"path": remote(path), "after": after, "limit": limit, "depth": depth, "user": user}
            call = Call("GET", f"{self._unit}/directory", query=query, timeout=timeout)
            told: t.DirectoryList = await self._transport.json(call)
            return Page(told["entries"], told["next"])

        return AsyncPages(read)

    async def delete(
        self, path: RemotePath, *, recursive: bool = False, timeout: float | None = None
    ) -> t.FileDeleted:
        """A directory with all that is in it only where `recursive` says so."""
        query = {"path": remote(path), "recursive": recursive}
        deleted: t.FileDeleted = await self._transport.json(
            Call("DELETE", f"{self._unit}/files", query=query, timeout=timeout)
        )
        return deleted

    def archive(
        self, path: RemotePath, *, user: str | None = None, timeout: float | None = None
    ) -> AsyncIterator[bytes]:
        """A directory or file as a tar archive, as it is made. It is the unit's: unpack it as you would a stranger's."""
        query = {"path": remote(path), "user": user}
        call = Call("GET", f"{self._unit}/archive", query=query, timeout=timeout)
        return self._transport.chunks(call)

    async def unpack(
        self,
        path: RemotePath,
        archive: bytes | os.PathLike[str] | IO[bytes] | Iterable[bytes],
        *,
        keep: bool = False,
        timeout: float | None = None,
    ) -> t.ArchiveWritten:
        """Unpacks a tar archive into a directory, which is made if it is not there. With `keep`, files that exist are
        written in place, as by `cp -r`: they keep their mode and owner, and links are followed."""
        file = await async_in_thread(lambda: opened(archive))
        try:
            return await self._unpack(path, file, timeout, keep)
        finally:
            if file is not archive:
                file.close()

    async def upload(
        self, local: str | os.PathLike[str], path: RemotePath, *, timeout: float | None = None
    ) -> t.ArchiveWritten:
        """Upload the content of a local directory into a directory of the unit."""
        with await async_in_thread(lambda: packed(local)) as file:
            return await self._unpack(path, file, timeout)

    async def download(
        self, path: RemotePath, local: str | os.PathLike[str], *, timeout: float | None = None
    ) -> List[str]:
        """Download the content of a directory of the unit into a local directory, which is created if it is missing. Return
        the names of what was left out: links and devices, which could lead anywhere on this machine."""
        import tempfile

        with tempfile.TemporaryFile() as file:
            async for chunk in self.archive(path, timeout=timeout):
                file.write(chunk)
            file.seek(0)
            return await async_in_thread(lambda: unpacked(file, local))

    async def _unpack(
        self, path: RemotePath, file: IO[bytes], timeout: float | None, keep: bool = False
    ) -> t.ArchiveWritten:
        call = Call(
            "PUT",
            f"{self._unit}/archive",
            query={"path": remote(path), "keep": keep or None},
            content=file,
            content_type="application/x-tar",
            timeout=timeout,
            extra=MAX_WAIT,
        )
        written: t.ArchiveWritten = await self._transport.json(call)
        return written


def _octal(mode: int | None) -> str | None:
    return None if mode is None else f"{mode:04o}"


def _whole(source: Any) -> bytes:
    if isinstance(source, os.PathLike):
        with open(source, "rb") as file:
            return file.read()
    data: bytes = source.read()
    return data
