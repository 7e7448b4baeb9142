# Written by `npm run gen` from berth/_async: do not edit.
"""Units: making, finding and listing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Literal, Mapping, NamedTuple, Sequence

from .._calls import DEFAULT_WAIT, Call, new_key, pairs_of, quoted, wait_of, without_none
from .._pieces import Page
from .._shell import name_for
from ..errors import InternalError, NotReadyError, ValidationError
from .lists import Pages
from .transport import Transport
from .unit import Unit

if TYPE_CHECKING:
    from .. import types as t


class Units:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        image: str | t.UnitSpec,
        *,
        name: str | None = None,
        stack: str | None = None,
        size: t.Size | None = None,
        cmd: Sequence[str] | None = None,
        entrypoint: Sequence[str] | None = None,
        env: Mapping[str, str | Mapping[str, str]] | None = None,
        ports: Sequence[int] | None = None,
        files: Mapping[str, str | Mapping[str, str]] | None = None,
        volume: t.UnitSpecVolume | None = None,
        healthcheck: t.UnitSpecHealthcheck | None = None,
        sleep: str | None = None,
        egress: t.EgressAsked | None = None,
        nested: bool | None = None,
        metadata: Mapping[str, str] | None = None,
        time_to_live: str | None = None,
        at_end: Literal["destroy", "sleep", "stop"] | None = None,
        expose: t.Mode | None = None,
        expose_port: int | None = None,
        wait: bool = True,
        wait_timeout: float = DEFAULT_WAIT,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> Unit:
        """An image, or a whole description. Waits until the unit runs, unless `wait` is false. Without a name it gets one of
        its image's. `expose_port` is the one that `expose` publishes, of a unit with several."""
        given: dict[str, Any] = {"image": image} if isinstance(image, str) else {**image}
        given |= without_none(
            name=name,
            size=size,
            cmd=cmd,
            entrypoint=entrypoint,
            env=env,
            ports=ports,
            files=files,
            volume=volume,
            healthcheck=healthcheck,
            sleep=sleep,
            egress=egress,
            nested=nested,
            metadata=metadata,
            timeToLive=time_to_live,
            atEnd=at_end,
            expose=expose_port,
        )
        given.setdefault("name", name_for(str(given.get("image", "")), new_key()[:6]))
        body = without_none(spec=given, stack=stack, expose=expose)
        made = make_from(self._transport, body, wait, wait_timeout, idempotency_key, timeout)
        return made.units[0]

    def list(
        self,
        *,
        stack: str | None = None,
        all: bool | None = None,
        metadata: Mapping[str, str] | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Pages[Unit]:
        """Of a stack, by its name or id; with `all`, destroyed ones too; with all of the labels in `metadata`. `limit` is that
        of a page."""

        def read(cursor: str | None) -> Page[Unit]:
            query = {
                "stack": stack,
                "all": all,
                "metadata": pairs_of(metadata),
                "limit": limit,
                "cursor": cursor,
            }
            told: t.UnitList = self._transport.json(
                Call("GET", "/v1/units", query=query, timeout=timeout)
            )
            return Page([Unit(self._transport, info) for info in told["units"]], told["next"])

        return Pages(read)

    def summary(
        self,
        *,
        stack: str | None = None,
        all: bool | None = None,
        state: str | Sequence[str] | None = None,
        q: str | None = None,
        timeout: float | None = None,
    ) -> t.UnitSummary:
        """How many units are in each state, and what they cost an hour. `q`: a part of a name, a stack or an image."""
        states = state if state is None or isinstance(state, str) else ",".join(state)
        query = {"stack": stack, "all": all, "state": states, "q": q}
        told: t.UnitSummary = self._transport.json(
            Call("GET", "/v1/units/summary", query=query, timeout=timeout)
        )
        return told

    def recent_metrics(self, *, timeout: float | None = None) -> t.RecentMetrics:
        """What each unit that ran used in the last day, by the hour."""
        recent: t.RecentMetrics = self._transport.json(Call("GET", "/v1/metrics/recent", timeout=timeout))
        return recent

    def get(self, id: str, *, timeout: float | None = None) -> Unit:
        """By id. Raises NotFoundError."""
        call = Call("GET", f"/v1/units/{quoted(id)}", timeout=timeout)
        return Unit(self._transport, self._transport.json(call))

    def find(
        self, name: str, *, stack: str | None = None, timeout: float | None = None
    ) -> Unit | None:
        """By name; None where there is none. Raises ValidationError where several stacks have one."""
        found = [unit for unit in self.list(stack=stack, timeout=timeout) if unit.name == name]
        if len(found) > 1:
            ids = ", ".join(unit.id for unit in found)
            raise ValidationError(f'Several stacks have a unit "{name}": name one by its id ({ids}).')
        return found[0] if found else None


class Made(NamedTuple):
    units: List[Unit]
    outputs: Mapping[str, str]
    cost_line: str


def make_from(
    transport: Transport,
    asked: Mapping[str, object],
    wait: bool,
    wait_timeout: float,
    idempotency_key: str | None,
    timeout: float | None,
) -> Made:
    """A create of either form. A wait that is longer than one call may take goes on by asking."""
    waiting = wait_of(wait, wait_timeout)
    call = Call(
        "POST",
        "/v1/units",
        body={**asked, **waiting.fields},
        idempotency_key=idempotency_key or new_key(),
        timeout=timeout,
        extra=waiting.extra,
    )
    told: t.RunResult = transport.json(call)
    outputs, cost_line = told["outputs"], told["costLine"]
    units = [Unit(transport, info, outputs=outputs, cost_line=cost_line) for info in told["units"]]
    if not units:
        raise InternalError("A create without a unit was answered.")
    if waiting.rest > 0:
        # As the call itself would have: one that is still creating after this is on its way.
        for unit in units:
            try:
                unit.ready(timeout=waiting.rest)
            except NotReadyError:
                pass
    return Made(units, outputs, cost_line)
