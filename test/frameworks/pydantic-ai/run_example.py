"""Runs examples/pydantic-ai/agent.py with a scripted model, and calls every tool with the package's test model."""

import asyncio
import json
import sys

from berth import AsyncBerth
from berth.adapters.pydantic_ai import unit_toolset
from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart, models
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

models.ALLOW_MODEL_REQUESTS = False
sys.path.insert(0, sys.argv[1])
from agent import answer  # noqa: E402

CALLS = [
    ("write_file", {"path": "/root/a.py", "text": "print('a' * 7)\n"}),
    ("run", {"command": "pwd; python3 a.py; cat none; exit 3"}),
    ("run", {"command": "printf %040000d 0"}),
    ("run", {"command": "sleep 60", "timeout": 1}),
    ("read_file", {"path": "/root/a.py"}),
    ("read_file", {"path": "/root/none"}),
    ("list_directory", {"path": "/root"}),
    ("publish_port", {"port": 8080}),
]


def returned(messages):
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def script(messages, _info):
    told = [part.content for part in returned(messages)]
    if len(told) == len(CALLS):
        return ModelResponse([TextPart(json.dumps(told))])
    return ModelResponse([ToolCallPart(*CALLS[len(told)])])


async def call_all():
    async with AsyncBerth() as berth, await berth.units.create("berth.local/python:3.11") as unit:
        result = await Agent(TestModel(), toolsets=[unit_toolset(unit)]).run("go")
        return sorted(part.tool_name for part in returned(result.all_messages()))


print("told " + json.dumps([json.loads(asyncio.run(answer("go", FunctionModel(script)))), asyncio.run(call_all())]))
