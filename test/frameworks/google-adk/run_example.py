"""Runs examples/google-adk/agent.py with a scripted model, and prints what its tools told it."""

import asyncio
import json
import sys

from scripted import ScriptedModel

sys.path.insert(0, sys.argv[1])
from agent import answer  # noqa: E402

model = ScriptedModel(
    says=[
        ("WriteFile", {"path": "primes/a.py", "content": "print(6 * 7)\n"}),
        ("EditFile", {"path": "primes/a.py", "old_string": "6 * 7", "new_string": "'a' * 7"}),
        ("Execute", {"command": "pwd; python3 primes/a.py; echo wrong >&2; exit 3"}),
        ("ReadFile", {"path": "/root/primes/a.py"}),
        ("ReadFile", {"path": "none"}),
        "done",
    ]
)
said = asyncio.run(answer("go", model))
told = [part.function_response.response for part in model.told if part.function_response]
print("told", json.dumps({"said": said, "told": told}))
