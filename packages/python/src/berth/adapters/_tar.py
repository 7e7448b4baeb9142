"""Archives of a unit's files, here."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import PurePosixPath
from typing import IO, Set

_IN_MEMORY = 8 * 1024 * 1024


def without(archive: IO[bytes], skipped: Set[str]) -> IO[bytes]:
    """Returns the archive without those paths and what is below them, and closes the one it was given."""
    kept = tempfile.SpooledTemporaryFile(_IN_MEMORY)
    with tarfile.open(fileobj=archive) as source, tarfile.open(fileobj=kept, mode="w", format=tarfile.PAX_FORMAT) as out:
        for member in source:
            path = PurePosixPath(member.name)
            if not skipped.intersection(each.as_posix() for each in (path, *path.parents)):
                out.addfile(member, source.extractfile(member) if member.isreg() else None)
    archive.close()
    kept.seek(0)
    return kept
