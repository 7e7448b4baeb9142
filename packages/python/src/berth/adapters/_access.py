"""Whether a user of a unit may read or write a file there. Files of the API are read and written as root; a command as the
user asks the unit's own kernel before, and says why not."""

from __future__ import annotations

import errno
from typing import List, Protocol

# No program of the user's own is taken for one of these, and the kernel's reasons are in English. To open a FIFO could wait
# for ever; the service opens regular files alone, too.
_BEFORE = (
    "LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin; export LC_ALL PATH; "
    '[ ! -d "$1" ] || exit 21; [ ! -e "$1" ] || [ -f "$1" ] || exit 22;'
)
# Opening is the question: `test -r` says nothing of what is missing on the way. `$1` is the path.
_READ = ': <"$1"'
_WRITE = 'mkdir -p -- "$(dirname -- "$1")" && : >>"$1"'

_REASONS = {
    "Permission denied": errno.EACCES,
    "Is a directory": errno.EISDIR,
    "Not a directory": errno.ENOTDIR,
    "not a directory": errno.ENOTDIR,
    "File exists": errno.ENOTDIR,
    "nonexistent": errno.ENOENT,
    "No such file": errno.ENOENT,
    "Read-only file system": errno.EROFS,
    "File name too long": errno.ENAMETOOLONG,
    "Too many levels": errno.ELOOP,
    "No space left": errno.ENOSPC,
}


class Ended(Protocol):
    """The part of an `ExecResult` that says why."""

    @property
    def exit_code(self) -> int: ...
    @property
    def stderr(self) -> str: ...


def reading(path: str) -> List[str]:
    """The command that ends with 0 if its user may read the file."""
    return ["/bin/sh", "-c", f"{_BEFORE} {_READ}", "sh", path]


def writing(path: str) -> List[str]:
    """The command that ends with 0 if its user may write the file, which it then made, with the directories above it."""
    return ["/bin/sh", "-c", f"{_BEFORE} {_WRITE}", "sh", path]


def refusal(result: Ended) -> int | None:
    """Returns why not, as a number of `errno`, of the result of such a command; None if it may."""
    if result.exit_code == 0:
        return None
    if result.exit_code in (errno.EISDIR, errno.EINVAL):
        return result.exit_code
    # After the name of the program and the path, which could have words of a reason itself.
    reason = result.stderr.rsplit(": ", 1)[-1]
    return next((number for words, number in _REASONS.items() if words in reason), errno.EIO)
