"""What the SDK does with a session beside running an agent: bytes, large files, users, a snapshot, the end and the resumption."""

import asyncio
import io
import json
import sys
from pathlib import Path

from agents.sandbox import LocalSnapshotSpec, Manifest
from agents.sandbox.entries import File
from agents.sandbox.errors import (
    ExecTimeoutError,
    ExposedPortUnavailableError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
)
from berth import AsyncBerth
from berth.adapters.openai_agents import BerthSandboxClient, BerthSandboxClientOptions

directory = Path(sys.argv[1])
facts = {}


async def raised(work):
    try:
        await work
    except Exception as error:
        return type(error)


async def use(session):
    ran = await session.exec("printf", r"\377\000a", shell=False)
    facts["bytes"] = ran.stdout == b"\xff\x00a"
    ran = await session.exec("id -un; echo \"$COLOUR\"; pwd", user="nobody")
    facts["user"] = ran.stdout.decode().split("\n")
    facts["timeout"] = (await raised(session.exec("sleep 60", timeout=1))) is ExecTimeoutError
    large = bytes(range(256)) * 12_288
    await session.write(Path("deep/large.bin"), io.BytesIO(large))
    facts["large"] = (await session.read(Path("deep/large.bin"))).read() == large
    facts["bounded"] = await session.read_bounded(Path("deep/large.bin"), max_bytes=5) == large[:5]
    facts["missing"] = (await raised(session.read(Path("none")))) is WorkspaceReadNotFoundError
    await session.exec("chmod 700 deep && echo secret > secret && chmod 600 secret")
    facts["unreadable"] = (await raised(session.read(Path("secret"), user="nobody"))) is WorkspaceArchiveReadError
    writing = session.write(Path("deep/new"), io.BytesIO(b""), user="nobody")
    facts["unwritable"] = (await raised(writing)) is WorkspaceArchiveWriteError
    facts["listed"] = sorted(Path(entry.path).name for entry in await session.ls("."))
    endpoint = await session.resolve_exposed_port(8080)
    facts["port"] = [endpoint.tls, bool(endpoint.host)]
    facts["no port"] = (await raised(session.resolve_exposed_port(8081))) is ExposedPortUnavailableError
    facts["running"] = await session.running()


async def main():
    async with AsyncBerth() as berth:
        client = BerthSandboxClient(berth)
        manifest = Manifest(
            entries={"given.txt": File(content=b"given"), "passing.txt": File(content=b"", ephemeral=True)},
            environment={"value": {"COLOUR": "blue"}},
        )
        options = BerthSandboxClientOptions(exposed_ports=(8080,), keep=True, create={"metadata": {"by": "test"}})
        snapshot = LocalSnapshotSpec(base_path=directory)
        session = await client.create(snapshot=snapshot, manifest=manifest, options=options)
        async with session:
            facts["given"] = (await session.read(Path("given.txt"))).read().decode()
            await use(session)
        first = await berth.units.get(session._inner.state.unit_id)
        facts["kept"] = [first.state, first.info["metadata"]]

        # As another process takes it up: the same unit, with what is on its disk beside the workspace.
        payload = json.loads(json.dumps(client.serialize_session_state(session._inner.state)))
        await first.exec(["touch", "/root/beside"])
        again = await client.resume(client.deserialize_session_state(dict(payload)))
        async with again:
            facts["again"] = [again._inner.unit.id == first.id, (await again.exec("cat given.txt")).stdout.decode()]
        await client.delete(again)
        facts["deleted"] = (await first.refresh()).state

        # The unit is gone: another one has the files of the snapshot.
        other = await client.resume(client.deserialize_session_state(dict(payload)))
        async with other:
            size = len((await other.read(Path("deep/large.bin"))).read())
            facts["restored"] = [other._inner.unit.id == first.id, size, (await other.exec("ls")).stdout.decode().split()]
        await client.delete(other)
    print("told " + json.dumps(facts))


asyncio.run(main())
