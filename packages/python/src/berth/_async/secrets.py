"""Secrets of the team: units get placeholders, and the values are put into their requests on the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Sequence

from .._calls import Call, quoted, without_none
from .transport import AsyncTransport

if TYPE_CHECKING:
    from .. import types as t


class AsyncSecrets:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, *, timeout: float | None = None) -> List[t.Secret]:
        """Those that this key may bind to units, without values."""
        told: t.SecretList = await self._transport.json(Call("GET", "/v1/secrets", timeout=timeout))
        return told["secrets"]

    async def put(
        self,
        name: str,
        value: str,
        *,
        hosts: Sequence[str],
        methods: Sequence[str] | None = None,
        paths: Sequence[str] | None = None,
        placeholder: str | None = None,
        timeout: float | None = None,
    ) -> t.Secret:
        """
        Makes the secret, or replaces its value, hosts, methods and paths; units that run use the new ones from then on.
        """
        lists = {"hosts": hosts, "methods": methods, "paths": paths}
        named = {key: None if each is None else list(each) for key, each in lists.items()}
        body = without_none(value=value, placeholder=placeholder, **named)
        call = Call("PUT", f"/v1/secrets/{quoted(name)}", body=body, timeout=timeout)
        answer: t.SecretAnswer = await self._transport.json(call)
        return answer["secret"]

    async def delete(self, name: str, *, timeout: float | None = None) -> List[t.SecretDeletedUnbound]:
        """Returns the units that had it. Raises NotFoundError."""
        call = Call("DELETE", f"/v1/secrets/{quoted(name)}", timeout=timeout)
        answer: t.SecretDeleted = await self._transport.json(call)
        return answer["unbound"]
