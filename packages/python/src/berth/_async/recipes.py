"""Recipes: databases, runtimes and small applications in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Mapping, NamedTuple

from .._calls import DEFAULT_WAIT, Call, quoted, without_none
from .transport import AsyncTransport
from .unit import AsyncUnit
from .units import make_from

if TYPE_CHECKING:
    from .. import types as t


class AsyncRecipeRun(NamedTuple):
    #: The first of its units.
    unit: AsyncUnit
    units: List[AsyncUnit]
    #: Connection strings and passwords, told this once, and `URL` when published.
    outputs: Mapping[str, str]
    #: Cost and sleep in words.
    cost_line: str


class AsyncRecipes:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, *, timeout: float | None = None) -> List[t.RecipeItem]:
        told: t.RecipeList = await self._transport.json(Call("GET", "/v1/recipes", timeout=timeout))
        return told["recipes"]

    async def get(self, name: str, *, timeout: float | None = None) -> t.Recipe:
        """With its parameters, outputs and units. Raises NotFoundError."""
        recipe: t.Recipe = await self._transport.json(
            Call("GET", f"/v1/recipes/{quoted(name)}", timeout=timeout)
        )
        return recipe

    async def run(
        self,
        recipe: t.RecipeName | str,
        *,
        params: Mapping[str, Any] | None = None,
        name: str | None = None,
        stack: str | None = None,
        expose: t.Mode | None = None,
        sleep: str | None = None,
        egress: t.EgressAsked | None = None,
        wait: bool = True,
        wait_timeout: float = DEFAULT_WAIT,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> AsyncRecipeRun:
        """Makes its units, and waits until they run unless `wait` is false."""
        body = without_none(
            recipe=recipe, params=params, name=name, stack=stack, expose=expose, sleep=sleep, egress=egress
        )
        made = await make_from(self._transport, body, wait, wait_timeout, idempotency_key, timeout)
        return AsyncRecipeRun(made.units[0], made.units, made.outputs, made.cost_line)
