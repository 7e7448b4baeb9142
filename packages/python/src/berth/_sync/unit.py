# Written by `npm run gen` from berth/_async: do not edit.
"""A unit, as the last answer has it, and what can be done with it. Methods that change it renew `info`."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterator, List, Mapping, Literal, NamedTuple, Sequence

from .._calls import DEFAULT_WAIT, Call, new_key, quoted, wait_of, without_none
from .._shell import Word, shell_line
from .._waiting import sleep
from ..errors import ExecResult, InternalError, NotFoundError, NotReadyError, ProviderError
from .code import Code
from .command import Command, exec_call, execute, start_command
from .files import Files
from .logs import egress_log_page, follow_egress_log, follow_log, log_page
from .processes import Processes
from .terminal import Terminal, open_terminal
from .transport import Transport

if TYPE_CHECKING:
    from .. import types as t

_LONGEST_PAUSE = 2.0


class Unit:
    def __init__(
        self,
        transport: Transport,
        info: t.Unit,
        *,
        outputs: Mapping[str, str] | None = None,
        cost_line: str | None = None,
        copied: str | None = None,
    ) -> None:
        self._transport = transport
        self._path = f"/v1/units/{info['id']}"
        #: As the last answer has it.
        self.info = info
        #: Generated secrets and connection strings, and `URL` when it was published. They are told once, to the program
        #: that makes the unit.
        self.outputs = dict(outputs or {})
        #: Cost and sleep in words.
        self.cost_line = cost_line
        #: Of a fork: `memory`, `disk` or `config`, whichever came along.
        self.copied = copied
        self.files = Files(transport, info["id"])
        #: For units of the image berth.local/code:1.
        self.code = Code(transport, info["id"])
        self.processes = Processes(transport, info["id"])

    def __repr__(self) -> str:
        return f"<Unit {self.name} {self.state}, {self.info['image']}, {self.id}>"

    @property
    def id(self) -> str:
        return self.info["id"]

    @property
    def name(self) -> str:
        return self.info["name"]

    @property
    def state(self) -> str:
        return self.info["state"]

    def refresh(self, *, timeout: float | None = None) -> Unit:
        self.info = self._transport.json(Call("GET", self._path, timeout=timeout))
        return self

    def change(
        self,
        *,
        metadata: Mapping[str, str] | None = None,
        time_to_live: str | None = None,
        at_end: Literal["destroy", "sleep", "stop"] | None = None,
        timeout: float | None = None,
    ) -> Unit:
        """Its labels, all of them anew, and how long it lives from now on: `90s`, `2h`, or `never` for without an end."""
        body = without_none(metadata=metadata, timeToLive=time_to_live, atEnd=at_end)
        self.info = self._transport.json(Call("PATCH", self._path, body=body, timeout=timeout))
        return self

    def ready(self, *, timeout: float = DEFAULT_WAIT) -> Unit:
        """Until it is no longer on its way to run. Raises ProviderError where it could not be made, NotReadyError where it
        takes longer."""
        until = time.monotonic() + timeout
        pause = 0.1
        while self.state in ("creating", "starting"):
            if time.monotonic() > until:
                raise NotReadyError(f'Unit "{self.name}" is still {self.state} after {timeout:g} s.')
            sleep(min(pause, _LONGEST_PAUSE))
            pause *= 1.5
            self.refresh()
        if self.state == "error":
            raise ProviderError(self.info["error"] or f'Unit "{self.name}" could not be made.')
        return self

    def exec(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        user: str | None = None,
        timeout: float | None = None,
        check: bool = False,
    ) -> ExecResult:
        """Runs a command to its end: a list as it is, a string through `sh -c`. It may take `timeout` seconds. A code other
        than 0 is no error without `check`."""
        call = exec_call(self.id, command, cwd=cwd, env=env, stdin=stdin, user=user, timeout=timeout)
        return execute(self._transport, call, check=check)

    def sh(self, line: str, *words: Word, **named: Word) -> ExecResult:
        """A line for the unit's shell, with every value in it quoted: `unit.sh("grep -c {} {}", pattern, paths)`. A brace of
        the shell's own is written twice."""
        return self.exec(shell_line(line, words, named))

    def spawn(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        user: str | None = None,
        timeout: float | None = None,
    ) -> Command:
        """Begins a command whose output is read as it comes. It ends with its reader; see `processes` for what is to go
        on."""
        call = exec_call(self.id, command, cwd=cwd, env=env, stdin=stdin, user=user, timeout=timeout)
        return start_command(self._transport, call)

    def terminal(
        self,
        command: str | Sequence[str] | None = None,
        *,
        tty: bool = True,
        columns: int | None = None,
        rows: int | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        session: str | None = None,
        timeout: float | None = None,
    ) -> Terminal:
        """Opens a shell, or another interactive command. It ends with its connection, for whose opening `timeout` is. With a
        `session`, a name of your choice, it goes on for ten minutes, and another terminal with that name attaches to it and is
        shown what it printed last. Without `tty` it has pipes, with standard error apart. It takes the package `websockets`."""
        return open_terminal(
            self._transport,
            self.id,
            command,
            tty=tty,
            columns=columns,
            rows=rows,
            cwd=cwd,
            env=env,
            user=user,
            session=session,
            timeout=timeout,
        )

    def logs(
        self,
        *,
        follow: bool = False,
        since: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Iterator[t.LogLine]:
        """Its newest lines, or those after `since`; with `follow` also every line that comes, until its run ends."""
        if not follow:
            for line in (self.log_page(since=since, limit=limit, timeout=timeout))["lines"]:
                yield line
            return
        for line in follow_log(self._transport, self.id, since, limit, timeout):
            yield line

    def log_page(
        self, *, since: str | None = None, limit: int | None = None, timeout: float | None = None
    ) -> t.LogPage:
        """One answer of the log, with the cursor to go on from."""
        return log_page(self._transport, self.id, since, limit, timeout)

    def metrics(self, *, timeout: float | None = None) -> t.UnitMetrics:
        """What it uses now: processor, memory, processes, disk and network. Counts go on from the start of its machine."""
        metrics: t.UnitMetrics = self._transport.json(Call("GET", f"{self._path}/metrics", timeout=timeout))
        return metrics

    def metrics_history(
        self, range: Literal["day", "month"] = "day", *, timeout: float | None = None
    ) -> t.MetricsHistory:
        """What it used: a day by the minute, or a month by the hour. Times in which it did not run have no point."""
        call = Call("GET", f"{self._path}/metrics/history", query={"range": range}, timeout=timeout)
        history: t.MetricsHistory = self._transport.json(call)
        return history

    def follow_metrics(self, *, timeout: float | None = None) -> Iterator[t.UnitMetrics]:
        """The same every two seconds, until it is destroyed."""
        call = Call("GET", f"{self._path}/metrics", query={"follow": True}, timeout=timeout)
        for event, data, _ in self._transport.events(call):
            if event == "end":
                return
            sample: t.UnitMetrics = data
            yield sample

    def expose(
        self,
        port: int,
        *,
        mode: t.Mode | None = None,
        protocol: t.Protocol | None = None,
        rotate: bool | None = None,
        timeout: float | None = None,
    ) -> t.Exposed:
        """Publishes a port. A unit has one URL: another port moves it, and restarts the unit."""
        body = without_none(port=port, mode=mode, protocol=protocol, rotate=rotate)
        call = Call("POST", f"{self._path}/expose", body=body, timeout=timeout, extra=DEFAULT_WAIT)
        exposed: t.Exposed = self._transport.json(call)
        self.refresh(timeout=timeout)
        return exposed

    def url(
        self, port: int, *, mode: t.Mode | None = None, rotate: bool = False, timeout: float | None = None
    ) -> str:
        """The URL of a port, published for those who have the URL, where it is not published yet."""
        for endpoint in self.info["endpoints"]:
            is_there = endpoint["port"] == port and endpoint["protocol"] == "http"
            if is_there and not rotate and mode in (None, endpoint["mode"]):
                return endpoint["url"]
        exposed = self.expose(port, mode=mode, protocol="http", rotate=rotate, timeout=timeout)
        return exposed["url"]

    def fetch(
        self,
        port: int,
        path: str = "/",
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        content: bytes | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Sends a request to a port of it, published or not, and wakes it. Returns what answers there, with any status, as a
        Response of httpx, and raises what the service itself says, such as that nothing listens there."""
        call = Call(method, self._port_path(port, path), body=json, content=content, timeout=timeout)
        return self._transport.fetch(call, headers or {})

    def port_url(self, port: int, path: str = "/") -> str:
        """Where that port is, for other clients: they send `authorization: Bearer` and the key. `ws` in place of `http` for a
        WebSocket."""
        return self._transport.settings.url + self._port_path(port, path)

    def _port_path(self, port: int, path: str) -> str:
        return f"{self._path}/ports/{port}{'' if path.startswith('/') else '/'}{path}"

    def fork(
        self,
        *,
        name: str | None = None,
        stack: str | None = None,
        env: Mapping[str, str] | None = None,
        sleep: str | None = None,
        wait: bool = True,
        wait_timeout: float = DEFAULT_WAIT,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> Unit:
        """A copy of it as it is now; `copied` of the copy says whether with its memory."""
        asked = without_none(name=name, stack=stack, env=env, sleep=sleep)
        forked = fork_of(
            self._transport, self._path, asked, wait, wait_timeout, idempotency_key, timeout
        )
        if not forked.units:
            raise InternalError("A fork without a unit was answered.")
        return forked.units[0]

    def egress(self, *, timeout: float | None = None) -> t.EgressInForce:
        """What it may reach, and since when that is in force."""
        rules: t.EgressInForce = self._transport.json(Call("GET", f"{self._path}/egress", timeout=timeout))
        return rules

    def set_egress(
        self,
        *,
        mode: Literal["open", "listed", "none"] | None = None,
        allow: Sequence[str] | None = None,
        deny: Sequence[str] | None = None,
        siblings: Literal["team", "stack", "none"] | None = None,
        timeout: float | None = None,
    ) -> t.EgressSet:
        """Replaces what it may reach, also while it runs. Returns once that is in force, with the rules of before."""
        lists = {"allow": allow, "deny": deny}
        named = {key: None if each is None else list(each) for key, each in lists.items()}
        body = without_none(mode=mode, siblings=siblings, **named)
        rules: t.EgressSet = self._transport.json(Call("PUT", f"{self._path}/egress", body=body, timeout=timeout))
        return rules

    def set_secret(
        self,
        name: str,
        value: str,
        *,
        hosts: Sequence[str] | None = None,
        methods: Sequence[str] | None = None,
        paths: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> t.UnitSecret:
        """
        Gives a secret that it got with `hosts` another value, and other hosts, methods and paths if they are named, while
        it runs: its requests have the value from the answer on. Raises NotFoundError if it has no such secret.
        """
        lists = {"hosts": hosts, "methods": methods, "paths": paths}
        named = {key: None if each is None else list(each) for key, each in lists.items()}
        call = Call(
            "PUT", f"{self._path}/secrets/{quoted(name)}", body=without_none(value=value, **named), timeout=timeout
        )
        answer: t.UnitSecret = self._transport.json(call)
        return answer

    def tell_calls(self, calls: Sequence[t.UnitCallsCall], *, timeout: float | None = None) -> None:
        """Writes into the audit log what reached it through a port of its own. For programs that pass such calls on."""
        self._transport.json(Call("POST", f"{self._path}/calls", body={"calls": list(calls)}, timeout=timeout))

    def check_egress(self, host: str, port: int = 443, *, timeout: float | None = None) -> t.EgressDecision:
        """Says whether it may reach a host, and why. Nothing is sent there."""
        body = {"host": host, "port": port}
        call = Call("POST", f"{self._path}/egress/check", body=body, timeout=timeout)
        decision: t.EgressDecision = self._transport.json(call)
        return decision

    def allow_egress(self, entry: str, *, timeout: float | None = None) -> t.EgressInForce:
        """Adds an entry to what it may reach, such as the `entry` of a refused line of its log. Of a unit that may reach
        every host it changes nothing."""
        rules = self.egress(timeout=timeout)
        if rules["mode"] == "open" or entry in rules["allow"]:
            return rules
        allow = [*rules["allow"], entry]
        return self.set_egress(
            mode="listed", allow=allow, deny=rules.get("deny", []), siblings=rules["siblings"], timeout=timeout
        )

    def egress_log(
        self,
        *,
        follow: bool = False,
        since: str | None = None,
        limit: int | None = None,
        decision: Literal["allowed", "refused"] | None = None,
        timeout: float | None = None,
    ) -> Iterator[t.EgressLogLine]:
        """What it reached and was refused, summed up by minute: the newest lines, or those after `since`; with `follow`
        also every line that comes or grows, until it is destroyed."""
        if not follow:
            page = self.egress_log_page(since=since, limit=limit, decision=decision, timeout=timeout)
            for line in page["lines"]:
                yield line
            return
        for line in follow_egress_log(self._transport, self.id, since, limit, decision, timeout):
            yield line

    def egress_log_page(
        self,
        *,
        since: str | None = None,
        limit: int | None = None,
        decision: Literal["allowed", "refused"] | None = None,
        timeout: float | None = None,
    ) -> t.EgressLogPage:
        """One answer of that log, with the cursor to go on from."""
        return egress_log_page(self._transport, self.id, since, limit, decision, timeout)

    def sleep(
        self, window: str, *, stack: bool | None = None, now: bool | None = None, timeout: float | None = None
    ) -> Unit:
        """Changes how long it may go unused before it sleeps: `30m`, `2h`, `never`. With `stack`, for all units of its stack;
        with `now`, it sleeps at once."""
        body = without_none(sleep=window, stack=stack, now=now)
        call = Call("POST", f"{self._path}/sleep", body=body, timeout=timeout, extra=DEFAULT_WAIT)
        told: t.SleepResult = self._transport.json(call)
        for info in told["units"]:
            if info["id"] == self.id:
                self.info = info
        return self

    def stop(self, *, timeout: float | None = None) -> Unit:
        """Ends its processes and keeps its disk."""
        return self._act("POST", "/stop", timeout)

    def start(self, *, timeout: float | None = None) -> Unit:
        return self._act("POST", "/start", timeout)

    def destroy(self, *, timeout: float | None = None) -> Unit:
        """Gone for good, with its disk and its volume."""
        return self._act("DELETE", "", timeout)

    def __enter__(self) -> Unit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """It is destroyed at the end of its block."""
        if self.state == "destroyed":
            return
        try:
            self.destroy()
        except NotFoundError:
            pass

    def _act(self, method: str, action: str, timeout: float | None) -> Unit:
        call = Call(method, self._path + action, timeout=timeout, extra=DEFAULT_WAIT)
        self.info = self._transport.json(call)
        return self


class Forked(NamedTuple):
    units: List[Unit]
    #: Name of the stack of the copies.
    stack: str
    #: Units that were not copied, with the reason.
    skipped: List[str]
    outputs: Mapping[str, str]
    cost_line: str


def fork_of(
    transport: Transport,
    path: str,
    asked: Mapping[str, object],
    wait: bool,
    wait_timeout: float,
    idempotency_key: str | None,
    timeout: float | None,
) -> Forked:
    """Forks the unit or the stack at that path."""
    waiting = wait_of(wait, wait_timeout)
    key = idempotency_key or new_key()
    body = {**asked, **waiting.fields}
    call = Call(
        "POST", f"{path}/fork", body=body, idempotency_key=key, timeout=timeout, extra=waiting.extra
    )
    told: t.ForkResult = transport.json(call)
    outputs, cost_line, copied = told["outputs"], told["costLine"], told["copied"]
    units = [
        Unit(transport, info, outputs=outputs, cost_line=cost_line, copied=copied.get(info["name"]))
        for info in told["units"]
    ]
    return Forked(units, told["stack"], told["skipped"], outputs, cost_line)
