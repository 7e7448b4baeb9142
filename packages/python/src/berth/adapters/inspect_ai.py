"""Units as the sandboxes of Inspect: `Task(sandbox="berth")`, found by its entry point. The service is that of BERTH_URL and
BERTH_API_KEY. Each sample has a unit, which is destroyed with it."""

from __future__ import annotations

import os
import posixpath
import shlex
import uuid
from typing import Any, Dict, List

import yaml
from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxConnection,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxEnvironmentLimits,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from pydantic import BaseModel

from .. import AsyncBerth, AsyncUnit, BerthError, NotFoundError
from ..errors import ConnectionFailedError, InvalidStateError, UnavailableError, ValidationError
from ._access import reading, refusal, writing

_LONGEST = 3600
_NOT_EXECUTABLE = 126
#: What the service takes as text beside a command; more is a file, from which the command reads.
_LONGEST_INPUT = 1_000_000
#: By it `inspect sandbox cleanup berth` finds the units of broken runs.
_LABELS = {"made-by": "inspect_ai"}
_FROM_FILE = 'exec <"$1" && shift && exec "$@"'


class BerthSandboxConfig(BaseModel):
    """
    What the units of a task are made of: `SandboxEnvironmentSpec("berth", BerthSandboxConfig(size="medium"))`, or the same
    fields in a file `berth.yaml` beside the task, or in one that is named, `("berth", "other.yaml")`.

    :param user: Who runs commands and reads and writes files, unless a call names another: a name or a number of the
        unit's `/etc/passwd`.
    :param working_dir: Where relative paths begin, and commands. It is made if it is not there.
    :param time_to_live: After which a unit is destroyed, also if the program that made it has died.
    :param create: More arguments of `berth.units.create`, such as `egress`.
    """

    model_config = {"frozen": True, "extra": "forbid"}

    image: str = "berth.local/base:12"
    size: str | None = None
    user: str | None = None
    working_dir: str = "/workspace"
    time_to_live: str = "24h"
    create: Dict[str, Any] = {}


