"""Speaks as the program `claude` does with its SDK, and answers each question by what it finds in its unit."""

import json
import os
import sys


def say(message):
    print(json.dumps(message), flush=True)


print("a line for people", flush=True)
print("heard", file=sys.stderr, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked["type"] == "control_request":
        answer = {"subtype": "success", "request_id": asked["request_id"], "response": {}}
        say({"type": "control_response", "response": answer})
    elif asked["type"] == "user":
        question = asked["message"]["content"]
        if question == "fail":
            sys.exit(3)
        arguments = {name: name in sys.argv for name in ("--output-format", "--permission-mode", "--input-format")}
        found = {
            "question": question if len(question) < 100 else len(question),
            "cwd": os.getcwd(),
            "env": sorted(name for name in os.environ if "KEY" in name or name in ("IS_SANDBOX", "CLAUDE_CODE_ENTRYPOINT")),
            "arguments": arguments,
        }
        text = "ü" * 100_000
        content = [{"type": "text", "text": text}]
        say({"type": "assistant", "message": {"role": "assistant", "model": "none", "content": content}})
        say({
            "type": "result",
            "subtype": "success",
            "duration_ms": 1,
            "duration_api_ms": 1,
            "is_error": False,
            "num_turns": 1,
            "session_id": "s",
            "result": json.dumps(found),
        })
open("/workspace/ended", "w").close()
