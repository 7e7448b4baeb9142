"""What a call is, when it may be sent again, and what a stream of events says. Nothing here waits or connects. A call is
sent again only where that cannot do it twice: reads, PUT, DELETE, what has an Idempotency-Key, and whatever was refused by
a rate before it began."""

from __future__ import annotations

import json
import os
from typing import IO, Any, Mapping, NamedTuple
from urllib.parse import quote, urlencode

from ._settings import Settings
from .errors import BerthError, ConnectionFailedError

#: What waits for units or commands has this besides, in seconds.
DEFAULT_WAIT = 120.0
#: The longest that one call waits: some clients give up on a silent answer at 300 s. A longer wait asks again.
MAX_WAIT = 240.0
RECONNECTIONS = 5


class Call(NamedTuple):
    method: str
    path: str
    query: Mapping[str, Any] = {}
    #: Sent as JSON.
    body: Any = None
    #: Sent unchanged; a file is read from its current position, again for each attempt.
    content: bytes | IO[bytes] | None = None
    content_type: str = "application/octet-stream"
    idempotency_key: str | None = None
    #: Until the answer begins, in seconds. Default: the client's.
    timeout: float | None = None
    #: Beside the time that every call has.
    extra: float = 0.0


class StreamEvent(NamedTuple):
    event: str
    data: Any
    id: str | None


def new_key() -> str:
    """A random name for a call."""
    return os.urandom(16).hex()


def quoted(id: str) -> str:
    """As one part of a path."""
    return quote(id, safe="")


def url_of(settings: Settings, call: Call) -> str:
    said = [
        (name, ("true" if each else "false") if isinstance(each, bool) else str(each))
        for name, value in call.query.items()
        # A list is said once for each of its items.
        for each in (value if isinstance(value, list) else [] if value is None else [value])
    ]
    return settings.url + call.path + (f"?{urlencode(said)}" if said else "")


def headers_of(settings: Settings, call: Call, accept: str) -> dict[str, str]:
    headers = {
        "authorization": f"Bearer {settings.api_key()}",
        "accept": accept,
        "user-agent": settings.user_agent,
    }
    if call.body is not None or call.content is not None:
        headers["content-type"] = "application/json" if call.content is None else call.content_type
    if call.idempotency_key is not None:
        headers["idempotency-key"] = call.idempotency_key
    return headers


def body_of(call: Call) -> bytes | IO[bytes] | None:
    if call.content is not None or call.body is None:
        return call.content
    return json.dumps(call.body, ensure_ascii=False).encode()


def wait_before(settings: Settings, call: Call, error: BerthError, attempt: int) -> float | None:
    """How long to wait before the call is sent again, in seconds; None: it is not."""
    if attempt >= settings.retries:
        return None
    is_refused = error.status == 429
    is_away = error.status == 503 or isinstance(error, ConnectionFailedError)
    is_repeatable = call.idempotency_key is not None or call.method in ("GET", "PUT", "DELETE")
    if not is_refused and not (is_away and is_repeatable):
        return None
    jitter = os.urandom(1)[0] / 256
    wait = max(error.retry_after or 0.0, 0.25 * 2**attempt * (1 + jitter))
    return None if wait > settings.max_retry_after else wait


def pairs_of(metadata: Mapping[str, str] | None) -> str | None:
    """As one value of a query."""
    return None if metadata is None else urlencode(metadata)


def without_none(**fields: Any) -> dict[str, Any]:
    """What was said of a body."""
    return {name: value for name, value in fields.items() if value is not None}


class Wait(NamedTuple):
    """How long the service is to wait for units, how long the caller waits for it, and how long asks again after it."""

    fields: dict[str, Any]
    extra: float
    rest: float


def wait_of(wait: bool, wait_timeout: float) -> Wait:
    once = min(wait_timeout, MAX_WAIT)
    fields = {"wait": wait, "waitTimeoutMs": round(once * 1000)}
    return Wait(fields, once if wait else 0.0, wait_timeout - once if wait else 0.0)


class EventDecoder:
    """Server-Sent Events from the bytes of an answer (WHATWG HTML, 9.2)."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[StreamEvent]:
        *blocks, self._rest = (self._rest + chunk).split(b"\n\n")
        return [event for event in map(_event_of, blocks) if event is not None]


def _event_of(block: bytes) -> StreamEvent | None:
    """None for a comment."""
    fields: dict[str, str] = {}
    for line in block.decode("utf-8", "replace").split("\n"):
        name, colon, value = line.partition(":")
        if name and colon:
            fields[name] = value[1:] if value.startswith(" ") else value
    if "data" not in fields:
        return None
    return StreamEvent(fields.get("event", "message"), json.loads(fields["data"]), fields.get("id"))
