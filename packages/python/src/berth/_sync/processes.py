# Written by `npm run gen` from berth/_async: do not edit.
"""Background processes of a unit: commands that outlive the call that begins them."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Iterator, List, Mapping, Sequence

from .._calls import RECONNECTIONS, Call, new_key, quoted, without_none
from .._pieces import Output, OutputPiece
from .._shell import argv_of
from .._waiting import sleep
from ..errors import ConnectionFailedError
from .transport import Transport

if TYPE_CHECKING:
    from .. import types as t

#: Of one call.
INPUT_BYTES = 256 * 1024


class Process:
    def __init__(self, transport: Transport, info: t.Process) -> None:
        self._transport = transport
        self._path = f"/v1/units/{info['unitId']}/processes/{info['id']}"
        #: As the last answer has it.
        self.info = info

    def __repr__(self) -> str:
        return f"<Process {' '.join(self.info['cmd'])[:60]!r} {self.state}, {self.id}>"

    @property
    def id(self) -> str:
        return self.info["id"]

    @property
    def state(self) -> str:
        return self.info["state"]

    @property
    def exit_code(self) -> int | None:
        """None while it runs, and for one that was lost."""
        return self.info["exitCode"]

    def refresh(self, *, timeout: float | None = None) -> Process:
        self.info = self._transport.json(Call("GET", self._path, timeout=timeout))
        return self

    def read(
        self, *, after: int | None = None, max_bytes: int | None = None, timeout: float | None = None
    ) -> t.ProcessOutput:
        """What is kept of its output from an offset on, without waiting for more."""
        query = {"after": after, "maxBytes": max_bytes}
        call = Call("GET", f"{self._path}/output", query=query, timeout=timeout)
        output: t.ProcessOutput = self._transport.json(call)
        return output

    def text(self, *, timeout: float | None = None) -> Output:
        """All of its output as text, as far as it is kept."""
        said = {"stdout": bytearray(), "stderr": bytearray()}
        after = 0
        while True:
            page = self.read(after=after, timeout=timeout)
            if not page["output"]:
                stdout, stderr = (bytes(said[name]).decode("utf-8", "replace") for name in ("stdout", "stderr"))
                return Output(stdout, stderr)
            for piece in page["output"]:
                said[piece["stream"]] += OutputPiece.of(piece["stream"], piece).data
            after = page["next"]

    def follow(self, *, after: int = 0, timeout: float | None = None) -> Iterator[OutputPiece]:
        """Its output to its end. A lost connection is taken up again where it broke."""
        lost = 0
        while True:
            query = {"after": after, "follow": True}
            try:
                call = Call("GET", f"{self._path}/output", query=query, timeout=timeout)
                for event, data, cursor in self._transport.events(call):
                    if event == "end":
                        self.info["state"] = data["state"]
                        self.info["exitCode"] = data["exitCode"]
                        return
                    yield OutputPiece.of(event, data)
                    after = after if cursor is None else int(cursor)
                    lost = 0
                return
            except ConnectionFailedError:
                lost += 1
                if lost > RECONNECTIONS:
                    raise
            sleep(0.2 * 2**lost)

    def wait(self, *, timeout: float | None = None) -> Process:
        """Until it has ended."""
        for _ in self.follow(after=self.info["output"]["to"], timeout=timeout):
            pass
        return self.refresh(timeout=timeout)

    def signal(self, signal: t.Signal = "TERM", *, timeout: float | None = None) -> Process:
        """For its process group; KILL is for all that came of it."""
        call = Call("POST", f"{self._path}/signal", body={"signal": signal}, timeout=timeout)
        self.info = self._transport.json(call)
        return self

    def write(
        self, data: str | bytes, *, end: bool = False, timeout: float | None = None
    ) -> None:
        """Writes to its standard input, until it has taken all: it must have been started with `takes_input`. `end`: the
        input ends after that. A call that fails may have written some of it."""
        rest = data.encode() if isinstance(data, str) else bytes(data)
        while True:
            piece = rest[:INPUT_BYTES]
            is_last = len(piece) == len(rest)
            body = {"data": b64encode(piece).decode(), "encoding": "base64", "end": end and is_last}
            answer: t.ProcessInputTaken = self._transport.json(
                Call("POST", f"{self._path}/input", body=body, timeout=timeout)
            )
            rest = rest[answer["taken"] :]
            if is_last and not rest:
                return

    def end_input(self, *, timeout: float | None = None) -> None:
        """Its standard input ends: what reads it sees an end of file."""
        self.write(b"", end=True, timeout=timeout)

    def keep_awake(self, seconds: float | None = None, *, timeout: float | None = None) -> Process:
        """It keeps its unit awake for so long from now on, at most an hour, and not beyond its end. 0: no longer."""
        body = without_none(forMs=None if seconds is None else round(seconds * 1000))
        self.info = self._transport.json(
            Call("POST", f"{self._path}/keep-awake", body=body, timeout=timeout)
        )
        return self

    def delete(self, *, timeout: float | None = None) -> Process:
        """Killed if it runs, and forgotten."""
        self.info = self._transport.json(Call("DELETE", self._path, timeout=timeout))
        return self


class Processes:
    def __init__(self, transport: Transport, unit_id: str) -> None:
        self._transport = transport
        self._path = f"/v1/units/{unit_id}/processes"
        self._table = f"/v1/units/{unit_id}/process-table"

    def start(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        takes_input: bool | None = None,
        keeps_awake: bool | None = None,
        tag: str | None = None,
        user: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> Process:
        """A list runs as it is, a string through `sh -c`. `takes_input`: its standard input stays open for `write`. `user`: who runs it, a name or a number of the unit's
        `/etc/passwd`."""
        body = without_none(
            cmd=argv_of(command),
            cwd=cwd,
            env=env,
            stdin=stdin,
            takesInput=takes_input,
            keepsAwake=keeps_awake,
            tag=tag,
            user=user,
        )
        key = idempotency_key or new_key()
        call = Call("POST", self._path, body=body, idempotency_key=key, timeout=timeout)
        return Process(self._transport, self._transport.json(call))

    def list(self, *, tag: str | None = None, timeout: float | None = None) -> List[Process]:
        """Oldest first; only those with that tag, where one is named."""
        call = Call("GET", self._path, query={"tag": tag}, timeout=timeout)
        told: t.ProcessList = self._transport.json(call)
        return [Process(self._transport, info) for info in told["processes"]]

    def table(self, *, timeout: float | None = None) -> t.ProcessTable:
        """Everything that runs in the unit, with the pids that it sees itself: also what no call started."""
        table: t.ProcessTable = self._transport.json(Call("GET", self._table, timeout=timeout))
        return table

    def signal_pid(
        self, pid: int, signal: t.Signal = "TERM", *, timeout: float | None = None
    ) -> t.PidSignalled:
        """For that process alone, also if no call started it."""
        call = Call("POST", f"{self._table}/{pid}/signal", body={"signal": signal}, timeout=timeout)
        signalled: t.PidSignalled = self._transport.json(call)
        return signalled

    def get(self, id: str, *, timeout: float | None = None) -> Process:
        call = Call("GET", f"{self._path}/{quoted(id)}", timeout=timeout)
        return Process(self._transport, self._transport.json(call))
