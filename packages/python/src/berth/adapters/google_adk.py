"""Units for agents of the Agent Development Kit: `BerthEnvironment`, whose commands and files an `EnvironmentToolset` gives to
a model, and `BerthCodeExecutor`, in which a model's Python runs."""

from __future__ import annotations

import base64
import mimetypes
import os
from pathlib import Path, PurePosixPath
from typing import Any, Dict, List, Mapping

from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult, File
from google.adk.environment import BaseEnvironment, ExecutionResult
from pydantic import PrivateAttr

from .. import AsyncBerth, AsyncUnit, BerthError, CodeOutcome, NotFoundError, Unit

#: The longest time that the service gives a command, and code in a context, in seconds.
_LONGEST = 3600.0
_LONGEST_CODE = 3500.0


class BerthEnvironment(BaseEnvironment):
    """
    Makes a unit with `initialize()`, and destroys it with `close()`.

    :param image: Of the unit. Any will do that has `sh`.
    :param working_dir: Where commands begin, and relative paths do. It is made if it is not there.
    :param env: Added to the environment of each command.
    :param user: Who runs the commands: a name or a number of the unit's `/etc/passwd`. What is written belongs to it.
    :param unit: One that exists, in place of a new one. It stays.
    :param berth: A client; without it, one for BERTH_URL and BERTH_API_KEY, which ends with the environment.
    :param create: Other arguments of `berth.units.create`, such as `size`, `egress` or `time_to_live`.
    """

    def __init__(
        self,
        *,
        image: str = "berth.local/base:12",
        working_dir: str | os.PathLike[str] = "/root",
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        unit: AsyncUnit | None = None,
        berth: AsyncBerth | None = None,
        **create: Any,
    ) -> None:
        self._image = image
        self._working_dir = Path(working_dir)
        self._env = env
        self._user = user
        self._given = unit
        self._berth = berth
        self._own: AsyncBerth | None = None
        self._create = create
        self._unit: AsyncUnit | None = None

    @property
    def working_dir(self) -> Path:
        """The working directory in the unit."""
        return self._working_dir

    @property
    def unit(self) -> AsyncUnit:
        """
        The unit.

        :raises RuntimeError: If there is none: before `initialize()`, and after `close()`.
        """
        if self._unit is None:
            raise RuntimeError("The environment has no unit. Call initialize() first.")
        return self._unit

    async def initialize(self) -> None:
        """
        Make the unit and its working directory. A second call does nothing.

        :raises BerthError: If no unit could be made.
        """
        if self._unit is not None:
            return
        unit = self._given or await self._make()
        await unit.files.make_directory(self._working_dir, user=self._user)
        self._unit = unit
        self._is_initialized = True

    async def close(self) -> None:
        """Destroy the unit, unless it was given. A second call does nothing."""
        unit, self._unit, self._is_initialized = self._unit, None, False
        try:
            if unit is not None and self._given is None:
                await unit.__aexit__(None, None, None)
        finally:
            own, self._own = self._own, None
            if own is not None:
                await own.aclose()

    async def execute(self, command: str, *, timeout: float | None = None) -> ExecutionResult:
        """
        Run a line of the shell in the working directory.

        :param timeout: In seconds; an hour at most, and without it.
        :raises BerthError: If the unit could not be asked.
        """
        seconds = min(timeout or _LONGEST, _LONGEST)
        result = await self.unit.exec(
            command, cwd=str(self._working_dir), env=self._env, user=self._user, timeout=seconds
        )
        return ExecutionResult(result.exit_code, result.stdout, result.stderr, result.timed_out)

    async def read_file(self, path: str | os.PathLike[str]) -> bytes:
        """
        Read a file of any size.

        :raises FileNotFoundError: If there is none.
        :raises BerthError: If it is no file.
        """
        try:
            return b"".join([chunk async for chunk in self.unit.files.read_stream(self._absolute(path))])
        except NotFoundError as error:
            raise FileNotFoundError(str(error)) from error

    async def write_file(self, path: str | os.PathLike[str], content: str | bytes) -> None:
        """
        Write a file of any size, with the directories above it.

        :raises BerthError: If it could not be written.
        """
        data = content.encode() if isinstance(content, str) else content
        await self.unit.files.write_stream(self._absolute(path), data, user=self._user)

    async def _make(self) -> AsyncUnit:
        if self._berth is None:
            self._own = AsyncBerth(user_agent="google-adk")
        berth = self._berth or self._own
        assert berth is not None
        return await berth.units.create(self._image, **self._create)

    def _absolute(self, path: str | os.PathLike[str]) -> str:
        return str(PurePosixPath(self._working_dir) / os.fspath(path))


