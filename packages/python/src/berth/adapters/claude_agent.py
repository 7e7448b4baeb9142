"""A unit in which the program of the Claude Agent SDK runs, in place of this machine: `ClaudeSDKClient(options, transport=BerthTransport(unit, options))`."""

from __future__ import annotations

import asyncio
import codecs
import json
from functools import partial
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, List

from claude_agent_sdk import ClaudeAgentOptions, CLIConnectionError, ProcessError, Transport
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

from .. import AsyncProcess, AsyncUnit, BerthError

#: What the program may still write down after its input has ended, in seconds.
_GRACE = 5.0
#: The end of what the program says on its standard error, for the error of one that fails.
_SAID = 4000


class BerthTransport(Transport):
    """
    Starts the program in the unit, as a background process with input and without a terminal. It gets the options' `env`, and
    nothing else of this program's environment: no key of this machine. The unit stays.

    :param unit: Whose image has the program, such as the unit of the recipe `claude-code`.
    :param options: Those of the client. What they say of paths is about the unit.
    :param command: The program, with arguments that go before the options.
    :param user: Who runs it: a name or a number of the unit's `/etc/passwd`.
    """

    def __init__(
        self,
        unit: AsyncUnit,
        options: ClaudeAgentOptions | None = None,
        *,
        command: List[str] | None = None,
        user: str | None = None,
    ) -> None:
        self._unit = unit
        self._options = options or ClaudeAgentOptions()
        self._command = command or ["claude"]
        self._user = user or self._options.user
        self._process: AsyncProcess | None = None
        self._writing = asyncio.Lock()
        self._said = ""

    async def connect(self) -> None:
        """:raises CLIConnectionError: If the unit cannot start it."""
        if self._process is not None:
            return
        env = {"CLAUDE_CODE_ENTRYPOINT": "sdk-py", **self._options.env}
        cwd = str(self._options.cwd) if self._options.cwd else None
        argv = [*self._command, *_arguments(self._options)]
        try:
            self._process = await self._unit.processes.start(
                argv, cwd=cwd, env=env, user=self._user, takes_input=True, keeps_awake=True
            )
        except BerthError as error:
            raise CLIConnectionError(f"The unit did not start {self._command[0]}: {error}") from error

    async def write(self, data: str) -> None:
        """:raises CLIConnectionError: If the program has ended, or the unit cannot be asked."""
        if self._process is None:
            raise CLIConnectionError("The program has not been started.")
        async with self._writing:
            try:
                await self._process.write(data)
            except BerthError as error:
                raise CLIConnectionError(f"The program took no input: {error}") from error

    async def read_messages(self) -> AsyncIterator[Dict[str, Any]]:
        """:raises ProcessError: If the program ended with a code other than 0."""
        process = self._process
        if process is None:
            raise CLIConnectionError("The program has not been started.")
        decoder, rest = codecs.getincrementaldecoder("utf-8")("replace"), ""
        async for piece in process.follow():
            if piece.stream == "stderr":
                self._hear(piece.data.decode("utf-8", "replace"))
                continue
            *lines, rest = (rest + decoder.decode(piece.data)).split("\n")
            for message in _messages(lines):
                yield message
        for message in _messages([rest]):
            yield message
        code = process.info["exitCode"]
        if code != 0:
            raise ProcessError("The program in the unit failed.", exit_code=code, stderr=self._said)

    async def end_input(self) -> None:
        if self._process is None:
            return
        async with self._writing:
            try:
                await self._process.end_input()
            except BerthError:
                # It has ended already.
                pass

    async def close(self) -> None:
        """Ends its input, and the program where it does not end by itself."""
        process, self._process = self._process, None
        if process is None:
            return
        steps: list[Callable[[], Awaitable[object]]] = [
            process.end_input,
            process.wait,
            partial(process.signal, "KILL"),
        ]
        for step in steps:
            try:
                await asyncio.wait_for(step(), _GRACE)
            except (BerthError, asyncio.TimeoutError):
                continue

    def is_ready(self) -> bool:
        return self._process is not None

    def _hear(self, text: str) -> None:
        self._said = (self._said + text)[-_SAID:]
        if self._options.stderr is not None:
            for line in text.splitlines():
                self._options.stderr(line)


def _arguments(options: ClaudeAgentOptions) -> List[str]:
    """The options as arguments, as the SDK writes them for a program of this machine."""
    written = SubprocessCLITransport(prompt="", options=options)
    written._cli_path = "claude"
    return written._build_command()[1:]


def _messages(lines: List[str]) -> List[Dict[str, Any]]:
    """What is no message is said for people."""
    return [json.loads(line) for line in lines if line.lstrip().startswith("{")]
