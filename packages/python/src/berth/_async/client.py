"""The client: from here units, stacks, recipes, and what is spent."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, List, Mapping

from .._calls import Call, new_key
from .._pieces import Page, TeamEvent
from .._settings import ApiKey, settings_of
from .lists import AsyncPages
from .recipes import AsyncRecipes
from .hosted_agents import AsyncHostedAgents
from .secrets import AsyncSecrets
from .stacks import AsyncStacks
from .transport import AsyncTransport
from .units import AsyncUnits

if TYPE_CHECKING:
    from .. import types as t


class AsyncBerth:
    """Its connections are closed at the end of its block, or by `aclose()`."""

    def __init__(
        self,
        url: str | None = None,
        api_key: ApiKey | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 2,
        max_retry_after: float = 30.0,
        user_agent: str | None = None,
        http_client: Any = None,
    ) -> None:
        """`url` and `api_key` come from BERTH_URL and BERTH_API_KEY unless they are given, else from the file that a Berth on
        this machine writes for its operator. `timeout` is what a call may take until its answer begins, in seconds; what
        waits for a unit or a command has that time besides. A `retry-after` above `max_retry_after` is raised and not
        waited for. `http_client` is an AsyncClient of httpx2 or httpx, with a proxy or certificates of its own. Raises
        NotConfiguredError."""
        settings = settings_of(
            url,
            api_key,
            timeout=timeout,
            retries=retries,
            max_retry_after=max_retry_after,
            user_agent=user_agent,
        )
        self._transport = AsyncTransport(settings, http_client)
        #: Of the service.
        self.url = settings.url
        self.units = AsyncUnits(self._transport)
        self.stacks = AsyncStacks(self._transport)
        self.recipes = AsyncRecipes(self._transport)
        self.secrets = AsyncSecrets(self._transport)
        self.hosted_agents = AsyncHostedAgents(self._transport)

    def __repr__(self) -> str:
        # Never its key.
        return f"<Berth at {self.url}>"

    async def quota(self, *, timeout: float | None = None) -> t.Quota:
        """What this key may still run and spend."""
        quota: t.Quota = await self.request("GET", "/v1/quota", timeout=timeout)
        return quota

    async def usage(self, *, days: int | None = None, timeout: float | None = None) -> t.Usage:
        """What the team used, day by day."""
        usage: t.Usage = await self.request("GET", "/v1/usage", query={"days": days}, timeout=timeout)
        return usage

    async def pricing(self, *, timeout: float | None = None) -> t.Pricing:
        pricing: t.Pricing = await self.request("GET", "/v1/pricing", timeout=timeout)
        return pricing

    def audit(
        self,
        *,
        key: str | None = None,
        agent: str | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> AsyncPages[t.AuditEvent]:
        """What was asked of the service, by whom, and how it ended; newest first. `key` is the id of one, `agent` a name such
        as `claude-code`."""

        async def read(cursor: str | None) -> Page[t.AuditEvent]:
            query = {"key": key, "agent": agent, "limit": limit, "cursor": cursor}
            told: t.AuditList = await self.request("GET", "/v1/audit", query=query, timeout=timeout)
            return Page(told["events"], told["next"])

        return AsyncPages(read)

    async def agents(self, *, timeout: float | None = None) -> t.AgentList:
        """Keys and connected programs of the team, with their policies."""
        agents: t.AgentList = await self.request("GET", "/v1/agents", timeout=timeout)
        return agents

    async def keys(self, *, timeout: float | None = None) -> List[t.Agent]:
        """Keys are made by people, under Agents in the dashboard, never with a key."""
        told: t.KeyList = await self.request("GET", "/v1/keys", timeout=timeout)
        return told["keys"]

    async def support(
        self, topic: t.Topic, message: str, *, idempotency_key: str | None = None, timeout: float | None = None
    ) -> t.SupportTicket:
        """A message to the operator of the service; the answer comes by mail."""
        body = {"topic": topic, "message": message}
        key = idempotency_key or new_key()
        ticket: t.SupportTicket = await self.request(
            "POST", "/v1/support", body=body, idempotency_key=key, timeout=timeout
        )
        return ticket

    async def events(
        self, *, changes: bool = False, timeout: float | None = None
    ) -> AsyncIterator[TeamEvent]:
        """Iterate over changes in the team as they happen, until the caller stops. `changes`: also who did what."""
        query = {"changes": True} if changes else {}
        async for event, data, _ in self._transport.events(Call("GET", "/v1/events", query=query, timeout=timeout)):
            yield TeamEvent(event, data)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Any call of the API, for what this library has no method for."""
        call = Call(
            method, path, query=query or {}, body=body, idempotency_key=idempotency_key, timeout=timeout
        )
        return await self._transport.json(call)

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def __aenter__(self) -> AsyncBerth:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
