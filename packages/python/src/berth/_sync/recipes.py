# Written by `npm run gen` from berth/_async: do not edit.
"""Recipes: databases, runtimes and small applications in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Mapping, NamedTuple

from .._calls import DEFAULT_WAIT, Call, quoted, without_none
from .transport import Transport
from .unit import Unit
from .units import make_from

if TYPE_CHECKING:
    from .. import types as t


class RecipeRun(NamedTuple):
    #: The first of its units.
    unit: Unit
    units: List[Unit]
    #: Connection strings and passwords, told this once, and `URL` when published.
    outputs: Mapping[str, str]
    #: Cost and sleep in words.
    cost_line: str


class Recipes:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, timeout: float | None = None) -> List[t.RecipeItem]:
        told: t.RecipeList = self._transport.json(Call("GET", "/v1/recipes", timeout=timeout))
        return told["recipes"]

    def get(self, name: str, *, timeout: float | None = None) -> t.Recipe:
        """With its parameters, outputs and units. Raises NotFoundError."""
        recipe: t.Recipe = self._transport.json(
            Call("GET", f"/v1/recipes/{quoted(name)}", timeout=timeout)
        )
        return recipe

    def run(
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
    ) -> RecipeRun:
        """Makes its units, and waits until they run unless `wait` is false."""
        body = without_none(
            recipe=recipe, params=params, name=name, stack=stack, expose=expose, sleep=sleep, egress=egress
        )
        made = make_from(self._transport, body, wait, wait_timeout, idempotency_key, timeout)
        return RecipeRun(made.units[0], made.units, made.outputs, made.cost_line)
