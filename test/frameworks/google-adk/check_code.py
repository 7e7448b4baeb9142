"""An agent whose scripted model answers with Python, run by the executor in a unit; prints each check that held."""

import asyncio
from types import SimpleNamespace

from berth import Berth, Unit
from berth.adapters.google_adk import BerthCodeExecutor
from google.adk.agents import LlmAgent
from google.adk.code_executors.code_execution_utils import CodeExecutionInput
from google.adk.runners import InMemoryRunner
from google.genai import types
from scripted import ScriptedModel

STEPS = [
    "numbers = data_1_2.a.tolist()\nprint('kept', numbers)",
    "import matplotlib.pyplot as plt\nplt.plot(numbers)\nplt.show()",
    "numbers[9]",
    "sum(numbers)",
]


async def talk(executor: BerthCodeExecutor) -> None:
    model = ScriptedModel(says=[f"Now:\n```python\n{step}\n```" for step in STEPS] + ["done"])
    runner = InMemoryRunner(agent=LlmAgent(name="analyst", model=model, code_executor=executor), app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="one")
    table = types.Part.from_bytes(data=b"a,b\n1,x\n2,y\n", mime_type="text/csv")
    asked = types.Content(role="user", parts=[types.Part(text="go"), table])
    async for _ in runner.run_async(user_id="one", session_id=session.id, new_message=asked):
        pass
    told = "\n".join(part.text for part in model.told if part.text)
    assert "Total rows: 2" in told, told
    assert "kept [1, 2]" in told and "IndexError" in told and "Code execution result:\n3" in told, told
    print("an agent with a table, variables and an error")
    saved = await runner.artifact_service.load_artifact(
        app_name="app", user_id="one", session_id=session.id, filename="plot_1.png"
    )
    assert saved.inline_data.data.startswith(b"\x89PNG") and saved.inline_data.mime_type == "image/png"
    print("a plot as an artifact")


def check(unit: Unit) -> None:
    executor = BerthCodeExecutor(unit, optimize_data_file=True)
    asyncio.run(talk(executor))

    def run(code: str, session: str | None, by: BerthCodeExecutor = executor):
        return by.execute_code(SimpleNamespace(), CodeExecutionInput(code, execution_id=session))

    assert run("kept = 1\nkept", "two").stdout == "1\n"
    assert "NameError" in run("kept", "three").stderr
    assert "NameError" in run("kept", None).stderr
    assert run("kept", "two").exit_code == 0
    print("sessions apart")

    late = run("import time\nprint('before')\ntime.sleep(60)", "two", BerthCodeExecutor(unit, timeout_seconds=3))
    assert late.exit_code == 1 and "3 s" in late.stderr and late.stdout == "before\n", late
    warned = run("import warnings\nwarnings.warn('careful')\nprint('well')", "two")
    assert (warned.stdout, warned.stderr) == ("well\n", ""), warned
    print("time and warnings")

    executor.close()
    executor.close()
    # That of the executor with three seconds.
    assert len([each for each in unit.code.contexts() if each["language"] == "python"]) <= 2
    print("close")


with Berth() as berth, berth.units.create("berth.local/code:1", size="medium", wait_timeout=900) as made:
    check(made)
