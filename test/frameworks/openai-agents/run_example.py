"""Runs examples/openai-agents/agent.py with the scripted model of the SDK's testing module. Prints what the tools told it."""

import json
import sys

from agents import set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

set_tracing_disabled(True)
sys.path.insert(0, sys.argv[1])
from agent import answer  # noqa: E402

PATCH = "*** Begin Patch\n*** Add File: a.py\n+print('a' * 7)\n*** End Patch"
model = ScriptedModel(
    [
        [function_call("exec_command", {"cmd": "echo \"print('a' * 7)\" > a.py"}, call_id="one")],
        [function_call("exec_command", {"cmd": "pwd; python3 a.py; cat none; exit 3"}, call_id="two")],
        [assistant_message("done")],
    ]
)
final = answer("go", model)
model.assert_complete()
told = [item["output"] for item in model.last_call.input if item.get("type") == "function_call_output"]
print("told " + json.dumps([final, *map(str, told)]))
