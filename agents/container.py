"""A shell whose commands run in a container of the agent's own type (AGT-09): the folder is the same, the machine is not."""

import asyncio
import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

from ..core.agent import AgentTask, DockerConfig
from ..core.ids import new_id
from ..core.ports import CommandResult, Processes, Shell
from .settings import AgentPorts

_KILL_S = 20.0


def machine(task: AgentTask, ports: AgentPorts, folders: tuple[Path, ...]) -> tuple[Shell, Processes | None]:
    """Where commands of ``task`` run. No background tasks for a recipe, whose steps build on each other, nor in a container."""
    docker = task.spec.docker
    shell = ContainerShell(ports.shell, docker, folders, tuple(task.env)) if docker else ports.shell
    return shell, None if task.recipe or docker else ports.processes


class ContainerShell(Shell):
    """Every command in a fresh container of ``config.image``, as the present user, with ``folders`` at the same paths.

    Never on the host: where there is no Docker the command fails and says so. ``names`` are the variables it may see.
    """

    def __init__(
        self, shell: Shell, config: DockerConfig, folders: tuple[Path, ...], names: tuple[str, ...] = ()
    ) -> None:
        self._shell, self._config, self._folders, self._names = shell, config, folders, names

    async def run(
        self,
        command: str,
        *,
        cwd: Path,
        env: Mapping[str, str],
        idle_s: float,
        total_s: float,
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        """See the port. The container is gone when this returns."""
        name = f"opendev-{new_id(12)}"
        ended = ""
        try:
            result = await self._shell.run(
                self._line(name, command, cwd),
                cwd=cwd,
                env=env,
                idle_s=idle_s,
                total_s=total_s,
                on_output=on_output,
            )
            ended = result.ended
            return result
        finally:
            if ended != "exit":  # killing the client leaves its container running
                await asyncio.shield(self._kill(name, cwd, env))

    def _line(self, name: str, command: str, cwd: Path) -> str:
        words = ["docker", "run", "--rm", "--init", "--name", name, "--network", self._config.network]
        words += ["--user", f"{os.getuid()}:{os.getgid()}", "--workdir", str(cwd)]
        for folder in self._folders:
            words += ["--volume", f"{folder}:{folder}"]
        for variable in self._names:
            words += ["--env", variable]
        return shlex.join([*words, self._config.image, "sh", "-c", command])

    async def _kill(self, name: str, cwd: Path, env: Mapping[str, str]) -> None:
        await self._shell.run(f"docker kill {name}", cwd=cwd, env=env, idle_s=_KILL_S, total_s=_KILL_S)
