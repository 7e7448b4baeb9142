"""An agent of the Agent Development Kit that works with the shell and the files of a unit of its own."""

import asyncio

from berth.adapters.google_adk import BerthEnvironment
from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.environment import EnvironmentToolset


async def answer(question, model="gemini-3.5-flash"):
    # An hour after a crash of this program, the unit is gone as well.
    environment = BerthEnvironment(image="berth.local/python:3.11", time_to_live="1h")
    tools = EnvironmentToolset(environment=environment)
    runner = InMemoryRunner(agent=LlmAgent(name="coder", model=model, tools=[tools]))
    try:
        events = await runner.run_debug(question, quiet=True)
        return "".join(part.text or "" for part in events[-1].content.parts)
    finally:
        await runner.close()
        await environment.close()


if __name__ == "__main__":
    print(asyncio.run(answer("How many primes are below a million? Write a program and run it.")))
