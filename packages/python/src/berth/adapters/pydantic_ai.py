"""A unit as tools of a Pydantic AI agent: `Agent(model, toolsets=[unit_toolset(unit)])`."""

from __future__ import annotations

from typing import Any, Dict, List

from pydantic_ai import ToolFailed
from pydantic_ai.toolsets import FunctionToolset

from .. import AsyncUnit, BerthError


def unit_toolset(
    unit: AsyncUnit, *, user: str | None = None, cwd: str | None = None, max_output: int = 30_000
) -> FunctionToolset[Any]:
    """
    Tools that run commands in a unit, read, write and list its files, and publish a port. What the service refuses, such as a
    file that is not there, is told to the model as the failure of its call.

    :param unit: The caller's: make it before, destroy it after.
    :param user: Who runs the commands: a name or a number of the unit's `/etc/passwd`.
    :param cwd: Where commands begin that name no directory; the image's working directory without it.
    :param max_output: Characters of an output or a file that the model is shown.
    """
    directory = cwd

    async def run(command: str, cwd: str | None = None, timeout: int = 120) -> Dict[str, Any]:
        """Run a shell command in the sandbox and return its exit code and output.

        Args:
            command: A line for the shell.
            cwd: The absolute path of the directory to begin in.
            timeout: Seconds after which it is killed, at most 3600.
        """
        result = await unit.exec(command, cwd=cwd or directory, user=user, timeout=min(max(timeout, 1), 3600))
        stdout, stderr = (_shortened(text, max_output) for text in (result.stdout, result.stderr))
        return {"exit_code": result.exit_code, "stdout": stdout, "stderr": stderr}

    async def read_file(path: str) -> str:
        """Return the text of a file in the sandbox.

        Args:
            path: An absolute path.
        """
        return _shortened(await unit.files.read_text(path), max_output)

    async def write_file(path: str, text: str) -> str:
        """Write a text file in the sandbox, with the directories above it.

        Args:
            path: An absolute path.
            text: All of its content.
        """
        written = await unit.files.write(path, text, user=user)
        return f"{written['bytes']} bytes written"

    async def list_directory(path: str) -> List[Dict[str, Any]]:
        """Return what is in a directory of the sandbox: names, types and sizes in bytes.

        Args:
            path: An absolute path.
        """
        entries = unit.files.list(path)
        return [{key: entry.get(key) for key in ("name", "type", "bytes")} async for entry in entries]

    async def publish_port(port: int) -> str:
        """Publish an HTTP server of the sandbox and return its URL. Another port than before restarts the sandbox.

        Args:
            port: Where the server listens, on all addresses.
        """
        return await unit.url(port)

    return _UnitToolset([run, read_file, write_file, list_directory, publish_port], id="berth")


class _UnitToolset(FunctionToolset[Any]):
    async def call_tool(self, *args: Any, **named: Any) -> Any:
        try:
            return await super().call_tool(*args, **named)
        except BerthError as error:
            # The model goes on with that, as with a command that failed; an exception would end the agent's run.
            raise ToolFailed(str(error)) from error


def _shortened(text: str, most: int) -> str:
    """The beginning and the end of a text that is too long."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[{len(text) - 2 * half} characters are left out here]\n{text[-half:]}"
