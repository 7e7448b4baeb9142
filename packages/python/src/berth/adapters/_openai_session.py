"""A session of the OpenAI Agents SDK: its state, and what it does in its unit."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Literal, Tuple
from urllib.parse import urlsplit

from agents.sandbox.errors import (
    ExecTimeoutError,
    ExecTransportError,
    ExposedPortUnavailableError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
    WorkspaceWriteTypeError,
)
from agents.sandbox.session import BaseSandboxClientOptions, BaseSandboxSession, SandboxSessionState
from agents.sandbox.session.pty_types import PtyExecUpdate
from agents.sandbox.types import ExecResult, ExposedPortEndpoint, User

from .. import AsyncUnit, BerthError, NotFoundError
from .._waiting import async_in_thread
from ._access import reading, refusal, writing
from ._openai_terminals import Terminals
from ._tar import without

_LONGEST = 3600.0
_IN_MEMORY = 8 * 1024 * 1024


class BerthSandboxClientOptions(BaseSandboxClientOptions):
    """
    What units are made of.

    :param create: More arguments of `berth.units.create`, such as `egress`. They are kept in the state of a session, so a
        secret does not belong here.
    :param exposed_ports: Those that `resolve_exposed_port` may be asked for. A unit has one URL: it is of the first port, and
        of another only where the first was not asked for.
    :param keep: The unit sleeps at the end of its session and is found again by `resume`; without it, it is destroyed.
    """

    type: Literal["berth"] = "berth"
    image: str = "berth.local/python:3.11"
    size: str | None = None
    create: Dict[str, Any] | None = None
    exposed_ports: tuple[int, ...] = ()
    keep: bool = False


class BerthSandboxSessionState(SandboxSessionState):
    type: Literal["berth"] = "berth"
    unit_id: str
    options: BerthSandboxClientOptions


class BerthSandboxSession(BaseSandboxSession):
    """One unit. Clients make it."""

    state: BerthSandboxSessionState

    def __init__(self, state: BerthSandboxSessionState, unit: AsyncUnit) -> None:
        self.state = state
        self.unit = unit
        # Commands cannot begin in a directory that is not there yet.
        self._has_root = False
        self._terminals = Terminals()

    async def _prepare_backend_workspace(self) -> None:
        await self.unit.files.make_directory(self._root())
        self._has_root = True

    async def _exec_internal(self, *command: str | Path, timeout: float | None = None) -> ExecResult:
        argv, user = _without_sudo([str(each) for each in command])
        written = {"stdout": bytearray(), "stderr": bytearray()}
        try:
            running = await self.unit.spawn(
                argv,
                cwd=self._root() if self._has_root else None,
                env=await self.state.manifest.environment.resolve(),
                user=user,
                timeout=_LONGEST if timeout is None else min(timeout, _LONGEST),
            )
            async for piece in running:
                written[piece.stream] += piece.data
            ended = await running.wait()
        except BerthError as error:
            raise ExecTransportError(command=argv, cause=error, message=str(error)) from error
        if ended.timed_out:
            raise ExecTimeoutError(command=argv, timeout_s=timeout)
        stdout, stderr = bytes(written["stdout"]), bytes(written["stderr"])
        return ExecResult(stdout=stdout, stderr=stderr, exit_code=ended.exit_code)

    def supports_pty(self) -> bool:
        return True

    async def pty_exec_start(
        self,
        *command: str | Path,
        timeout: float | None = None,
        shell: bool | list[str] = True,
        user: str | User | None = None,
        tty: bool = False,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        """Begin a command that goes on between the model's turns, twelve hours at most. `timeout` is not heeded: the session
        ends what still runs."""
        argv, name = _without_sudo(self._prepare_exec_command(*command, shell=shell, user=user))
        try:
            return await self._terminals.start(
                self.unit,
                argv,
                tty=tty,
                cwd=self._root() if self._has_root else None,
                env=await self.state.manifest.environment.resolve(),
                user=name,
                yield_time_s=yield_time_s,
                max_output_tokens=max_output_tokens,
            )
        except BerthError as error:
            raise ExecTransportError(command=argv, cause=error, message=str(error)) from error

    async def pty_write_stdin(
        self,
        *,
        session_id: int,
        chars: str,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        running = self._resolve_pty_session_entry(pty_processes=self._terminals.running, session_id=session_id)
        return await self._terminals.write(session_id, running, chars, yield_time_s, max_output_tokens)

    async def pty_terminate_all(self) -> None:
        await self._terminals.end()

    async def read(self, path: Path, *, user: str | User | None = None) -> io.IOBase:
        return io.BytesIO(await self._read(path, user, None))

    async def _read_bounded(self, path: Path, *, max_bytes: int) -> bytes:
        return await self._read(path, None, max_bytes)

    async def _read(self, path: Path, user: str | User | None, max_bytes: int | None) -> bytes:
        place = self.normalize_path(path).as_posix()
        content = bytearray()
        try:
            if user is not None and (number := refusal(await self._as(user, reading(place)))):
                raise WorkspaceArchiveReadError(path=path, context={"errno": number})
            async for chunk in self.unit.files.read_stream(place):
                content += chunk
                if max_bytes is not None and len(content) >= max_bytes:
                    break
        except NotFoundError as error:
            raise WorkspaceReadNotFoundError(path=path, cause=error) from error
        except BerthError as error:
            raise WorkspaceArchiveReadError(path=path, cause=error) from error
        return bytes(content if max_bytes is None else content[:max_bytes])

    async def write(self, path: Path, data: io.IOBase, *, user: str | User | None = None) -> None:
        place = self.normalize_path(path, for_write=True).as_posix()
        content = data.read()
        if isinstance(content, str):
            content = content.encode()
        if not isinstance(content, (bytes, bytearray)):
            raise WorkspaceWriteTypeError(path=path, actual_type=type(content).__name__)
        try:
            if user is not None and (number := refusal(await self._as(user, writing(place)))):
                raise WorkspaceArchiveWriteError(path=path, context={"errno": number})
            await self.unit.files.write_stream(place, bytes(content))
        except BerthError as error:
            raise WorkspaceArchiveWriteError(path=path, cause=error, message=str(error)) from error

    async def running(self) -> bool:
        """A unit that sleeps counts: its next call wakes it."""
        try:
            return (await self.unit.refresh()).state in ("running", "starting", "sleeping")
        except BerthError:
            return False

    async def persist_workspace(self) -> io.IOBase:
        file = tempfile.SpooledTemporaryFile(_IN_MEMORY)
        try:
            async for chunk in self.unit.files.archive(self._root()):
                file.write(chunk)
        except BerthError as error:
            raise WorkspaceArchiveReadError(path=Path(self._root()), cause=error) from error
        file.seek(0)
        skipped = {path.as_posix().strip("/") for path in self._persist_workspace_skip_relpaths()}
        # Typed as an IOBase from Python 3.11 on; its methods are those of one before, too.
        archive: Any = await async_in_thread(lambda: without(file, skipped)) if skipped else file
        return archive

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        try:
            await self.unit.files.unpack(self._root(), data.read())
        except BerthError as error:
            raise WorkspaceArchiveWriteError(path=Path(self._root()), cause=error, message=str(error)) from error
        self._has_root = True

    async def _resolve_exposed_port(self, port: int) -> ExposedPortEndpoint:
        try:
            published = [each["port"] for each in (await self.unit.refresh()).info["endpoints"]]
            if published and port not in published:
                raise self._no_port(port, f"the unit's URL is that of port {published[0]}")
            url = urlsplit(await self.unit.url(port))
        except BerthError as error:
            raise self._no_port(port, str(error)) from error
        tls = url.scheme == "https"
        return ExposedPortEndpoint(host=url.hostname or "", port=url.port or (443 if tls else 80), tls=tls)

    async def _shutdown_backend(self) -> None:
        try:
            if self.state.options.keep:
                await self.unit.sleep(self.unit.info["sleep"], now=True)
            else:
                await self.unit.destroy()
        except NotFoundError:
            pass

    def _root(self) -> str:
        return self._workspace_root_path().as_posix()

    async def _as(self, user: str | User, command: list[str]) -> Any:
        name = user.name if isinstance(user, User) else user
        return await self.unit.exec(command, user=name)

    def _no_port(self, port: int, why: str) -> ExposedPortUnavailableError:
        return ExposedPortUnavailableError(
            port=port,
            exposed_ports=self.state.exposed_ports,
            reason="backend_unavailable",
            context={"backend": "berth", "detail": why},
        )


def _without_sudo(argv: List[str]) -> Tuple[List[str], str | None]:
    """The SDK says by sudo who runs a command. The service can do that itself, in images without sudo."""
    if argv[:2] == ["sudo", "-u"] and argv[3:4] == ["--"]:
        return argv[4:], argv[2]
    return argv, None
