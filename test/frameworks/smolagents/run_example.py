"""Runs examples/smolagents/agent.py with a scripted model, and prints the answer and what the model was told."""

import json
import sys
from typing import Any

from smolagents import ChatMessage, MessageRole
from smolagents.models import Model

STEPS = [
    "import statistics\nnumbers = [3, 1, 2]\nprint('kept', len(numbers))",
    "numbers.append(10)\n1 / 0",
    "final_answer({'mean': statistics.mean(numbers), 'pair': (1, b'two')})",
]


class ScriptedModel(Model):
    def __init__(self) -> None:
        super().__init__(model_id="scripted")
        self.steps = iter(STEPS)
        self.told: list[str] = []

    def generate(self, messages: Any, **_: Any) -> ChatMessage:
        self.told = [str(message.content) for message in messages if message.role == MessageRole.TOOL_RESPONSE]
        return ChatMessage(MessageRole.ASSISTANT, f"<code>\n{next(self.steps)}\n</code>")


sys.path.insert(0, sys.argv[1])
from agent import answer  # noqa: E402

model = ScriptedModel()
result = answer("go", model)
print("told", json.dumps({"mean": result["mean"], "pair": repr(result["pair"]), "told": model.told}))
