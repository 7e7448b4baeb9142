"""An agent that answers by writing and running Python, in a unit of its own."""

from berth import Berth
from berth.adapters.smolagents import BerthExecutor
from smolagents import CodeAgent, InferenceClientModel


def answer(question, model=None):
    with Berth() as berth, berth.units.create("berth.local/code:1") as unit:
        with CodeAgent([], model or InferenceClientModel(), executor=BerthExecutor(unit)) as agent:
            return agent.run(question)


if __name__ == "__main__":
    print(answer("How many primes are below a million?"))
