"""Makes the unit of a sample and ends without its cleanup, as a run that is killed."""

import asyncio

from berth.adapters.inspect_ai import BerthSandboxConfig, BerthSandboxEnvironment

config = BerthSandboxConfig(image="berth.local/python:3.11", size="nano")
asyncio.run(BerthSandboxEnvironment.sample_init("left", config, {}))
