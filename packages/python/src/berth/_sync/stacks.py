# Written by `npm run gen` from berth/_async: do not edit.
"""Stacks: units that share a private network, sleep together and are forked together."""

from __future__ import annotations

from typing import TYPE_CHECKING, List

from .._calls import DEFAULT_WAIT, Call, new_key, quoted, without_none
from .._pieces import Page
from .lists import Pages
from .transport import Transport
from .unit import Forked, Unit, fork_of

if TYPE_CHECKING:
    from .. import types as t


class Stack:
    def __init__(self, transport: Transport, info: t.Stack) -> None:
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
    def units(self) -> List[Unit]:
        """Oldest first."""
        return [Unit(self._transport, info) for info in self.info["units"]]

    def refresh(self, *, timeout: float | None = None) -> Stack:
        self.info = self._transport.json(Call("GET", self._path, timeout=timeout))
        return self

    def fork(
        self,
        *,
        into: str | None = None,
        sleep: str | None = None,
        wait: bool = True,
        wait_timeout: float = DEFAULT_WAIT,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> Forked:
        """All of it as it is at one instant, or nothing."""
        asked = without_none(into=into, sleep=sleep)
        return fork_of(self._transport, self._path, asked, wait, wait_timeout, idempotency_key, timeout)

    def destroy(self, *, timeout: float | None = None) -> Stack:
        """Gone for good, with every unit in it."""
        call = Call("DELETE", self._path, timeout=timeout, extra=DEFAULT_WAIT)
        self.info = self._transport.json(call)
        return self


class Stacks:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self, name: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> Stack:
        key = idempotency_key or new_key()
        call = Call("POST", "/v1/stacks", body={"name": name}, idempotency_key=key, timeout=timeout)
        return Stack(self._transport, self._transport.json(call))

    def list(self, *, limit: int | None = None, timeout: float | None = None) -> Pages[Stack]:
        def read(cursor: str | None) -> Page[Stack]:
            query = {"limit": limit, "cursor": cursor}
            told: t.StackList = self._transport.json(
                Call("GET", "/v1/stacks", query=query, timeout=timeout)
            )
            return Page([Stack(self._transport, info) for info in told["stacks"]], told["next"])

        return Pages(read)

    def get(self, id: str, *, timeout: float | None = None) -> Stack:
        """By id. Raises NotFoundError."""
        call = Call("GET", f"/v1/stacks/{quoted(id)}", timeout=timeout)
        return Stack(self._transport, self._transport.json(call))

    def find(self, name: str, *, timeout: float | None = None) -> Stack | None:
        """By name; None where there is none."""
        for stack in self.list(timeout=timeout):
            if stack.name == name:
                return stack
        return None
