"""Tar archives of directories here. What comes from a unit is a stranger's: it never names a place outside the directory
that it is unpacked into."""

from __future__ import annotations

import io
import os
from typing import IO, TYPE_CHECKING, Any, Iterable

if TYPE_CHECKING:
    import tarfile

_IN_MEMORY = 8 * 1024 * 1024


def remote(path: str | os.PathLike[str]) -> str:
    """A path in a unit, which knows no backslashes."""
    return path if isinstance(path, str) else os.fspath(path).replace(os.sep, "/")


def opened(archive: bytes | os.PathLike[str] | IO[bytes] | Iterable[bytes]) -> IO[bytes]:
    """A file that can be read twice, as a call may have to be sent again."""
    import shutil
    import tempfile

    if isinstance(archive, bytes):
        return io.BytesIO(archive)
    if isinstance(archive, os.PathLike):
        return open(archive, "rb")
    source: Any = archive
    if hasattr(source, "read") and source.seekable():
        file: IO[bytes] = source
        return file
    spool = tempfile.SpooledTemporaryFile(_IN_MEMORY)
    if hasattr(source, "read"):
        shutil.copyfileobj(source, spool)
    else:
        spool.writelines(source)
    spool.seek(0)
    return spool


def packed(local: str | os.PathLike[str]) -> IO[bytes]:
    """What is in a directory, as an archive that begins in it. Raises NotADirectoryError."""
    import tarfile
    import tempfile

    names = sorted(os.listdir(local))
    spool = tempfile.SpooledTemporaryFile(_IN_MEMORY)
    with tarfile.open(fileobj=spool, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            tar.add(os.path.join(local, name), arcname=name, filter=_nobodys)
    spool.seek(0)
    return spool


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Owners here mean nothing there, and parts of a second are worth no header of their own."""
    member.mtime = int(member.mtime)
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def unpacked(archive: IO[bytes], local: str | os.PathLike[str]) -> list[str]:
    """Writes directories and regular files alone, and returns the names of what was left out. No link is made, so nothing
    is written through one that the archive brought."""
    import shutil
    import tarfile

    left_out: list[str] = []
    root = os.fspath(local)
    os.makedirs(root, exist_ok=True)
    with tarfile.open(fileobj=archive, mode="r:") as tar:
        for member in tar:
            parts = [part for part in member.name.split("/") if part not in ("", ".")]
            if ".." in parts or member.name.startswith("/") or any(os.sep in part for part in parts):
                left_out.append(member.name)
                continue
            target = os.path.join(root, *parts)
            if member.isdir():
                os.makedirs(target, exist_ok=True)
                continue
            source = tar.extractfile(member) if member.isreg() else None
            if source is None:
                left_out.append(member.name)
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with source, open(target, "wb") as file:
                shutil.copyfileobj(source, file)
            os.chmod(target, member.mode & 0o755 | 0o600)
    return left_out
