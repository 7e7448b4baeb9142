"""A service for the tests: the one of BERTH_TEST_URL, which `npm run test:fast` starts. Nothing else of the machine is seen."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Iterator

import pytest

from berth import AsyncBerth, Berth

IMAGE = "node:22"
URL = os.environ.get("BERTH_TEST_URL", "")
KEY = os.environ.get("BERTH_TEST_KEY", "")
CASES: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "test/clients/cases.json").read_text(encoding="utf-8")
)


@pytest.fixture(autouse=True)
def nothing_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_DATA_DIR", "/nowhere")
    monkeypatch.delenv("BERTH_URL", raising=False)
    monkeypatch.delenv("BERTH_API_KEY", raising=False)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def berth() -> Iterator[Berth]:
    with Berth(URL, KEY) as client:
        yield client


@pytest.fixture
async def aberth(anyio_backend: str) -> Any:
    async with AsyncBerth(URL, KEY) as client:
        yield client
