"""An agent that writes a program, runs it and answers with what it printed, in a unit of its own."""

import asyncio

from berth import AsyncBerth
from berth.adapters.pydantic_ai import unit_toolset
from pydantic_ai import Agent


async def answer(question, model="anthropic:claude-sonnet-5"):
    async with AsyncBerth() as berth, await berth.units.create("berth.local/python:3.11") as unit:
        agent = Agent(model, toolsets=[unit_toolset(unit, cwd="/root")])
        return (await agent.run(question)).output


if __name__ == "__main__":
    print(asyncio.run(answer("How many primes are below a million? Write a program and run it.")))
