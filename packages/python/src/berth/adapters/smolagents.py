"""A unit as the Python of a smolagents agent: `CodeAgent(tools, model, executor=BerthExecutor(unit))`."""

from __future__ import annotations

import io
import shlex
from typing import Mapping, Sequence

import PIL.Image
from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.utils import AgentError

from .. import CodeOutcome, NotFoundError, Unit

#: In characters. Variables with pictures make longer code than one call takes.
_LONGEST_CODE = 1_000_000
_PICTURES = frozenset(["image/png", "image/jpeg"])


class BerthExecutor(RemotePythonExecutor):
    """
    Runs an agent's code in a context of its own: its variables stay from step to step, and other agents in the unit do not
    see them. The unit is the caller's; `cleanup()`, which the agent calls at the end of its `with` block, ends the context.

    :param unit: A unit of the image `berth.local/code:1`.
    :param additional_imports: Packages to install with pip before the agent starts. Many are there: docs/guides/code.md.
    :param logger: Where the executor reports. Nowhere without it, since the agent itself reports what it is told.
    :param allow_pickle: As of every executor of smolagents: whether values that are no JSON may travel as pickles. Who
        controls the unit then controls this process, too.
    :param timeout: Seconds that a step may take.
    :param cwd: Where the code begins; `/home/user` without it.
    :param env: Added to the environment of the code.
    :raises AgentError: If a package cannot be installed.
    """

    def __init__(
        self,
        unit: Unit,
        *,
        additional_imports: Sequence[str] = (),
        logger: AgentLogger | None = None,
        allow_pickle: bool = False,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(list(additional_imports), logger or AgentLogger(level=LogLevel.OFF), allow_pickle)
        self.unit = unit
        self._timeout = timeout
        self._context: str | None = unit.code.create_context(language="python", cwd=cwd, env=env)["id"]
        self._install(self.additional_imports)

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        """
        Run one step.

        :returns: What it printed, and the value of its last line: a picture as one of PIL, anything else as text. After
            `final_answer(…)` the value is the answer itself.
        :raises AgentError: If the code fails or runs out of time, with what it printed before.
        :raises BerthError: If the unit could not be asked.
        """
        outcome = self.unit.code.run(self._sendable(code), context=self._context, timeout=self._timeout)
        logs = _logs_of(outcome)
        error = outcome.error
        if error is not None and error["name"] == self.FINAL_ANSWER_EXCEPTION:
            answer = self._deserialize_final_answer(error["value"], self.allow_pickle)
            return CodeOutput(output=answer, logs=logs, is_final_answer=True)
        if outcome.info["timedOut"]:
            raise AgentError(f"{logs}\nThe code ran out of time and was interrupted.", self.logger)
        if error is not None:
            raise AgentError("\n".join([logs, *error["traceback"]]), self.logger)
        return CodeOutput(output=_value_of(outcome), logs=logs, is_final_answer=False)

    def cleanup(self) -> None:
        """End the context, with its variables. A second call does nothing."""
        if self._context is None:
            return
        context, self._context = self._context, None
        try:
            self.unit.code.delete(context)
        except NotFoundError:
            # The unit was destroyed before.
            pass

    def _install(self, packages: Sequence[str]) -> None:
        if not packages:
            return
        command = "!" + shlex.join(["pip", "install", "--quiet", *packages])
        # A failure of a command after `!` is no error of the code.
        self.run_code_raise_errors(f"{command}\nassert _exit_code == 0, 'pip failed'")
        self.installed_packages = list(packages)

    def _sendable(self, code: str) -> str:
        """Returns the code, or a short one that runs it from a file."""
        if len(code) <= _LONGEST_CODE:
            return code
        path = f"/tmp/berth-{self._context}.py"
        self.unit.files.write_stream(path, code.encode())
        return f"exec(compile(open({path!r}).read(), '<code>', 'exec'), globals())"


def _logs_of(outcome: CodeOutcome) -> str:
    cut = "\n(the rest of the output was left out)" if outcome.info["truncated"] else ""
    return outcome.stdout + outcome.stderr + cut


def _value_of(outcome: CodeOutcome) -> object:
    """Of the last line, or the last plot where the last line has no value."""
    if outcome.images and (outcome.text is None or _is_picture(outcome)):
        return PIL.Image.open(io.BytesIO(outcome.images[-1].data))
    return outcome.text


def _is_picture(outcome: CodeOutcome) -> bool:
    return any(result["main"] and not _PICTURES.isdisjoint(result["data"]) for result in outcome.results)
