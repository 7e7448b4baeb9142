"""Units as the sandboxes of the OpenAI Agents SDK: `SandboxRunConfig(client=BerthSandboxClient(), options=...)`."""

from __future__ import annotations

import uuid
from typing import Any, Dict

from agents.sandbox import Manifest
from agents.sandbox.session import BaseSandboxClient, Dependencies, Instrumentation, SandboxSession, SandboxSessionState
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec, resolve_snapshot

from .. import AsyncBerth, AsyncUnit, NotFoundError
from ._openai_session import BerthSandboxClientOptions, BerthSandboxSession, BerthSandboxSessionState

__all__ = ["BerthSandboxClient", "BerthSandboxClientOptions", "BerthSandboxSession", "BerthSandboxSessionState"]


class BerthSandboxClient(BaseSandboxClient[BerthSandboxClientOptions]):
    """
    Makes a unit for each session.

    :param berth: The client to use, which stays open; one with the address and key of the environment without it.
    """

    backend_id = "berth"
    supports_default_options = True

    def __init__(
        self,
        berth: AsyncBerth | None = None,
        *,
        instrumentation: Instrumentation | None = None,
        dependencies: Dependencies | None = None,
    ) -> None:
        self._berth = berth or AsyncBerth(user_agent="openai-agents")
        self._instrumentation = instrumentation or Instrumentation()
        self._dependencies = dependencies

    async def create(
        self,
        *,
        snapshot: SnapshotSpec | SnapshotBase | None = None,
        manifest: Manifest | None = None,
        options: BerthSandboxClientOptions | None = None,
    ) -> SandboxSession:
        """Make a unit and its session. Raises BerthError if no unit could be made."""
        manifest = self._validate_manifest_for_create(manifest or Manifest())
        options = options or BerthSandboxClientOptions()
        unit = await self._make(options)
        session_id = uuid.uuid4()
        state = BerthSandboxSessionState(
            session_id=session_id,
            manifest=manifest,
            snapshot=resolve_snapshot(snapshot, str(session_id)),
            exposed_ports=options.exposed_ports,
            unit_id=unit.id,
            options=options,
        )
        return self._session(state, unit)

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """
        Take up the unit of a session, or make another where it is gone; its files come then from the snapshot.

        :raises TypeError: If the state is that of another provider.
        """
        if not isinstance(state, BerthSandboxSessionState):
            raise TypeError("BerthSandboxClient.resume expects a BerthSandboxSessionState")
        state.assert_path_grants_rebound()
        unit = await self._find(state.unit_id)
        is_there = unit is not None
        if unit is None:
            unit = await self._make(state.options)
            state.unit_id = unit.id
            state.workspace_root_ready = False
        session = self._session(state, unit)
        session._inner._set_start_state_preserved(is_there, system=is_there)
        return session

    async def delete(self, session: SandboxSession) -> SandboxSession:
        """Destroy the unit of a session, also one that was to be kept."""
        if not isinstance(session._inner, BerthSandboxSession):
            raise TypeError("BerthSandboxClient.delete expects a session of its own")
        if unit := await self._find(session._inner.state.unit_id):
            await unit.destroy()
        return session

    def deserialize_session_state(self, payload: Dict[str, object]) -> SandboxSessionState:
        return self._deserialize_session_state_payload(payload, BerthSandboxSessionState)

    def _session(self, state: BerthSandboxSessionState, unit: AsyncUnit) -> SandboxSession:
        return self._wrap_session(BerthSandboxSession(state, unit), instrumentation=self._instrumentation)

    async def _make(self, options: BerthSandboxClientOptions) -> AsyncUnit:
        asked: Dict[str, Any] = {"size": options.size, **(options.create or {})}
        if options.exposed_ports:
            # Published now: a later change of ports would restart the unit.
            ports = list(options.exposed_ports)
            asked = {"ports": ports, "expose": "private", "expose_port": ports[0], **asked}
        return await self._berth.units.create(options.image, **asked)

    async def _find(self, unit_id: str) -> AsyncUnit | None:
        try:
            unit = await self._berth.units.get(unit_id)
        except NotFoundError:
            return None
        if unit.state in ("destroying", "destroyed", "error"):
            return None
        return await unit.start() if unit.state == "stopped" else unit
