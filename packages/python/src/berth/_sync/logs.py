# Written by `npm run gen` from berth/_async: do not edit.
"""What a unit's own process printed. Reading wakes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterator

from .._calls import RECONNECTIONS, Call
from .._waiting import sleep
from ..errors import ConnectionFailedError
from .transport import Transport

if TYPE_CHECKING:
    from .. import types as t


def log_page(
    transport: Transport, unit_id: str, since: str | None, limit: int | None, timeout: float | None
) -> t.LogPage:
    query = {"since": since, "limit": limit}
    page: t.LogPage = transport.json(Call("GET", f"/v1/units/{unit_id}/logs", query=query, timeout=timeout))
    return page


def follow_log(
    transport: Transport, unit_id: str, since: str | None, limit: int | None, timeout: float | None
) -> Iterator[t.LogLine]:
    """One that loses its connection goes on behind the last line that came."""
    after = since
    lost = 0
    while True:
        query = {"since": after, "limit": limit, "follow": True}
        try:
            call = Call("GET", f"/v1/units/{unit_id}/logs", query=query, timeout=timeout)
            for event, data, cursor in transport.events(call):
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
        sleep(0.2 * 2**lost)
