"""What a unit's own process printed. Reading wakes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, AsyncIterator

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
    """One that loses its connection goes on behind the last line that came."""
    after = since
    lost = 0
    while True:
        query = {"since": after, "limit": limit, "follow": True}
        try:
            call = Call("GET", f"/v1/units/{unit_id}/logs", query=query, timeout=timeout)
            async for event, data, cursor in transport.events(call):
                if event == "end":
                    return
                line: t.LogLine = data
                yield line
                after = cursor or after
                lost = 0
            return
        except ConnectionFailedError:
            lost += 1
            if after is None or lost > RECONNECTIONS:
                raise
        await async_sleep(0.2 * 2**lost)
