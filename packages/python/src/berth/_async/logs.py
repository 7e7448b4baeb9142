"""Logs of a unit: what its own process printed, and what it reached. Reading wakes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, AsyncIterator, Mapping

from .._calls import RECONNECTIONS, Call
from .._waiting import async_sleep
from ..errors import ConnectionFailedError
from .transport import AsyncTransport

if TYPE_CHECKING:
    from .. import types as t


async def log_page(
    transport: AsyncTransport, unit_id: str, since: str | None, limit: int | None, timeout: float | None
) -> t.LogPage:
    query = {"since": since, "limit": limit}
    page: t.LogPage = await transport.json(Call("GET", f"/v1/units/{unit_id}/logs", query=query, timeout=timeout))
    return page


async def follow_log(
    transport: AsyncTransport, unit_id: str, since: str | None, limit: int | None, timeout: float | None
) -> AsyncIterator[t.LogLine]:
    query = {"since": since, "limit": limit}
    async for line in _followed(transport, f"/v1/units/{unit_id}/logs", query, timeout):
        yield line


async def egress_log_page(
    transport: AsyncTransport,
    unit_id: str,
    since: str | None,
    limit: int | None,
    decision: str | None,
    timeout: float | None,
) -> t.EgressLogPage:
    query = {"since": since, "limit": limit, "decision": decision}
    call = Call("GET", f"/v1/units/{unit_id}/egress/log", query=query, timeout=timeout)
    page: t.EgressLogPage = await transport.json(call)
    return page


async def follow_egress_log(
    transport: AsyncTransport,
    unit_id: str,
    since: str | None,
    limit: int | None,
    decision: str | None,
    timeout: float | None,
) -> AsyncIterator[t.EgressLogLine]:
    query = {"since": since, "limit": limit, "decision": decision}
    async for line in _followed(transport, f"/v1/units/{unit_id}/egress/log", query, timeout):
        yield line


async def _followed(
    transport: AsyncTransport, path: str, query: Mapping[str, Any], timeout: float | None
) -> AsyncIterator[Any]:
    """One that loses its connection goes on behind the last line that came."""
    after = query["since"]
    lost = 0
    while True:
        asked = {**query, "since": after, "follow": True}
        try:
            async for event, data, cursor in transport.events(Call("GET", path, query=asked, timeout=timeout)):
                if event == "end":
                    return
                yield data
                after = cursor or after
                lost = 0
            return
        except ConnectionFailedError:
            lost += 1
            if after is None or lost > RECONNECTIONS:
                raise
        await async_sleep(0.2 * 2**lost)
