"""A unit as the sandbox of deepagents, for LangChain agents: `create_deep_agent(model, backend=BerthSandbox(unit))`."""

from __future__ import annotations

import errno
from typing import List, Mapping

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox

from .. import BerthError, NotFoundError, Unit
from ._access import reading, refusal, writing

#: The longest time that the service gives a command, in seconds.
_LONGEST = 3600
#: What shells answer for a command that ran out of time.
_TIMED_OUT = 124
# The model sees one text: both streams in the order in which they came. The line is one of the shell's own words, so that
# a fault of its syntax is in the text, too.
_TOGETHER = 'exec 2>&1; eval "$1"'

_ERRORS = {
    errno.ENOENT: "file_not_found",
    errno.EACCES: "permission_denied",
    errno.EROFS: "permission_denied",
    errno.EISDIR: "is_directory",
}


class BerthSandbox(BaseSandbox):
    """
    The files and commands of one unit. It is the caller's: make it before, destroy it after. Its image needs Python 3,
    with which deepagents reads, edits and searches files.

    :param unit: A unit of the client without `async`, since deepagents calls from threads.
    :param user: Who runs the commands, and whose rights files are read and written with: a name or a number of the unit's
        `/etc/passwd`. Root, or the image's own user, without it.
    :param cwd: Where commands begin; the image's working directory without it.
    :param env: Added to the environment of each command.
    :param timeout: Seconds that a command may take if the agent names none.
    """

    def __init__(
        self,
        unit: Unit,
        *,
        user: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: int = 1800,
    ) -> None:
        self.unit = unit
        self._user = user
        self._cwd = cwd
        self._env = env
        self._timeout = timeout

    @property
    def id(self) -> str:
        """The unit's id."""
        return self.unit.id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """
        Run a line of the shell. Of a command that runs out of time the output says so, and the exit code is 124.

        :param timeout: In seconds; 0 for the longest that there is, an hour.
        :raises BerthError: If the unit could not be asked.
        """
        seconds = min((self._timeout if timeout is None else timeout) or _LONGEST, _LONGEST)
        argv = ["sh", "-c", _TOGETHER, "sh", command]
        result = self.unit.exec(argv, cwd=self._cwd, env=self._env, user=self._user, timeout=seconds)
        exit_code = _TIMED_OUT if result.timed_out else result.exit_code
        # The library tells of a lack of time on standard error, where the command itself writes nothing.
        return ExecuteResponse(result.stdout + result.stderr, exit_code, result.truncated)

    def upload_files(self, files: List[tuple[str, bytes]]) -> List[FileUploadResponse]:
        """Write files of any size, with the directories above them; each answer has its own error."""
        return [FileUploadResponse(path, self._upload(path, content)) for path, content in files]

    def download_files(self, paths: List[str]) -> List[FileDownloadResponse]:
        """Read files of any size; each answer has its own error."""
        return [self._download(path) for path in paths]

    def _upload(self, path: str, content: bytes) -> str | None:
        """Returns the error."""
        if not path.startswith("/"):
            return "invalid_path"
        if error := self._refusal(writing(path)):
            return error
        try:
            self.unit.files.write_stream(path, content)
        except BerthError as failure:
            return str(failure)
        return None

    def _download(self, path: str) -> FileDownloadResponse:
        if not path.startswith("/"):
            return FileDownloadResponse(path, error="invalid_path")
        if error := self._refusal(reading(path)):
            return FileDownloadResponse(path, error=error)
        try:
            return FileDownloadResponse(path, b"".join(self.unit.files.read_stream(path)))
        except NotFoundError:
            return FileDownloadResponse(path, error="file_not_found")
        except BerthError as failure:
            return FileDownloadResponse(path, error=str(failure))

    def _refusal(self, command: List[str]) -> str | None:
        number = refusal(self.unit.exec(command, user=self._user))
        return None if number is None else _ERRORS.get(number, "invalid_path")
