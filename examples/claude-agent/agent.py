"""An agent of the Claude Agent SDK whose program, files and commands are in a unit of the recipe `claude-code`: `agent.py UNIT QUESTION`."""

import asyncio
import sys

from berth import AsyncBerth
from berth.adapters.claude_agent import BerthTransport
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage


async def answer(unit, question, command=None):
    # The unit is the boundary, and the model's key is not in it.
    options = ClaudeAgentOptions(cwd="/workspace", permission_mode="bypassPermissions", env={"IS_SANDBOX": "1"})
    transport = BerthTransport(unit, options, command=command)
    async with ClaudeSDKClient(options, transport=transport) as client:
        await client.query(question)
        async for message in client.receive_response():
            if isinstance(message, ResultMessage):
                return message.result


async def main():
    async with AsyncBerth() as berth:
        print(await answer(await berth.units.get(sys.argv[1]), sys.argv[2]))


if __name__ == "__main__":
    asyncio.run(main())