@sandboxenv(name="berth")
class BerthSandboxEnvironment(SandboxEnvironment):
    """One unit."""

    def __init__(self, berth: AsyncBerth, unit: AsyncUnit, config: BerthSandboxConfig) -> None:
        super().__init__()
        self.unit = unit
        self._berth = berth
        self._config = config

    @classmethod
    def config_files(cls) -> List[str]:
        return ["berth.yaml"]

    @classmethod
    def config_deserialize(cls, config: Dict[str, Any]) -> BaseModel:
        return BerthSandboxConfig(**config)

    @classmethod
    async def sample_init(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, metadata: Dict[str, str]
    ) -> Dict[str, SandboxEnvironment]:
        settings = _settings_of(config)
        # A sample makes many short calls: it waits where there were too many in a minute.
        berth = AsyncBerth(user_agent="inspect_ai", max_retry_after=60, retries=10)
        asked: Dict[str, Any] = {"size": settings.size, "time_to_live": settings.time_to_live, **settings.create}
        asked["metadata"] = {"task": task_name[:1024], **settings.create.get("metadata", {}), **_LABELS}
        try:
            unit = await berth.units.create(settings.image, **asked)
        except BaseException:
            await berth.aclose()
            raise
        environment = cls(berth, unit, settings)
        try:
            await unit.files.make_directory(settings.working_dir, user=settings.user)
        except BaseException:
            await environment._end()
            raise
        return {"default": environment}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: Dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        for environment in environments.values():
            await environment.as_type(BerthSandboxEnvironment)._end()

    @classmethod
    async def cli_cleanup(cls, id: str | None) -> None:
        """Destroy the unit of that id, or all that this adapter made for the key's team."""
        async with AsyncBerth() as berth:
            async for unit in berth.units.list(metadata=_LABELS):
                if id in (None, unit.id):
                    await unit.destroy()

    async def exec(
        self,
        cmd: List[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: Dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """
        Run a command to its end. A command that ran out of time is not tried again: it ran, and was killed.

        :raises PermissionError: If the command may not be executed.
        :raises SandboxUserUnsupportedError: If the unit has no such user.
        :raises SandboxUnavailableError: If the unit is not there, or cannot run commands.
        :raises TimeoutError: If it ran out of time.
        :raises OutputLimitExceededError: If it prints more than Inspect allows.
        """
        name = user or self._config.user
        data = input.encode() if isinstance(input, str) else input
        file = None
        try:
            text = _as_text(data)
            if data is not None and text is None:
                file = f"/tmp/.berth-input-{uuid.uuid4().hex}"
                await self.unit.files.write_stream(file, data, mode=0o600 if name else 0o644, user=name)
                cmd = ["/bin/sh", "-c", _FROM_FILE, "sh", file, *cmd]
            return await self._run(cmd, text, self._path(cwd or "."), env, name, timeout)
        except ValidationError as error:
            if name and _is_about(error, "user"):
                raise SandboxUserUnsupportedError(f"{name}: {error}") from error
            raise
        except (NotFoundError, InvalidStateError, UnavailableError, ConnectionFailedError) as error:
            raise SandboxUnavailableError(str(error)) from error
        finally:
            if file is not None:
                await self._delete(file)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """
        Write a file of any size, with the directories above it.

        :raises OSError: Its subclass for the reason, such as PermissionError or IsADirectoryError.
        """
        path = self._path(file)
        _raise_for(refusal(await self._as_user(writing(path))), file)
        await self.unit.files.write_stream(path, contents.encode() if isinstance(contents, str) else contents)

    async def read_file(self, file: str, text: bool = True) -> Any:
        """
        Read a file.

        :raises OSError: Its subclass for the reason, such as FileNotFoundError, PermissionError or IsADirectoryError.
        :raises OutputLimitExceededError: If it is larger than Inspect allows.
        :raises UnicodeDecodeError: If it is read as text and is none.
        """
        path = self._path(file)
        _raise_for(refusal(await self._as_user(reading(path))), file)
        content = bytearray()
        try:
            async for chunk in self.unit.files.read_stream(path):
                content += chunk
                if len(content) > SandboxEnvironmentLimits.MAX_READ_FILE_SIZE:
                    raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
        except NotFoundError as error:
            raise FileNotFoundError(2, os.strerror(2), file) from error
        return content.decode() if text else bytes(content)

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        """How a person gets a shell in the unit, with Berth's CLI."""
        name = user or self._config.user
        command = ["berth", "shell", *(["--user", name] if name else []), self.unit.id]
        return SandboxConnection(type="berth", command=shlex.join(command))

    def default_polling_interval(self) -> float:
        return 0.5

    async def _run(
        self,
        cmd: List[str],
        stdin: str | None,
        cwd: str,
        env: Dict[str, str] | None,
        user: str | None,
        timeout: int | None,
    ) -> ExecResult[str]:
        seconds = min(timeout or _LONGEST, _LONGEST)
        written = {"stdout": bytearray(), "stderr": bytearray()}
        async with await self.unit.spawn(cmd, cwd=cwd, env=env, stdin=stdin, user=user, timeout=seconds) as running:
            async for piece in running:
                written[piece.stream] += piece.data
                if len(written[piece.stream]) > SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE:
                    limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
                    shown = written[piece.stream][:limit].decode("utf-8", "replace")
                    raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, shown)
            ended = await running.wait()
        stdout, stderr = (written[name].decode("utf-8", "replace") for name in ("stdout", "stderr"))
        if ended.timed_out:
            late = TimeoutError(f"The command timed out after {seconds} seconds")
            # Inspect shows a model what there was until then.
            setattr(late, "truncated_output", stdout + stderr)
            raise late
        if ended.exit_code == _NOT_EXECUTABLE and stderr.endswith(("cannot be executed\n", "Permission denied\n")):
            raise PermissionError(13, os.strerror(13), cmd[0])
        return ExecResult(ended.exit_code == 0, ended.exit_code, stdout, stderr)

    async def _as_user(self, command: List[str]) -> Any:
        return await self.unit.exec(command, user=self._config.user)

    def _path(self, path: str) -> str:
        return posixpath.join(self._config.working_dir, path)

    async def _delete(self, path: str) -> None:
        try:
            await self.unit.files.delete(path)
        except NotFoundError:
            pass

    async def _end(self) -> None:
        try:
            await self.unit.destroy()
        except NotFoundError:
            pass
        finally:
            await self._berth.aclose()


def _settings_of(config: SandboxEnvironmentConfigType | None) -> BerthSandboxConfig:
    """Of a task, of the file that it names, or as they are without either. Raises ValueError for those of another provider."""
    if isinstance(config, str):
        with open(config, encoding="utf-8") as file:
            return BerthSandboxConfig(**(yaml.safe_load(file) or {}))
    if config is None or isinstance(config, BerthSandboxConfig):
        return config or BerthSandboxConfig()
    raise ValueError(f"The sandbox berth takes a BerthSandboxConfig, not a {type(config).__name__}.")


def _as_text(data: bytes | None) -> str | None:
    """Returns None if there is none, or if it can only go in by a file."""
    if data is None or len(data) > _LONGEST_INPUT:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _is_about(error: BerthError, field: str) -> bool:
    details: Any = error.details
    return isinstance(details, list) and any(each.get("path") == field for each in details)


def _raise_for(number: int | None, file: str) -> None:
    if number is not None:
        # The constructor makes the subclass of the number.
        raise OSError(number, os.strerror(number), file)
