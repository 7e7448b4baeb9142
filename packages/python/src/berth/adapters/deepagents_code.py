"""Units for the deepagents CLI: with this package beside it, `dcode --sandbox berth` works in a unit. The CLI finds it by its
entry point. The service is that of BERTH_URL and BERTH_API_KEY."""

from __future__ import annotations

from typing import Any

from deepagents_code.integrations.sandbox_provider import (
    SandboxError,
    SandboxNotFoundError,
    SandboxProvider,
    SandboxProviderMetadata,
)

from .. import Berth, BerthError, NotFoundError
from .langchain import BerthSandbox

_HOME = "/root"


class BerthProvider(SandboxProvider):
    """Makes a unit for each session, or takes one by its id. `[sandboxes.providers]` of the CLI's `config.toml` may name what
    units are made of."""

    def __init__(self) -> None:
        self._berth: Berth | None = None

    @property
    def metadata(self) -> SandboxProviderMetadata:
        # Without a hint for the CLI to install it by: that would take a package of this name from PyPI, where it is not ours.
        return SandboxProviderMetadata(name="berth", working_dir=_HOME)

    def get_or_create(
        self, *, sandbox_id: str | None = None, image: str = "berth.local/base:12", **create: Any
    ) -> BerthSandbox:
        """
        :param sandbox_id: Of a unit that exists; it is woken by its first command.
        :param create: Arguments of `berth.units.create`, such as `size`, `env` or `egress`.
        :raises SandboxNotFoundError: If there is no unit of that id.
        :raises SandboxError: If no unit could be made.
        """
        try:
            units = self._service().units
            unit = units.create(image, **create) if sandbox_id is None else units.get(sandbox_id)
        except NotFoundError as error:
            raise SandboxNotFoundError(str(error)) from error
        except BerthError as error:
            raise SandboxError(str(error)) from error
        return BerthSandbox(unit, cwd=_HOME)

    def delete(self, *, sandbox_id: str, **_: Any) -> None:
        """
        Destroy the unit; one that is gone already is none to destroy.

        :raises SandboxError: If it could not be destroyed.
        """
        try:
            self._service().units.get(sandbox_id).destroy()
        except NotFoundError:
            return
        except BerthError as error:
            raise SandboxError(str(error)) from error

    def _service(self) -> Berth:
        # Not before it is used: the CLI also makes a provider to ask what it is.
        if self._berth is None:
            self._berth = Berth(user_agent="deepagents-code")
        return self._berth
