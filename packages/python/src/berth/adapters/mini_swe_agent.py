"""A unit as the environment of mini-swe-agent: `mini --environment-class berth.adapters.mini_swe_agent.BerthEnvironment`. The
service is that of BERTH_URL and BERTH_API_KEY."""

from __future__ import annotations

import weakref
from typing import Any, Dict, List, Optional

from minisweagent.exceptions import Submitted
from minisweagent.utils.serialize import recursive_merge
from pydantic import BaseModel, Field

from .. import Berth, BerthError, Unit

#: What ends a run, as the agent's instructions say, if it is the first line of a command that ends with 0.
_SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


class BerthEnvironmentConfig(BaseModel):
    """`environment:` of a configuration file."""

    image: str = "berth.local/base:12"
    cwd: str = ""
    """Where commands begin; the image's working directory without it."""
    env: Dict[str, str] = {}
    """Added to the environment of each command."""
    user: Optional[str] = None
    """Who runs the commands: a name or a number of the unit's `/etc/passwd`."""
    timeout: int = 30
    """Seconds that a command may take."""
    interpreter: List[str] = ["bash", "-lc"]
    """What runs a command, which is its last argument."""
    time_to_live: str = "2h"
    """How long the unit lives at most. One whose program was killed is gone then."""
    create: Dict[str, Any] = Field(default_factory=dict)
    """Other arguments of `berth.units.create`, such as `size` or `egress`."""


class BerthEnvironment:
    """
    Makes a unit, runs each command of the agent in it, and destroys it at its end.

    :param unit: One that exists, in place of a new one. It stays.
    :param config_class: Of the configuration, which the other arguments are.
    :raises BerthError: If no unit could be made.
    """

    def __init__(
        self, *, unit: Unit | None = None, config_class: type = BerthEnvironmentConfig, **kwargs: Any
    ) -> None:
        self.config = config_class(**kwargs)
        self.unit = unit or self._make()
        # Programs of mini-swe-agent end without a call of `cleanup`.
        self._end = weakref.finalize(self, _destroy if unit is None else _keep, self.unit)
        self._system: Dict[str, str] | None = None

    def execute(self, action: Dict[str, Any], cwd: str = "", *, timeout: int | None = None) -> Dict[str, Any]:
        """
        Run `action["command"]`.

        :returns: `output`, both streams in the order in which they came; `returncode`, -1 if the command ran out of time;
            `exception_info`, what else the agent is told.
        :raises Submitted: If the command submits the agent's work.
        :raises BerthError: If the unit could not be asked.
        """
        config = self.config
        # Opened before the interpreter, so that both streams are one whatever the command does.
        argv = ["sh", "-c", 'exec "$@" 2>&1', "sh", *config.interpreter, action.get("command", "")]
        seconds = timeout or config.timeout
        result = self.unit.exec(argv, cwd=cwd or config.cwd or None, env=config.env, user=config.user, timeout=seconds)
        if result.timed_out:
            why = f"The command ran out of its {seconds} s and was killed."
            extra = {"exception_type": "TimeoutExpired", "exception": why}
            return {"output": result.stdout, "returncode": -1, "exception_info": why, "extra": extra}
        _end_if_submitted(result.stdout, result.exit_code)
        # Of what the service itself says, such as that there is no such interpreter.
        return {"output": result.stdout + result.stderr, "returncode": result.exit_code, "exception_info": ""}

    def get_template_vars(self, **kwargs: Any) -> Dict[str, Any]:
        """The configuration, and the system of the unit."""
        if self._system is None:
            self._system = _system_of(self.unit)
        return recursive_merge(self.config.model_dump(), self._system, kwargs)

    def serialize(self) -> Dict[str, Any]:
        """For the trajectory."""
        kind = f"{type(self).__module__}.{type(self).__name__}"
        config = {"environment": self.config.model_dump(mode="json"), "environment_type": kind}
        return {"info": {"config": config}}

    def cleanup(self) -> None:
        """Destroy the unit that this made. A second call does nothing."""
        self._end()

    def _make(self) -> Unit:
        config = self.config
        units = Berth(user_agent="mini-swe-agent").units
        return units.create(config.image, time_to_live=config.time_to_live, **config.create)


def _destroy(unit: Unit) -> None:
    try:
        unit.destroy()
    except BerthError:
        # There is nobody left to tell, and its time to live ends it.
        pass


def _keep(unit: Unit) -> None:
    pass


def _system_of(unit: Unit) -> Dict[str, str]:
    """As `platform.uname()` names it, for the templates that tell a model of the system."""
    told = unit.exec(["sh", "-c", "for each in s n r v m; do uname -$each; done"], check=True).stdout
    return dict(zip(["system", "node", "release", "version", "machine"], told.splitlines()))


def _end_if_submitted(output: str, exit_code: int) -> None:
    first, _, rest = output.lstrip().partition("\n")
    if exit_code != 0 or first.strip() != _SUBMIT:
        return
    raise Submitted(
        {"role": "exit", "content": rest, "extra": {"exit_status": "Submitted", "submission": rest}}
    )
