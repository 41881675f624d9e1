"""Commands of an agent type with ``docker`` run in a container, or not at all (AGT-09). Docker itself is a script here."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from opendev.agents.agent_file import read_agent
from opendev.agents.specs import SubAgentSpec, builtin_specs, custom_spec, effective
from opendev.core.agent import AgentSpec, AgentStatus, DockerConfig
from opendev.core.errors import OpenDevError
from opendev.tools.shell.process import ProcessShell
from support.agents import Bench
from support.scripted_model import call, calls, says
from support.waiting import until

FAKE = """#!/bin/sh
echo "$@" >> {log}
[ "$1" = run ] || exit 0
while [ "$1" != sh ]; do shift; done
exec "$@"
"""


def spec(**docker: str) -> AgentSpec:
    given = SubAgentSpec(
        name="Boxed",
        description="d",
        system_prompt="p",
        tools=["run_command"],
        docker={"image": "python:3.12", **docker},
    )
    return custom_spec(given)


class Boxed:
    """A bench whose PATH holds a Docker that runs the command here and writes down how it was called."""

    def __init__(self, tmp_path: Path, *steps: Any, docker: bool = True) -> None:
        self.bench, self.log = Bench(tmp_path, *steps), tmp_path / "docker.log"
        self.bench.shell = ProcessShell(log_dir=tmp_path / "logs", marker={})
        self.bin = tmp_path / "bin"
        self.bin.mkdir()
        if docker:
            (self.bin / "docker").write_text(FAKE.format(log=self.log))
            (self.bin / "docker").chmod(0o755)

    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    async def run(self, **fields: Any) -> Any:
        task = self.bench.task("Coder", id="a1", **fields)
        path = f"{self.bin}:/usr/bin:/bin"
        task = task.model_copy(update={"spec": spec(), "env": {"PATH": path, "TOKENS": "3"}})
        return await self.bench.factory().agent_for(task).run(task, self.bench.token)


@pytest.mark.req("AGT-09")
async def test_a_command_runs_in_a_container_of_its_own_and_sees_only_its_folders(tmp_path: Path) -> None:
    boxed = Boxed(tmp_path, calls(call("run_command", command="echo in $PWD")), says("Done."))
    assert (await boxed.run()).status is AgentStatus.DONE
    (line,) = boxed.calls()
    root = boxed.bench.root.resolve()
    for part in (
        "run --rm --init --name opendev-", "--network none", f"--user {os.getuid()}:{os.getgid()}", f"--volume {root}:{root}",
        "--env TOKENS", "python:3.12 sh -c echo in $PWD",
    ):  # fmt: skip
        assert part in line, line
    assert "TOKENS=3" not in line  # values are not on a command line
    assert f"in {root}" in str(boxed.bench.model.requests[1].messages)


@pytest.mark.req("AGT-09")
async def test_without_docker_nothing_runs_on_the_machine_itself(tmp_path: Path) -> None:
    boxed = Boxed(
        tmp_path,
        calls(call("run_command", command="touch made")),
        says("failure accepted: none"),
        docker=False,
    )
    await boxed.run()
    assert not (boxed.bench.root / "made").exists()
    assert "docker" in str(boxed.bench.model.requests[1].messages)


@pytest.mark.req("AGT-09")
async def test_an_interrupted_command_leaves_no_container(tmp_path: Path) -> None:
    boxed = Boxed(tmp_path, calls(call("run_command", command="sleep 30")), says("unused"))
    running = asyncio.create_task(boxed.run())
    await until(lambda: bool(boxed.calls()))
    boxed.bench.token.set("stop")
    await running
    started, killed = boxed.calls()
    assert killed == f"kill {started.split('--name ')[1].split()[0]}"


@pytest.mark.req("AGT-09")
def test_a_child_does_not_leave_its_parents_container() -> None:
    boxed, coder = spec(network="bridge"), builtin_specs()["Coder"]
    assert effective(boxed, coder).docker == DockerConfig(image="python:3.12", network="bridge")
    assert effective(coder, boxed).docker == boxed.docker


@pytest.mark.req("AGT-09")
@pytest.mark.parametrize("value", ["python:3.12", '{image: "python:3.12"}'])
def test_it_is_read_from_an_agents_file(value: str) -> None:
    text = f"---\nname: B\ndescription: d\ndocker: {value}\n---\nDo it.\n"
    found, ignored = read_agent(Path("b.md"), text.encode())
    assert (found is not None and found.docker, ignored) == (DockerConfig(image="python:3.12"), ())


@pytest.mark.req("AGT-09")
@pytest.mark.parametrize(
    "value", ["7", '"--privileged"', "{image: a, network: mine}", "{image: a, volumes: /}"]
)
def test_what_docker_would_misread_is_refused(value: str) -> None:
    text = f"---\nname: B\ndescription: d\ndocker: {value}\n---\nDo it.\n"
    with pytest.raises(OpenDevError, match=r"b\.md cannot be used: docker"):
        read_agent(Path("b.md"), text.encode())
