"""Runs examples/langchain/agent.py with a scripted model, which answers at last with what the tools told it."""

import json
import sys
from typing import Any, List

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class ScriptedModel(BaseChatModel):
    calls: List[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> "ScriptedModel":
        return self

    def _generate(self, messages: List[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        told = [message.text for message in messages if isinstance(message, ToolMessage)]
        if len(told) == len(self.calls):
            message = AIMessage(json.dumps(told))
        else:
            name, arguments = self.calls[len(told)]
            call = {"name": name, "args": arguments, "id": str(len(told)), "type": "tool_call"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


sys.path.insert(0, sys.argv[1])
from agent import answer  # noqa: E402

print(
    answer(
        "go",
        ScriptedModel(
            calls=[
                ("write_file", {"file_path": "/root/a.py", "content": "print(6 * 7)\n"}),
                ("edit_file", {"file_path": "/root/a.py", "old_string": "6 * 7", "new_string": "'a' * 7"}),
                ("execute", {"command": "python3 /root/a.py; cat /root/none; exit 3"}),
                ("read_file", {"file_path": "/root/a.py"}),
            ]
        ),
    )
)
