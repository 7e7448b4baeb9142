"""What an agent's executor does beside steps of code, each on one real unit; prints the name of each check that held."""

import PIL.Image
from berth import Berth
from berth.adapters.smolagents import BerthExecutor
from smolagents import Tool
from smolagents.utils import AgentError


class Shout(Tool):
    name = "shout"
    description = "Says it louder."
    inputs = {"text": {"type": "string", "description": "What to say."}}
    output_type = "string"

    def forward(self, text: str) -> str:
        return text.upper()


def raises(kind, words, call) -> bool:
    try:
        call()
    except kind as error:
        return words in str(error)
    return False


def check(unit) -> None:
    one, other = BerthExecutor(unit, timeout=60), BerthExecutor(unit, timeout=60, cwd="/tmp", env={"COLOUR": "blue"})

    one.send_tools({"shout": Shout()})
    assert one("shout('hello')").output == "'HELLO'"
    print("tools")

    picture = PIL.Image.effect_noise((1200, 1200), 80)
    one.send_variables({"word": "a", "numbers": (1, 2), "picture": picture})
    assert one("word, numbers, picture.size").output == "('a', (1, 2), (1200, 1200))"
    print("variables, with a picture longer than one call")

    assert raises(AgentError, "NameError", lambda: other("word"))
    assert other("import os; print(os.getcwd(), os.environ['COLOUR'])").logs == "/tmp blue\n"
    print("contexts apart")

    drawn = one("import matplotlib.pyplot as plt; plt.plot([3, 1, 2]); plt.show()").output
    assert isinstance(drawn, PIL.Image.Image) and drawn.size[0] > 100
    assert isinstance(one("picture").output, PIL.Image.Image)
    print("pictures")

    assert raises(AgentError, "before\n", lambda: one("print('before'); {}['none']"))
    print("logs before an error")

    hasty = BerthExecutor(unit, timeout=3)
    assert raises(AgentError, "out of time", lambda: hasty("kept = 1\nimport time; time.sleep(60)"))
    assert hasty("kept").output == "1"
    print("time")

    assert raises(AgentError, "pip failed", lambda: BerthExecutor(unit, additional_imports=["/no/such"]))
    print("a package that cannot be installed")

    before = len(unit.code.contexts())
    one.cleanup()
    one.cleanup()
    assert len(unit.code.contexts()) == before - 1
    print("cleanup")


with Berth() as berth, berth.units.create("berth.local/code:1", size="medium", wait_timeout=900) as made:
    check(made)
