"""An agent that writes a program, runs it and answers with what it printed, in a unit of its own."""

from agents import Runner
from agents.run import RunConfig
from agents.sandbox import SandboxAgent, SandboxRunConfig
from berth.adapters.openai_agents import BerthSandboxClient


def answer(question, model="gpt-5.6"):
    agent = SandboxAgent(name="coder", model=model, instructions="Write programs in the workspace, and run them.")
    sandbox = SandboxRunConfig(client=BerthSandboxClient())
    return Runner.run_sync(agent, question, run_config=RunConfig(sandbox=sandbox)).final_output


if __name__ == "__main__":
    print(answer("How many primes are below a million? Write a program and run it."))
