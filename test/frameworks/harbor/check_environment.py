"""What a trial's environment does beside a trial of the oracle, on real units; prints the name of each check that held."""

import asyncio
import os
import sys
from pathlib import Path

from berth import Berth
from berth.adapters.harbor import BerthEnvironment
from harbor.environments.base import SandboxBuildFailedError
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

here = Path(sys.argv[1])
definition = here / "environment"
definition.mkdir()
(definition / "data").mkdir()
(definition / "data" / "loose.txt").write_text("loose")


def environment_of(folder: Path = definition, policy: NetworkPolicy | None = None, options: dict = {}, **config: object):
    config = {"docker_image": "berth.local/base:12", **config}
    return BerthEnvironment(
        environment_dir=folder,
        environment_name="org/a-task",
        session_id="a-task__1__env",
        trial_paths=TrialPaths(here / "trial"),
        task_env_config=EnvironmentConfig(**config),
        network_policy=policy,
        **options,
    )


def raises(kind, words: str, call) -> None:
    try:
        call()
    except kind as error:
        assert words in str(error), error
        return
    raise SystemExit(f"no {kind.__name__}: {words}")


async def araises(kind, words: str, awaitable) -> None:
    try:
        await awaitable
    except kind as error:
        assert words in str(error), error
        return
    raise SystemExit(f"no {kind.__name__}: {words}")


async def commands(env: BerthEnvironment) -> None:
    told = await env.exec("echo $COLOUR $MORE; id -un; pwd; [[ a == a ]]; echo no >&2; exit 3", env={"MORE": "m"})
    assert (told.stdout, told.stderr, told.return_code) == ("blue m\nroot\n/home/user/app\n", "no\n", 3), told
    with env.with_default_user("user"):
        assert (await env.exec("id -un; pwd", cwd="/tmp")).stdout == "user\n/tmp\n"
        assert (await env.exec("id -u", user=0)).stdout == "0\n"
        # Longer than an argument may be.
        assert (await env.exec(f"x={'a' * 200_000}; echo ${{#x}}; id -un")).stdout == "200000\nuser\n"
    assert (await env.exec("ls /tmp")).stdout == ""
    await araises(RuntimeError, "timed out after 2", env.exec("sleep 60", timeout_sec=2))
    print("commands")


async def files(env: BerthEnvironment) -> None:
    assert (await env.exec("cat data/loose.txt")).stdout == "loose"
    big, tree = here / "big", here / "tree"
    big.write_bytes(os.urandom(3_000_000))
    big.chmod(0o755)
    await env.upload_file(big, "/opt/deep/big")
    assert (await env.exec("stat -c %a /opt/deep/big")).stdout == "755\n"
    await env.download_file("/opt/deep/big", here / "back" / "big")
    assert (here / "back" / "big").read_bytes() == big.read_bytes()
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "a.txt").write_text("a")
    await env.upload_dir(tree, "/opt/tree")
    await env.exec("echo b >/opt/tree/sub/b.txt; ln -s sub/a.txt /opt/tree/link; mkfifo /opt/tree/pipe")
    await env.download_dir("/opt/tree", here / "copy")
    assert sorted(str(path.relative_to(here / "copy")) for path in (here / "copy").rglob("*")) == [
        "sub",
        "sub/a.txt",
        "sub/b.txt",
    ]
    await env.download_dir_with_exclusions(source_dir="/opt/tree", target_dir=here / "part", exclude=["b.txt"])
    assert (here / "part" / "sub" / "a.txt").exists() and not (here / "part" / "sub" / "b.txt").exists()
    assert await env.is_dir("/opt/tree") and not await env.is_file("/opt/tree")
    print("files")


async def network(env: BerthEnvironment) -> None:
    rules = await env.unit.egress()
    assert (rules["mode"], rules["siblings"]) == ("none", "none"), rules
    hosts = ["api.example.com", "*.example.org"]
    await env.set_network_policy(NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=hosts))
    rules = await env.unit.egress()
    assert rules["mode"] == "listed" and sorted(rules["allow"]) == sorted(hosts), rules
    decisions = [(await env.unit.check_egress(host))["decision"] for host in ("a.example.org", "example.net")]
    assert decisions == ["allowed", "refused"], decisions
    await env.set_network_policy(NetworkPolicy())
    assert (await env.unit.egress())["mode"] == "open"
    print("network policies")


async def main() -> None:
    env = environment_of(
        policy=NetworkPolicy(network_mode=NetworkMode.NO_NETWORK),
        workdir="/home/user/app",
        env={"COLOUR": "blue"},
        memory_mb=512,
        cpus=0.5,
    )
    BerthEnvironment.preflight({"time_to_live": "1h"})
    await env.start(force_build=False)
    assert env.unit.info["metadata"] == {"harbor": "a-task__1__env"} and env.unit.info["endsAt"]
    assert env.unit.info["size"] == "small", env.unit.info["size"]
    print("start")
    await commands(env)
    await files(env)
    await network(env)
    unit_id = env.unit.id
    await env.stop(delete=False)
    with Berth() as berth:
        assert berth.units.get(unit_id).state == "stopped"
        berth.units.get(unit_id).destroy()
        named = environment_of(options={"image": "berth.local/{task}:12"}, docker_image=None)
        assert named._image == "berth.local/a-task:12"
        again = environment_of(options={"size": "nano"})
        await again.start(force_build=False)
        assert again.unit.info["size"] == "nano" and again.unit.info["egress"]["siblings"] == "none"
        unit_id = again.unit.id
        await again.stop(delete=True)
        assert berth.units.get(unit_id).state == "destroyed"
    print("stop")

    built = here / "built"
    built.mkdir()
    (built / "Dockerfile").write_text("FROM debian:12\n")
    raises(ValueError, "builds no Dockerfile", lambda: environment_of(built, docker_image=None))
    await araises(SandboxBuildFailedError, "--force-build", environment_of(built).start(force_build=True))
    (built / "docker-compose.yaml").write_text("services: {}\n")
    by_address = NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["203.0.113.0/24"])
    raises(ValueError, "CIDR", lambda: environment_of(policy=by_address))
    raises(ValueError, "Compose", lambda: environment_of(built))
    raises(ValueError, "colour", lambda: environment_of(options={"colour": "blue"}))
    huge = environment_of(cpus=64)
    await araises(ValueError, "64 processors", huge.start(force_build=False))
    await huge.stop(delete=True)
    for name in ("BERTH_URL", "BERTH_API_KEY"):
        os.environ.pop(name)
    raises(SystemExit, "BERTH", lambda: BerthEnvironment.preflight({}))
    print("what it refuses")


asyncio.run(main())
