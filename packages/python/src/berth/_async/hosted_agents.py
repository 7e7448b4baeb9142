"""Environments of vendors whose hosted agents work in units here. People add and change them, in the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, List

from .._calls import Call, quoted
from .transport import AsyncTransport

if TYPE_CHECKING:
    from .. import types as t


class AsyncHostedAgents:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, *, timeout: float | None = None) -> List[t.HostedEnvironment]:
        """Each with its state and last error."""
        call = Call("GET", "/v1/hosted-agents", timeout=timeout)
        told: t.HostedList = await self._transport.json(call)
        return told["environments"]

    async def get(self, id: str, *, timeout: float | None = None) -> t.HostedAnswer:
        """With its sessions, those that changed last first. Raises NotFoundError."""
        answer: t.HostedAnswer = await self._transport.json(
            Call("GET", f"/v1/hosted-agents/{quoted(id)}", timeout=timeout)
        )
        return answer
