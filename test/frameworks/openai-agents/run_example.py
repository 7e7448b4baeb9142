"""Runs examples/openai-agents/agent.py with the scripted model of the SDK's testing module. Prints what the tools told it."""

import json
import re
import sys

from agents import set_tracing_disabled
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

set_tracing_disabled(True)
sys.path.insert(0, sys.argv[1])
from agent import answer  # noqa: E402


def typed(call):
    """Into the terminal that the last call left open, whose number is in what it told."""
    number = re.search(r"session ID (\d+)", str(call.input[-1]["output"]))[1]
    return [function_call("write_stdin", {"session_id": int(number), "chars": "6 * 7\r"}, call_id="four")]


model = ScriptedModel(
    [
        [function_call("exec_command", {"cmd": "echo \"print('a' * 7)\" > a.py"}, call_id="one")],
        [function_call("exec_command", {"cmd": "pwd; python3 a.py; cat none; exit 3"}, call_id="two")],
        [function_call("exec_command", {"cmd": "python3 -i", "tty": True, "yield_time_ms": 2000}, call_id="three")],
        ModelStep.respond(typed),
        [assistant_message("done")],
    ]
)
final = answer("go", model)
model.assert_complete()
told = [item["output"] for item in model.last_call.input if item.get("type") == "function_call_output"]
print("told " + json.dumps([final, *map(str, told)]))
