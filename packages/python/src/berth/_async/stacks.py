"""Stacks: units that share a private network, sleep together and are forked together."""

from __future__ import annotations

from typing import TYPE_CHECKING, List

from .._calls import DEFAULT_WAIT, Call, new_key, quoted, without_none
from .._pieces import Page
from .lists import AsyncPages
from .transport import AsyncTransport
from .unit import AsyncForked, AsyncUnit, fork_of

if TYPE_CHECKING:
    from .. import types as t


class AsyncStack:
    def __init__(self, transport: AsyncTransport, info: t.Stack) -> None:
        self._transport = transport
        self._path = f"/v1/stacks/{info['id']}"
        #: As the last answer has it.
        self.info = info

    def __repr__(self) -> str:
        return f"<Stack {self.name} of {len(self.info['units'])}, {self.id}>"

    @property
    def id(self) -> str:
        return self.info["id"]

    @property
    def name(self) -> str:
        return self.info["name"]

    @property
    def units(self) -> List[AsyncUnit]:
        """Oldest first."""
        return [AsyncUnit(self._transport, info) for info in self.info["units"]]

    async def refresh(self, *, timeout: float | None = None) -> AsyncStack:
        self.info = await self._transport.json(Call("GET", self._path, timeout=timeout))
        return self

    async def fork(
        self,
        *,
        into: str | None = None,
        sleep: str | None = None,
        wait: bool = True,
        wait_timeout: float = DEFAULT_WAIT,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> AsyncForked:
        """All of it as it is at one instant, or nothing."""
        asked = without_none(into=into, sleep=sleep)
        return await fork_of(self._transport, self._path, asked, wait, wait_timeout, idempotency_key, timeout)

    async def destroy(self, *, timeout: float | None = None) -> AsyncStack:
        """Gone for good, with every unit in it."""
        call = Call("DELETE", self._path, timeout=timeout, extra=DEFAULT_WAIT)
        self.info = await self._transport.json(call)
        return self


class AsyncStacks:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self, name: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> AsyncStack:
        key = idempotency_key or new_key()
        call = Call("POST", "/v1/stacks", body={"name": name}, idempotency_key=key, timeout=timeout)
        return AsyncStack(self._transport, await self._transport.json(call))

    def list(self, *, limit: int | None = None, timeout: float | None = None) -> AsyncPages[AsyncStack]:
        async def read(cursor: str | None) -> Page[AsyncStack]:
            query = {"limit": limit, "cursor": cursor}
            told: t.StackList = await self._transport.json(
                Call("GET", "/v1/stacks", query=query, timeout=timeout)
            )
            return Page([AsyncStack(self._transport, info) for info in told["stacks"]], told["next"])

        return AsyncPages(read)

    async def get(self, id: str, *, timeout: float | None = None) -> AsyncStack:
        """By id. Raises NotFoundError."""
        call = Call("GET", f"/v1/stacks/{quoted(id)}", timeout=timeout)
        return AsyncStack(self._transport, await self._transport.json(call))

    async def find(self, name: str, *, timeout: float | None = None) -> AsyncStack | None:
        """By name; None where there is none."""
        async for stack in self.list(timeout=timeout):
            if stack.name == name:
                return stack
        return None
