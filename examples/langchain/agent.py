"""A deep agent that writes a program, runs it and answers with what it printed, in a unit of its own."""

from berth import Berth
from berth.adapters.langchain import BerthSandbox
from deepagents import create_deep_agent


def answer(question, model="anthropic:claude-sonnet-5"):
    with Berth() as berth, berth.units.create("berth.local/python:3.11") as unit:
        agent = create_deep_agent(model, backend=BerthSandbox(unit))
        result = agent.invoke({"messages": [{"role": "user", "content": question}]})
        return result["messages"][-1].text


if __name__ == "__main__":
    print(answer("How many primes are below a million? Write a program and run it."))
