# Written by `npm run gen` from berth/_async: do not edit.
"""A command in a unit: `execute` waits for its end and has its output, `Command` gives it as it comes."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Iterator, Mapping, Sequence

from .._calls import DEFAULT_WAIT, MAX_WAIT, Call, without_none
from .._pieces import Exit, OutputPiece, text_of
from .._shell import argv_of
from ..errors import CommandFailedError, ConnectionFailedError, ExecResult
from .transport import Transport

#: What a result keeps of each stream, as the service does.
_MAX_BYTES = 1_048_576


class Command:
    """Iterate over its output, once. A command whose output is not read waits; it ends with its reader."""

    def __init__(self, transport: Transport, response: Any) -> None:
        self._response = response
        self._events = transport.events_of(response)
        self._exit: Exit | None = None

    def __iter__(self) -> Iterator[OutputPiece]:
        try:
            for event, data, _ in self._events:
                if event == "exit":
                    self._exit = Exit(data["exitCode"], data["timedOut"])
                else:
                    yield OutputPiece.of(event, data)
        finally:
            # A reader that breaks off has no more use for the command.
            self.kill()

    def wait(self) -> Exit:
        """Wait for its end. Unread output is dropped. Raises if it could not be run, or was killed."""
        for _ in self:
            pass
        if self._exit is None:
            raise ConnectionFailedError("The connection ended before the command did.")
        return self._exit

    def kill(self) -> None:
        """Ends the command in the unit, unless it has ended."""
        self._response.close()

    def __enter__(self) -> Command:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


def exec_call(
    unit_id: str,
    command: str | Sequence[str],
    *,
    cwd: str | None,
    env: Mapping[str, str] | None,
    stdin: str | None,
    user: str | None,
    timeout: float | None,
) -> Call:
    milliseconds = None if timeout is None else max(1, round(timeout * 1000))
    body = without_none(
        cmd=argv_of(command), cwd=cwd, env=env, stdin=stdin, user=user, timeoutMs=milliseconds
    )
    # The unit may have to wake before.
    return Call("POST", f"/v1/units/{unit_id}/exec", body=body, extra=DEFAULT_WAIT if timeout is None else timeout)


def start_command(transport: Transport, call: Call) -> Command:
    return Command(transport, transport.open(call, "text/event-stream"))


def execute(transport: Transport, call: Call, *, check: bool) -> ExecResult:
    """Longer than some clients wait for an answer to begin, it is streamed."""
    if call.extra <= MAX_WAIT:
        told: Any = transport.json(call)
        result = ExecResult(
            told["exitCode"], told["stdout"], told["stderr"], told["timedOut"], told["truncated"]
        )
    else:
        result = _collect(start_command(transport, call))
    if result.timed_out:
        result = result._replace(stderr=result.stderr + _out_of_time(call.extra, result.stderr))
    if check and (result.exit_code != 0 or result.timed_out):
        argv: list[str] = call.body["cmd"]
        raise CommandFailedError(argv[2] if argv[:2] == ["sh", "-c"] else " ".join(argv), result)
    return result


def _out_of_time(seconds: float, said: str) -> str:
    """Who reads nothing but the output learns why it ends there."""
    apart = "" if said == "" or said.endswith("\n") else "\n"
    return f"{apart}berth: the command ran out of its {seconds:g} s and was killed; give it more with timeout\n"


def _collect(command: Command) -> ExecResult:
    kept = {"stdout": bytearray(), "stderr": bytearray()}
    cut = {"stdout": False, "stderr": False}
    for piece in command:
        room = _MAX_BYTES - len(kept[piece.stream])
        cut[piece.stream] = cut[piece.stream] or len(piece.data) > room
        kept[piece.stream] += piece.data[:room]
    exit_code, timed_out = command.wait()
    stdout, stderr = (text_of(kept[name], is_cut=cut[name]) for name in ("stdout", "stderr"))
    return ExecResult(exit_code, stdout, stderr, timed_out, any(cut.values()))
