"""Evaluates examples/inspect-ai/task.py with the model for tests, which runs a program and submits what it should print."""

import json
import sys

from inspect_ai import eval
from inspect_ai.model import ChatMessageTool, ModelOutput, ModelUsage, get_model

sys.path.insert(0, sys.argv[1])
from task import primes  # noqa: E402

SIEVE = """
sieve = bytearray([1]) * 1_000_000
sieve[:2] = b"\\0\\0"
for number in range(2, 1000):
    if sieve[number]:
        sieve[number * number :: number] = bytes(len(range(number * number, 1_000_000, number)))
print(sum(sieve))
"""


def call(tool, **arguments):
    output = ModelOutput.for_tool_call("mockllm/model", tool, arguments)
    # Otherwise the tokens are counted, by a table that is fetched from the internet.
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


model = get_model(
    "mockllm/model",
    custom_outputs=[
        call("bash", command=f"cat >a.py <<'EOF'{SIEVE}EOF\npython3 a.py && pwd && id -un"),
        call("submit", answer="78498"),
    ],
)
[log] = eval(primes(), model=model, display="none", log_dir=sys.argv[2])
[sample] = log.samples
if log.status != "success" or sample.error:
    sys.exit(str(sample.error or log.error))
told = [message.text for message in sample.messages if isinstance(message, ChatMessageTool)]
print("told " + json.dumps([log.status, [score.value for score in sample.scores.values()], told[0]]))
