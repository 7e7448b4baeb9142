"""The adapter with the real client of the SDK, and a stand-in for its program in a unit."""

import asyncio
import json
import sys
from pathlib import Path

from berth import AsyncBerth
from berth.adapters.claude_agent import BerthTransport
from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, CLIConnectionError, ProcessError, query

sys.path.insert(0, sys.argv[1])
from agent import answer  # noqa: E402

COMMAND = ["python3", "/root/stand_in.py"]


async def main():
    async with AsyncBerth() as berth:
        unit = await berth.units.create("berth.local/python:3.11", time_to_live="10m")
        try:
            program = Path(__file__).with_name("stand_in.py").read_bytes()
            await unit.files.write("/root/stand_in.py", program)
            await unit.exec(["mkdir", "/workspace"])

            found = json.loads(await answer(unit, "why?", COMMAND))
            assert found == {
                "question": "why?",
                "cwd": "/workspace",
                "env": ["CLAUDE_CODE_ENTRYPOINT", "IS_SANDBOX"],
                "arguments": {"--output-format": True, "--permission-mode": True, "--input-format": True},
            }, found
            await unit.files.read("/workspace/ended")
            print("the example, with its options and without this machine's keys")

            heard = []
            options = ClaudeAgentOptions(stderr=heard.append, cwd="/workspace")
            long = "x" * 400_000
            async with ClaudeSDKClient(options, transport=BerthTransport(unit, options, command=COMMAND)) as client:
                for question in ("one", long):
                    await client.query(question)
                    said = [message async for message in client.receive_response()]
                    text = "".join(b.text for m in said if isinstance(m, AssistantMessage) for b in m.content)
                    assert text == "ü" * 100_000, len(text)
                    assert json.loads(said[-1].result)["question"] in ("one", 400_000)
            assert heard == ["heard"], heard
            print("several questions of a client, long ones too")

            transport = BerthTransport(unit, options, command=COMMAND)
            told = [message async for message in query(prompt="once", options=options, transport=transport)]
            assert json.loads(told[-1].result)["question"] == "once"
            print("one query")

            try:
                async with ClaudeSDKClient(options, transport=BerthTransport(unit, options, command=COMMAND)) as client:
                    await client.query("fail")
                    async for _ in client.receive_response():
                        pass
            except ProcessError as error:
                assert error.exit_code == 3 and "heard" in (error.stderr or ""), error
                print("a program that fails")
            try:
                await BerthTransport(unit, options, user="nobody-there").connect()
            except CLIConnectionError:
                print("one that cannot start")
            running = [p for p in await unit.processes.list() if p.state == "running"]
            assert running == [], running
        finally:
            await unit.destroy()


asyncio.run(main())
