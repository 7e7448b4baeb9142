"""What the environment does beside the tools, on real units; prints the name of each check that held."""

import asyncio
import os
from pathlib import Path

from berth import AsyncBerth
from berth.adapters.google_adk import BerthEnvironment


async def check(berth: AsyncBerth) -> None:
    environment = BerthEnvironment(
        berth=berth, working_dir="/home/user/work", user="user", env={"COLOUR": "blue"}, metadata={"run": "17"}
    )
    try:
        environment.unit
    except RuntimeError:
        pass
    await environment.initialize()
    await environment.initialize()
    assert environment.is_initialized and environment.working_dir == Path("/home/user/work")
    assert [unit.id async for unit in berth.units.list(metadata={"run": "17"})] == [environment.unit.id]
    print("initialize")

    result = await environment.execute("id -un; pwd; echo $COLOUR")
    assert (result.stdout, result.exit_code, result.timed_out) == ("user\n/home/user/work\nblue\n", 0, False), result
    late = await environment.execute("echo before; sleep 60", timeout=2)
    assert late.timed_out and late.stdout == "before\n", late
    print("execute")

    data = os.urandom(3_000_000)
    await environment.write_file(Path("deep/down/data"), data)
    assert await environment.read_file(Path("/home/user/work/deep/down/data")) == data
    assert (await environment.execute("stat -c %U deep/down/data")).stdout == "user\n"
    await environment.write_file("text", "grün\r\n")
    assert await environment.read_file("text") == "grün\r\n".encode()
    try:
        await environment.read_file(Path("none"))
        raise SystemExit("a file that is not there was read")
    except FileNotFoundError:
        pass
    print("files")

    unit = environment.unit
    given = BerthEnvironment(unit=unit, working_dir="/root")
    await given.initialize()
    assert (await given.execute("pwd")).stdout == "/root\n"
    await given.close()
    assert (await unit.refresh()).state == "running"
    await environment.close()
    await environment.close()
    assert not environment.is_initialized
    assert (await unit.refresh()).state == "destroyed"
    print("close")


async def main() -> None:
    async with AsyncBerth() as berth:
        await check(berth)


asyncio.run(main())