class BerthCodeExecutor(BaseCodeExecutor):
    """
    Runs a model's Python in a unit. The variables of a session stay from one piece of code to the next, and other sessions
    do not see them. Plots are output files, which the runner saves as artifacts. The unit is the caller's; `close()` ends
    the contexts.

    :param unit: A unit of the image `berth.local/code:1`, of the client without `async`, since the runner calls from threads.
    :param timeout_seconds: What a piece of code may take.
    :param stateful: False to run each piece of code without the variables of those before.
    """

    stateful: bool = True
    timeout_seconds: int | None = 300
    _unit: Unit = PrivateAttr()
    _contexts: Dict[str, str] = PrivateAttr(default_factory=dict)

    def __init__(self, unit: Unit, **data: Any) -> None:
        super().__init__(**data)
        self._unit = unit

    def execute_code(
        self, invocation_context: Any, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        """
        Run a piece of code, with its input files in the working directory.

        :returns: What it printed, the value of its last line below that, and its plots. `stderr` is empty if the code ended
            well, since the runner takes anything in it for a failure.
        :raises BerthError: If the unit could not be asked.
        """
        context = self._context_of(code_execution_input.execution_id)
        try:
            self._place(code_execution_input.input_files, context)
            seconds = min(self.timeout_seconds or _LONGEST_CODE, _LONGEST_CODE)
            outcome = self._unit.code.run(code_execution_input.code, context=context, timeout=seconds)
        finally:
            if code_execution_input.execution_id is None:
                self._unit.code.delete(context)
        return _result_of(outcome, seconds)

    def close(self) -> None:
        """End the contexts of all sessions."""
        while self._contexts:
            _, context = self._contexts.popitem()
            try:
                self._unit.code.delete(context)
            except BerthError:
                # The unit ends them, too.
                pass

    def _context_of(self, session: str | None) -> str:
        """Returns that of a session, or one for this piece of code alone."""
        if session is None:
            return self._unit.code.create_context(language="python")["id"]
        if session not in self._contexts:
            self._contexts[session] = self._unit.code.create_context(language="python")["id"]
        return self._contexts[session]

    def _place(self, files: List[File], context: str) -> None:
        for file in files:
            # The framework has text in base64 as text.
            data = file.content if isinstance(file.content, bytes) else base64.b64decode(file.content)
            self._unit.files.write_stream(f"{_HOME}/{PurePosixPath(file.name).name}", data, user=_USER)


#: Where contexts begin, and whose it is.
_HOME = "/home/user"
_USER = "user"


def _result_of(outcome: CodeOutcome, seconds: float) -> CodeExecutionResult:
    value = "" if outcome.text is None else f"{outcome.text}\n"
    files = [
        File(f"plot_{number}{mimetypes.guess_extension(image.mime) or ''}", image.data, image.mime)
        for number, image in enumerate(outcome.images, 1)
    ]
    failure = _failure_of(outcome, seconds)
    return CodeExecutionResult(
        stdout=outcome.stdout + value,
        stderr=failure and outcome.stderr + failure,
        output_files=files,
        exit_code=1 if failure else 0,
    )


def _failure_of(outcome: CodeOutcome, seconds: float) -> str:
    if outcome.info["timedOut"]:
        return f"The code ran out of its {seconds:g} s and was interrupted."
    return "" if outcome.error is None else "\n".join(outcome.error["traceback"])
