# Written by `npm run gen` from berth/_async: do not edit.
"""Environments of vendors whose hosted agents work in units here. People add and change them, in the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, List

from .._calls import Call, quoted
from .transport import Transport

if TYPE_CHECKING:
    from .. import types as t


class HostedAgents:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, timeout: float | None = None) -> List[t.HostedEnvironment]:
        """Each with its state and last error."""
        call = Call("GET", "/v1/hosted-agents", timeout=timeout)
        told: t.HostedList = self._transport.json(call)
        return told["environments"]

    def get(self, id: str, *, timeout: float | None = None) -> t.HostedAnswer:
        """With its sessions, those that changed last first. Raises NotFoundError."""
        answer: t.HostedAnswer = self._transport.json(
            Call("GET", f"/v1/hosted-agents/{quoted(id)}", timeout=timeout)
        )
        return answer
