"""What the deepagents CLI does with a sandbox: finds the provider by its name, makes a sandbox, takes it again by its id,
deletes it."""

import json

from berth import Berth
from deepagents_code.integrations.sandbox_factory import create_sandbox, get_default_working_dir
from deepagents_code.integrations.sandbox_provider import SandboxNotFoundError

with create_sandbox("berth", params={"size": "nano"}) as made:
    ran = made.execute("pwd; echo made > kept")
    with create_sandbox("berth", sandbox_id=made.id) as again:
        kept = again.execute("cat kept").output
    still = Berth().units.get(made.id).state
size = Berth().units.get(made.id).info["size"]
after = Berth().units.get(made.id).state
try:
    with create_sandbox("berth", sandbox_id="unit_none"):
        missing = "found"
except SandboxNotFoundError:
    missing = "not found"
told = [get_default_working_dir("berth"), ran.output, kept, still, size, after, missing]
print("told " + json.dumps(told))
