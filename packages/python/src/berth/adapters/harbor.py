"""A unit as the environment of a Harbor trial: `harbor run --environment-import-path berth.adapters.harbor:BerthEnvironment`.
The service is that of BERTH_URL and BERTH_API_KEY."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, Dict

from harbor.environments.base import BaseEnvironment, ExecResult, SandboxBuildFailedError
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.definition import COMPOSE_FILE_NAME, DOCKERFILE_NAME
from harbor.environments.options import EnvironmentOptions
from harbor.models.task.config import NetworkMode, NetworkPolicy
from pydantic import Field

from .. import AsyncBerth, AsyncUnit, NotConfiguredError

#: The longest time that the service gives a command, in seconds.
_LONGEST = 3600
#: In bytes; the kernel takes 128 KB. What is longer is run from a file.
_LONGEST_ARGUMENT = 120_000
# Harbor's commands are written for bash.
_SHELL = 'if command -v bash >/dev/null; then exec bash "$@"; else exec sh "$@"; fi'


class BerthOptions(EnvironmentOptions):
    """What `--environment-kwarg` takes."""

    image: str | None = Field(
        default=None,
        description="The task's image, built and pushed before, in place of its Dockerfile; {task} is the task's name.",
    )
    size: str | None = Field(default=None, description="Of the unit, whatever the task asks for.")
    time_to_live: str = Field(default="24h", description="After which the unit is destroyed, also if Harbor has died.")
    create: Dict[str, Any] = Field(default_factory=dict, description="More arguments of `berth.units.create`.")


class BerthEnvironment(BaseEnvironment):
    """
    Makes a unit for each trial, of the task's `docker_image` or the option `image`. It has at least the processors and the
    memory that the task asks for, and reaches what the task's network policy says, but no other unit.
    """

    options_model = BerthOptions
    options: BerthOptions

    _berth: AsyncBerth | None = None
    _unit: AsyncUnit | None = None

    @staticmethod
    def type() -> str:
        """The name in Harbor's messages."""
        return "berth"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """Network policies, which also change while a unit runs. Web sites are allowed by name, and not by address."""
        return EnvironmentCapabilities(
            disable_internet=True,
            network_allowlist=True,
            network_allowlist_hostnames=True,
            network_allowlist_wildcard_hostnames=True,
            dynamic_network_policy=True,
        )

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        """A size has at least what is asked for: it is a request, and no exact limit."""
        return EnvironmentResourceCapabilities(cpu_request=True, memory_request=True, fractional_cpus=True)

    @classmethod
    def preflight(cls, kwargs: Dict[str, Any] | None = None) -> None:
        """
        Check the options and that a service is configured, before trials are queued.

        :raises SystemExit: If it is not.
        """
        super().preflight(kwargs)
        try:
            AsyncBerth()
        except NotConfiguredError as error:
            raise SystemExit(str(error)) from error

    @property
    def unit(self) -> AsyncUnit:
        """
        The trial's unit.

        :raises RuntimeError: If it has not been started.
        """
        if self._unit is None:
            raise RuntimeError("The environment has not been started.")
        return self._unit

    async def start(self, force_build: bool) -> None:
        """
        Make the unit, with the task's loose files and Harbor's directories.

        :raises SandboxBuildFailedError: If a build is forced.
        :raises BerthError: If no unit could be made.
        """
        if force_build and self._dockerfile.exists():
            raise SandboxBuildFailedError("Berth builds no Dockerfile: run without --force-build.")
        self._berth = AsyncBerth(user_agent="harbor")
        asked: Dict[str, Any] = {"size": await self._size(self._berth), "cmd": ["sleep", "infinity"], **self.options.create}
        self._unit = await self._berth.units.create(
            self._image,
            env=self._startup_env(),
            egress=_egress_of(self._network_policy),
            metadata={"harbor": self.session_id},
            time_to_live=self.options.time_to_live,
            # The unit is known before it is ready: a start that runs out of time is taken back by stop.
            wait=False,
            **asked,
        )
        await self._unit.ready(timeout=self.task_env_config.build_timeout_sec)
        if self._cwd:
            await self._unit.files.make_directory(self._cwd)
        await self.ensure_dirs(self._mount_targets(writable_only=True))
        await self._upload_environment_dir_after_start()

    async def stop(self, delete: bool) -> None:
        """Destroy the unit, or without `delete` stop it, with its disk, until its time to live ends."""
        unit, self._unit = self._unit, None
        berth, self._berth = self._berth, None
        try:
            if unit is not None:
                await (unit.__aexit__(None, None, None) if delete else unit.stop())
        finally:
            if berth is not None:
                await berth.aclose()

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: Dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """
        Run a line of bash, or of sh where there is no bash.

        :param timeout_sec: An hour at most, and without it.
        :raises RuntimeError: If the command runs out of time, as of Harbor's own environments.
        :raises BerthError: If the unit could not be asked.
        """
        user = self._resolve_user(user)
        seconds = min(timeout_sec or _LONGEST, _LONGEST)
        script = await self._script_of(command)
        try:
            result = await self.unit.exec(
                ["sh", "-c", _SHELL, "sh", *(["-c", command] if script is None else [script])],
                cwd=cwd or self._cwd,
                env=self._merge_env(env),
                user=None if user is None else str(user),
                timeout=seconds,
            )
        finally:
            if script is not None:
                await self.unit.files.delete(script)
        if result.timed_out:
            raise RuntimeError(f"Command timed out after {seconds} seconds")
        return ExecResult(stdout=result.stdout, stderr=result.stderr, return_code=result.exit_code)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Upload a file of any size, with its mode, and make the directories above it."""
        source = Path(source_path)
        await self.unit.files.write_stream(target_path, source, mode=source.stat().st_mode & 0o777)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Upload the content of a directory into one, which is made if it is not there."""
        await self.unit.files.upload(source_dir, target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """
        Download a file of any size.

        :raises NotFoundError: If there is none.
        """
        target = Path(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "wb") as file:
            async for chunk in self.unit.files.read_stream(source_path):
                file.write(chunk)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """
        Download the content of a directory, without its links and devices.

        :raises NotFoundError: If there is none.
        """
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        await self.unit.files.download(source_dir, target_dir)

    @property
    def _dockerfile(self) -> Path:
        return self.environment_dir / DOCKERFILE_NAME

    @property
    def _image(self) -> str:
        given = self.options.image
        task = self.environment_name.split("/")[-1]
        return given.replace("{task}", task) if given else self.task_env_config.docker_image or ""

    @property
    def _cwd(self) -> str | None:
        """Of the task; that of the image, built from the task's Dockerfile or not, without it."""
        return self.task_env_config.workdir

    def _validate_definition(self) -> None:
        if (self.environment_dir / COMPOSE_FILE_NAME).exists():
            raise ValueError("Berth runs no tasks with a Docker Compose file: a trial is one unit.")
        if not self._image:
            raise ValueError(
                "Berth builds no Dockerfile. Build the task's image, push it to a registry, and name it as docker_image in"
                " task.toml, or with --environment-kwarg image=REGISTRY/{task}:TAG."
            )

    async def _apply_network_policy(self, network_policy: NetworkPolicy) -> None:
        rules: Dict[str, Any] = {"mode": "open", **_egress_of(network_policy)}
        await self.unit.set_egress(**rules)

    async def _size(self, berth: AsyncBerth) -> str | None:
        """Returns the smallest that has what the task asks for; None for the usual one."""
        cpus, memory = self._effective_cpus or 0, self._effective_memory_mb or 0
        if self.options.size or not (cpus or memory):
            return self.options.size
        sizes = (await berth.pricing())["sizes"]
        for each in sizes:
            if each["vcpu"] >= cpus and each["memoryMb"] >= memory:
                return each["size"]
        raise ValueError(f"No size of a unit has {cpus} processors and {memory} MB; the largest is {sizes[-1]}.")

    async def _script_of(self, command: str) -> str | None:
        """Returns the path of a file with a command that is too long for an argument."""
        if len(command.encode()) <= _LONGEST_ARGUMENT:
            return None
        path = f"/tmp/harbor-{uuid.uuid4().hex}.sh"
        await self.unit.files.write_stream(path, command.encode(), mode=0o644)
        return path


def _egress_of(policy: NetworkPolicy) -> Any:
    """The rules of a unit. Trials of others are never reached. Without a mode, the key's own bound holds."""
    if policy.network_mode == NetworkMode.NO_NETWORK:
        return {"mode": "none", "siblings": "none"}
    if policy.network_mode == NetworkMode.ALLOWLIST:
        return {"mode": "listed", "allow": list(policy.allowed_hosts), "siblings": "none"}
    return {"siblings": "none"}
