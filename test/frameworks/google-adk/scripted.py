"""A model that says what it is given, and keeps what it was told."""

from typing import Any, AsyncGenerator, List

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types


class ScriptedModel(BaseLlm):
    model: str = "scripted"
    says: List[Any]
    told: List[Any] = []

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        self.told = [part for content in llm_request.contents for part in content.parts or []]
        said = self.says.pop(0)
        if isinstance(said, str):
            part = types.Part(text=said)
        else:
            part = types.Part.from_function_call(name=said[0], args=said[1])
        yield LlmResponse(content=types.Content(role="model", parts=[part]))
