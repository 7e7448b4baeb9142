"""Inspect's own check of a sandbox provider, on a unit whose user is not root: root may read and write every file."""

import pytest_asyncio
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from inspect_ai.util._sandbox.self_check import *  # noqa: F403


@pytest_asyncio.fixture(scope="module")
async def unit():
    # As Inspect itself finds it: by the name that the entry point registers.
    provider = registry_find_sandboxenv("berth")
    config = provider.config_deserialize({"user": "user"})
    environments = await provider.sample_init("self check", config, {})
    yield environments["default"]
    await provider.sample_cleanup("self check", config, environments, False)


@pytest_asyncio.fixture
async def sandbox_env(unit):
    return unit
