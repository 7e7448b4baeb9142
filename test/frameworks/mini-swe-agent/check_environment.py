"""What an environment does beside a run of the agent, on real units; prints the name of each check that held."""

import sys

from berth import Berth
from berth.adapters.mini_swe_agent import BerthEnvironment
from minisweagent.environments import get_environment
from minisweagent.exceptions import Submitted

config = {"environment_class": "berth.adapters.mini_swe_agent.BerthEnvironment", "env": {"COLOUR": "blue"}}
environment = get_environment({**config, "user": "user", "cwd": "/home/user", "create": {"metadata": {"run": "17"}}})


def run(command: str, **options: object) -> dict:
    return environment.execute({"command": command}, **options)


assert run("echo $COLOUR; id -un; cd /tmp; pwd", cwd="/usr")["output"] == "blue\nuser\n/tmp\n"
assert run("pwd", cwd="/usr") == {"output": "/usr\n", "returncode": 0, "exception_info": ""}
print("environment, user and directory")

late = run("echo before; sleep 60", timeout=2)
assert late["returncode"] == -1 and late["output"] == "before\n" and "2 s" in late["exception_info"], late
print("time")

many = run("for i in 1 2 3; do echo out; echo err >&2; done; kill -9 $$")
assert many["output"] == "out\nerr\n" * 3 and many["returncode"] == 137, many
print("both streams in order")

try:
    run("echo; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo one; echo two")
    sys.exit("it was not submitted")
except Submitted as submitted:
    assert submitted.messages[0]["extra"]["submission"] == "one\ntwo\n"
assert run("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; exit 1")["returncode"] == 1
print("submission")

told = environment.get_template_vars(task="a")
assert told["system"] == "Linux" and told["task"] == "a" and told["node"] and told["image"] == "berth.local/base:12"
assert environment.serialize()["info"]["config"]["environment"]["env"] == {"COLOUR": "blue"}
print("template variables")

with Berth() as berth:
    unit = environment.unit
    assert [each.id for each in berth.units.list(metadata={"run": "17"})] == [unit.id]
    assert unit.info["endsAt"] is not None
    same = BerthEnvironment(unit=unit)
    assert same.execute({"command": "echo kept"})["output"] == "kept\n"
    same.cleanup()
    assert unit.refresh().state == "running"
    environment.cleanup()
    environment.cleanup()
    assert list(berth.units.list()) == []
print("cleanup")
