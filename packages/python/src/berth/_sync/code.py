# Written by `npm run gen` from berth/_async: do not edit.
"""Code in contexts of a unit of the image berth.local/code: variables stay from one run to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator, List, Literal, Mapping

from .._calls import DEFAULT_WAIT, Call, StreamEvent, quoted, without_none
from .._code import CodeOutcome
from .transport import Transport

if TYPE_CHECKING:
    from .. import types as t

Language = Literal["python", "javascript", "typescript", "bash", "r"]


class Code:
    def __init__(self, transport: Transport, unit_id: str) -> None:
        self._transport = transport
        self._path = f"/v1/units/{unit_id}/code"

    def run(
        self,
        code: str,
        *,
        language: Language | None = None,
        context: str | None = None,
        timeout: float | None = None,
    ) -> CodeOutcome:
        """Runs code to its end, for `timeout` seconds at most. An error of the code is in the answer, and raises nothing. Without
        a context it runs in that of its language."""
        return CodeOutcome(self._transport.json(self._call(code, language, context, timeout)))

    def stream(
        self,
        code: str,
        *,
        language: Language | None = None,
        context: str | None = None,
        timeout: float | None = None,
    ) -> Iterator[StreamEvent]:
        """The events `begin`, `stdout`, `stderr`, `result`, `exception` and `end`, as they come. A reader that stops early interrupts
        the code."""
        for event in self._transport.events(self._call(code, language, context, timeout)):
            yield event

    def create_context(
        self,
        *,
        language: Language | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> t.CodeContext:
        """Its `id` is what the other calls take."""
        body = without_none(language=language, cwd=cwd, env=env)
        made: t.CodeContext = self._transport.json(
            Call("POST", f"{self._path}/contexts", body=body, timeout=timeout)
        )
        return made

    def contexts(self, *, timeout: float | None = None) -> List[t.CodeContext]:
        """Oldest first."""
        told: t.CodeContextList = self._transport.json(
            Call("GET", f"{self._path}/contexts", timeout=timeout)
        )
        return told["contexts"]

    def restart(self, context: str, *, timeout: float | None = None) -> t.CodeContext:
        """Begins it anew, without its variables."""
        return self._about("POST", f"{quoted(context)}/restart", timeout)

    def interrupt(self, context: str, *, timeout: float | None = None) -> t.CodeContext:
        """As Ctrl-C does: its variables stay."""
        return self._about("POST", f"{quoted(context)}/interrupt", timeout)

    def delete(self, context: str, *, timeout: float | None = None) -> None:
        self._about("DELETE", quoted(context), timeout)

    def _about(self, method: str, rest: str, timeout: float | None) -> t.CodeContext:
        told: t.CodeContext = self._transport.json(
            Call(method, f"{self._path}/contexts/{rest}", timeout=timeout)
        )
        return told

    def _call(self, code: str, language: str | None, context: str | None, timeout: float | None) -> Call:
        milliseconds = None if timeout is None else max(1, round(timeout * 1000))
        body = without_none(code=code, language=language, context=context, timeoutMs=milliseconds)
        # The unit may have to wake before, and a context to begin.
        return Call("POST", self._path, body=body, extra=DEFAULT_WAIT if timeout is None else timeout)
