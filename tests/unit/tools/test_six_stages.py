"""run_command in its six stages, through the dispatcher (SHL-01), and the categories of tools with their rules (REG-04)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from opendev.core.approval import ApprovalLevel, Mode
from opendev.core.chat import ToolCall, ToolMessage
from opendev.core.clock import SystemClock
from opendev.core.interrupt import InterruptToken
from opendev.core.ports import CommandResult
from opendev.core.scope import Scope
from opendev.core.tool import Effect
from opendev.policy.gate import Gate
from opendev.tools.catalog import BUILTIN
from opendev.tools.dispatch import Dispatcher
from opendev.tools.registry import ToolRegistry
from opendev.tools.shell.background import BackgroundTasks
from support.tool_context import EventLog, FakeAsker, make_context


@dataclass
class Shell:
    """Remembers what it was asked to run, with its limits."""

    asked: list[tuple[str, float, float]] = field(default_factory=list[tuple[str, float, float]])

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
        self.asked.append((command, idle_s, total_s))
        return CommandResult(
            exit_code=0, text="a" * 9_000, omitted_bytes=7, log="/l", ended="exit", wall_s=0.1
        )


@pytest.mark.req("SHL-01")
async def test_gate_preparation_detection_fork_output_and_limits(tmp_path: Path) -> None:
    shell, events, token = Shell(), EventLog(), InterruptToken()
    root = tmp_path / "root"
    root.mkdir()
    tasks = BackgroundTasks(root=root, marker={}, base=tmp_path / "opendev")

    def context(id: str) -> Any:
        return make_context(root, call_id=id, shell=shell, processes=tasks, emit=events, interrupt=token)

    dispatcher = Dispatcher(
        registry=ToolRegistry(BUILTIN),
        gate=Gate(level=ApprovalLevel.AUTO, mode=Mode.NORMAL, root=root, scope=Scope()),
        make_context=context,
        asker=FakeAsker(),
        emit=events,
        clock=SystemClock(),
        agent="Main",
    )

    async def run(command: str, **other: Any) -> ToolMessage:
        call = ToolCall(id="c", name="run_command", arguments={"command": command, **other})
        (message,) = await dispatcher.run([call])
        return message

    assert "sudo" in (await run("sudo uvicorn main:app")).content  # 1: refused, whatever comes after
    assert (shell.asked, tasks.tasks()) == ([], ())
    await run("npx cowsay")  # 2: prepared
    await run("echo gunicorn")  # 3 and 4: to a terminal, and as if in front
    assert [info.command for info in tasks.tasks()] == ["echo gunicorn"]
    long = await run("make", timeout_s=30)  # 4: pipes; 5: long output is shortened, its log named
    assert shell.asked == [("yes | npx cowsay", 60.0, 600.0), ("make", 60.0, 30.0)]  # 6: limits
    assert "[Output offloaded:" in long.content
    token.set("stop")  # 6: and the interrupt
    assert "interrupted" in (await run("make")).content
    assert len(shell.asked) == 2
    await tasks.close()


@pytest.mark.req("REG-04")
def test_fifteen_categories_and_a_rule_for_each(tmp_path: Path) -> None:  # C-09
    by_category: dict[str, set[str]] = {}
    for tool in BUILTIN:
        by_category.setdefault(tool.category.casefold(), set()).add(tool.name)
    assert set(by_category) == {
        "file", "process", "web", "symbols", "vision", "pdf", "notebook", "task management", "user input", "discovery",
        "batch", "sub-agent", "skill", "planning", "completion",
    }  # fmt: skip
    gate = Gate(level=ApprovalLevel.SEMI_AUTO, mode=Mode.NORMAL, root=tmp_path, scope=Scope())
    for tool in BUILTIN:
        decision = gate.judge(tool, tool.args.model_construct(command="make")).decision
        changes = tool.effects & {Effect.WRITE, Effect.EXEC} and tool.category.casefold() in (
            "file", "process", "symbols", "notebook",
        )  # fmt: skip
        own = tool.name == "kill_process"
        assert (decision == "ask") == (bool(changes) and not own), tool.name
