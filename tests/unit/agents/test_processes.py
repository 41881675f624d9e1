"""Background tasks in an agent's run: the end of one is told once, at a turn's beginning, and none outlives the run (P17, SHL-11, SHL-14)."""

import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from opendev.agents.settings import AgentPorts
from opendev.core.chat import MessageClass, ModelReply, ModelRequest, UserMessage
from opendev.core.ports import ProcessState
from opendev.tools.shell.background import BackgroundTasks
from support.agents import Bench
from support.scripted_model import Step, call, calls, says


class Host(Bench):
    """A bench whose commands in the background are real."""

    def __init__(self, tmp_path: Path, *steps: Step) -> None:
        super().__init__(tmp_path, *steps)
        self.processes = BackgroundTasks(
            root=self.root, marker={"OPENDEV_RUN": uuid.uuid4().hex}, base=tmp_path / "opendev"
        )

    def ports(self) -> AgentPorts:
        env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
        return replace(super().ports(), processes=self.processes, child_env=env)


def background(id: str, command: str) -> ModelReply:
    return calls(call("run_command", id, command=command, background=True))


def notices(request: ModelRequest) -> list[str]:
    return [
        m.content for m in request.messages if isinstance(m, UserMessage) and "background task" in m.content
    ]


@pytest.mark.req("SHL-11")
@pytest.mark.slow
async def test_p17_the_end_of_a_task_is_told_once_with_code_and_signal(tmp_path: Path) -> None:
    bench = Host(tmp_path)

    fail = background("one", "sleep 1.8; echo 'token ghp_abcdefghijklmnopqrstuvwxyz0123456789'; exit 1")
    die = background("two", "sleep 1.8; kill -9 $$")

    def look(_request: ModelRequest) -> ModelReply:
        third = bench.processes.tasks()[2].id
        return calls(call("get_process_output", "o", process_id=third, wait_s=1.5))

    bench.model.add(fail, die, background("three", "sleep 60"), look, says("Done."))
    try:
        await bench.run()
        last = notices(bench.model.requests[-1])
        assert len(last) == 2
        assert "failed, exit code 1" in last[0]
        assert "ghp_" not in last[0]
        assert "killed, exit code 137 (signal 9)" in last[1]
        kinds = [
            m.msg_class
            for m in bench.model.requests[-1].messages
            if isinstance(m, UserMessage) and m.content in last
        ]
        assert kinds == [MessageClass.DIRECTIVE] * 2
        assert notices(bench.model.requests[1]) == []
        assert bench.processes.take_ended() == ()
        assert [one.state for one in bench.processes.tasks()][2] is ProcessState.RUNNING
    finally:
        await bench.processes.close()
    assert ProcessState.RUNNING not in [one.state for one in bench.processes.tasks()]


async def test_the_output_file_can_be_read_by_an_agent_that_has_no_tool_for_it(tmp_path: Path) -> None:
    def look(_request: ModelRequest) -> ModelReply:
        path = bench.processes.tasks()[0].output
        return calls(
            call("read_file", "r", file_path=path), call("run_command", "t", command=f"tail -n 5 {path}")
        )

    bench = Host(tmp_path, background("one", "echo first; sleep 60"), look, says("Done."))
    await bench.run("Coder")
    await bench.processes.close()
    last = str(bench.model.requests[-1].messages)
    assert "1\\tfirst" in last
    assert bench.people.asked == []
    assert [command for command in bench.shell.commands if command.startswith("tail")]


async def test_an_end_that_a_result_told_is_no_notice(tmp_path: Path) -> None:
    bench = Host(tmp_path, background("one", "exit 7"), calls(call("list_files", "l")), says("Done."))
    await bench.run()
    assert notices(bench.model.requests[-1]) == []
    assert "exit code 7" in str(bench.model.requests[1].messages)
    await bench.processes.close()
