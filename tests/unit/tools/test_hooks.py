"""Hooks around tool calls, contract in shell and in Python: what they are told, what they can refuse, change and allow, and what
they cannot (HOK-03 to HOK-10)."""

import asyncio
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opendev.core.approval import ApprovalAnswer, ApprovalLevel, ApprovalRequest, Mode
from opendev.core.chat import ToolCall, ToolMessage
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorKind
from opendev.core.events import GateDecided, Notice
from opendev.core.hooks import HookEvent, Hooks, HookSet
from opendev.core.scope import Scope
from opendev.policy.gate import Gate
from opendev.tools import hooks as engine_module
from opendev.tools.catalog import BUILTIN
from opendev.tools.dispatch import Dispatcher
from opendev.tools.hook_trust import digest_of
from opendev.tools.hooked import AgentHooks
from opendev.tools.hooks import HookEngine
from opendev.tools.registry import ToolRegistry
from opendev.tools.shell.reap import process_start
from support.hooking import hooks, python, says
from support.tool_context import EventLog, FakeAsker, FakeShell, make_context
from support.waiting import number_in, until

ENV = {"PATH": os.defpath, "LANG": "C.UTF-8"}


class World:
    """An agent's dispatcher in ``root``, with hooks. ``level``: what is asked; nobody is there unless ``asker`` says so."""

    def __init__(
        self,
        root: Path,
        own: Hooks | None = None,
        *,
        projects: Hooks | None = None,
        level: ApprovalLevel = ApprovalLevel.AUTO,
        asker: FakeAsker | None = None,
        env: Mapping[str, str] = ENV,
    ) -> None:
        self.root, self.events, self.shell = root, EventLog(), FakeShell()
        self.asker = asker or FakeAsker(decision="no_answer")
        theirs = projects or Hooks()
        found = HookSet(
            own=own or Hooks(), projects=theirs, project=str(root), digest=digest_of(theirs, str(root))
        )
        self.engine = HookEngine(found, session="s1", env=env, emit=self.events)
        self.dispatcher = Dispatcher(
            registry=ToolRegistry(BUILTIN),
            gate=Gate(level=level, mode=Mode.NORMAL, root=root, scope=Scope()),
            make_context=lambda id: make_context(root, call_id=id, emit=self.events, shell=self.shell),
            asker=self.asker,
            emit=self.events,
            clock=SystemClock(),
            agent="Main",
            hooks=AgentHooks(self.engine, root),
        )

    async def call(self, tool: str, **arguments: Any) -> ToolMessage:
        (message,) = await self.dispatcher.run([ToolCall(id="c1", name=tool, arguments=arguments)])
        return message

    async def run(self, command: str) -> ToolMessage:
        return await self.call("run_command", command=command)

    def told(self) -> list[str]:
        return [event.text for event in self.events.events if isinstance(event, Notice)]

    def kind(self) -> ErrorKind | None:
        return self.dispatcher.last_failure.kind if self.dispatcher.last_failure else None


@pytest.mark.req("HOK-03", "HOK-01")
async def test_they_are_told_what_happens_before_and_after(tmp_path: Path) -> None:
    world = World(
        tmp_path,
        hooks(
            ("PreToolUse", "cat > before.json"),
            ("PostToolUse", python("open('after.json', 'w').write(json.dumps(letter))")),
            ("PostToolUseFailure", "cat > failure.json"),
        ),
    )
    (tmp_path / "a.txt").write_text("hello\n")
    assert not (await world.call("read_file", path="a.txt", max_lines="5")).is_error
    assert (await world.call("read_file", file_path="gone.txt")).is_error
    await world.engine.close()
    before, after, failure = (
        json.loads((tmp_path / f"{name}.json").read_text()) for name in ("before", "after", "failure")
    )
    common = {"session_id": "s1", "cwd": str(tmp_path), "tool_name": "read_file"}
    assert before == common | {"hook_event_name": "PreToolUse", "tool_input": {"file_path": "gone.txt"}}
    assert after["tool_input"] == {"file_path": "a.txt", "max_lines": 5}  # as it was understood (M10)
    assert after["tool_response"]["ok"] is True
    assert "hello" in after["tool_response"]["text"]
    assert failure["hook_event_name"] == "PostToolUseFailure"
    assert failure["tool_response"]["error"]["kind"] == "not_found"


@pytest.mark.req("HOK-04", "HOK-10")
@pytest.mark.parametrize(
    "guard",
    [
        """grep -q '"command": *"[^"]*curl' && { echo no downloads here >&2; exit 2; }; exit 0""",
        python(
            "if 'curl' in letter['tool_input'].get('command', ''): sys.exit(print('no downloads here', file=sys.stderr) or 2)"
        ),
        python(
            "if 'curl' in str(letter['tool_input']): print(json.dumps({'decision': 'block', 'reason': 'no downloads here'}))"
        ),
    ],
)
async def test_a_refusal_goes_back_to_the_agent_and_nothing_overrides_it(tmp_path: Path, guard: str) -> None:
    own = hooks(("PreToolUse", "run_command", guard), ("PreToolUse", says({"permissionDecision": "allow"})))
    world = World(tmp_path, own, asker=FakeAsker())
    refused = await world.run("curl http://x")
    assert "A hook of the user refused it: no downloads here" in refused.content
    assert world.shell.commands == world.asker.requests == []
    assert world.kind() is ErrorKind.DENIED
    decided = [event for event in world.events.events if isinstance(event, GateDecided)]
    assert [(event.decision, event.layer) for event in decided] == [("deny", "hook")]
    assert not (await world.run("echo fine")).is_error
    assert world.shell.commands[-1] == "echo fine"


@pytest.mark.req("HOK-10")
async def test_writes_to_protected_paths_are_refused(tmp_path: Path) -> None:
    guard = python(
        "path = letter['tool_input'].get('file_path', '')\n"
        "if path.startswith('migrations/'): sys.exit(print(path + ' is protected', file=sys.stderr) or 2)"
    )
    world = World(tmp_path, hooks(("PreToolUse", "^(write|edit)_file$", guard)))
    refused = await world.call("write_file", path="migrations/001.sql", content="x")
    assert "migrations/001.sql is protected" in refused.content
    assert not (tmp_path / "migrations").exists()
    assert not (await world.call("write_file", file_path="src.sql", content="x")).is_error


@pytest.mark.req("HOK-10", "HOK-06")
async def test_a_linter_runs_after_edits_and_cannot_delay_them(tmp_path: Path) -> None:
    file = """f=$(sed -n 's/.*"file_path": *"\\([^"]*\\)".*/\\1/p')"""
    lint = f'{file}; while [ ! -e go ]; do sleep 0.02; done; echo "linted $f" >> lint.log'
    world = World(tmp_path, hooks(("PostToolUse", "write_file", lint)))
    assert not (await world.call("write_file", file_path="a.js", content="x")).is_error  # it waits for nobody
    assert not (tmp_path / "lint.log").exists()
    (tmp_path / "go").touch()
    await world.engine.close()
    assert (tmp_path / "lint.log").read_text() == "linted a.js\n"


@pytest.mark.req("HOK-05")
@pytest.mark.parametrize("key", ["updatedInput", "tool_input"])
async def test_the_input_is_changed_by_either_key(tmp_path: Path, key: str) -> None:
    world = World(
        tmp_path,
        hooks(
            (
                "PreToolUse",
                "run_command",
                says({key: {"command": "pnpm test"}, "additionalContext": "we use pnpm"}),
            )
        ),
    )
    message = await world.call("run_command", command="npm test", timeout=5)
    assert world.shell.commands == ["pnpm test"]
    assert "[A hook of the user changed the input of this call.]" in message.content
    assert "[A hook of the user adds: we use pnpm]" in message.content
    started = next(event for event in world.events.events if event.kind == "tool_started")
    assert started.arguments["command"] == "pnpm test"


@pytest.mark.req("HOK-08", "HOK-05", "APR-04")
@pytest.mark.parametrize(
    ("new", "kind"),
    [
        ({"command": "sudo rm -rf /"}, ErrorKind.DENIED),
        ({"command": "git push --force"}, ErrorKind.UNANSWERED),
        ({"command": "ls", "cwd": "/etc"}, ErrorKind.SCOPE),
        ({"command": 7}, None),
        ({"nonsense": 1}, ErrorKind.DENIED),
        ({"command": ""}, ErrorKind.DENIED),
    ],
)
async def test_a_changed_input_is_judged_again_whatever_the_hook_says(
    tmp_path: Path, new: dict[str, Any], kind: ErrorKind | None
) -> None:
    own = hooks(("PreToolUse", says({"updatedInput": new, "permissionDecision": "allow"})))
    world = World(tmp_path, own)
    message = await world.run("echo x")
    if kind is None:
        assert world.shell.commands == ["7"]
        return
    assert message.is_error
    assert world.shell.commands == []
    assert world.kind() is kind


@pytest.mark.req("HOK-05")
async def test_an_allow_answers_what_the_level_asks_for_exactly_this_input(tmp_path: Path) -> None:
    yes = says({"permissionDecision": "allow"})
    manual = ApprovalLevel.MANUAL
    world = World(tmp_path, hooks(("PreToolUse", "run_command", yes)), level=manual)
    assert not (await world.run("make")).is_error
    assert (await world.run("git push --force")).is_error
    assert (await world.run("sudo ls")).is_error
    assert (await world.call("read_file", file_path="x")).is_error  # the matcher: nobody answered
    assert world.shell.commands == ["make"]
    later = hooks(("PreToolUse", yes), ("PreToolUse", says({"updatedInput": {"command": "make clean"}})))
    world = World(tmp_path, later, level=manual)
    assert (await world.run("make")).is_error  # what was allowed is not what would run
    world = World(tmp_path, projects=hooks(("PreToolUse", yes)), level=manual)
    assert (await world.run("make")).is_error  # a project can only narrow


async def test_a_hook_may_want_a_person(tmp_path: Path) -> None:
    wary = hooks(("PreToolUse", says({"permissionDecision": "ask", "reason": "look first"})))
    world = World(tmp_path, wary, asker=FakeAsker())
    assert not (await world.run("make")).is_error
    assert [(r.reason, r.arguments["command"]) for r in world.asker.requests] == [("look first", "make")]
    assert (await World(tmp_path, wary).run("make")).is_error


class Editor(FakeAsker):
    """A person who changes every command before it runs."""

    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        answer = await super().approve(request)
        return answer.model_copy(update={"arguments": {**request.arguments, "command": "make deploy"}})


@pytest.mark.req("HOK-04")
@pytest.mark.parametrize(
    ("command", "why"),
    [
        (python("if 'deploy' in letter['tool_input']['command']: sys.exit(2)"), "Blocked by hook"),
        (
            python(
                "print(json.dumps({'updatedInput': {'command': 'nice ' + letter['tool_input']['command']}}))"
            ),
            "changes what",
        ),
        ("true", ""),
    ],
)
async def test_no_prompt_overrides_a_hook(tmp_path: Path, command: str, why: str) -> None:
    world = World(tmp_path, hooks(("PreToolUse", command)), level=ApprovalLevel.MANUAL, asker=Editor())
    message = await world.run("make")
    assert len(world.asker.requests) == 1
    assert why in message.content
    assert message.is_error == bool(why)
    assert world.shell.commands == ([] if why else ["make deploy"])


@pytest.mark.req("HOK-08", "HOK-02")
async def test_no_hook_smuggles_past_another(tmp_path: Path) -> None:
    guard = python("if 'deploy' in letter['tool_input']['command']: sys.exit(2)")
    smuggler = hooks(("PreToolUse", says({"updatedInput": {"command": "make deploy"}})))
    world = World(tmp_path, hooks(("PreToolUse", guard)), projects=smuggler)
    assert "after another hook changed the input" in (await world.run("make")).content
    assert world.shell.commands == []


@pytest.mark.req("HOK-09", "SAF-09")
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("./gone.sh", "not found"),
        ("kill -SEGV $$", "signal 11"),
        pytest.param("sleep 60", "did not end within 1 s", marks=pytest.mark.slow),
        ("echo '{\"permissionDecision\":'", "no JSON"),
        (python("print('{' + ' ' * 200_000 + '}')"), "no JSON, or too long"),
    ],
)
async def test_a_guard_that_gives_no_answer_refuses(tmp_path: Path, command: str, why: str) -> None:
    timeout = 0.1 if "sleep" in command else 60.0
    world = World(tmp_path, hooks(("PreToolUse", command), timeout=timeout))
    message = await world.run("make")
    assert why in message.content
    assert world.shell.commands == []
    assert any(why in text and "counts as a refusal" in text for text in world.told())


@pytest.mark.req("HOK-09")
@pytest.mark.parametrize("command", ["echo oops >&2; exit 1", python("raise SystemExit('oops')")])
async def test_another_exit_code_is_told_and_passed_over(tmp_path: Path, command: str) -> None:
    world = World(tmp_path, hooks(("PreToolUse", command), ("PostToolUse", command)))
    assert not (await world.run("make")).is_error
    await world.engine.close()
    assert [text.split(" hook")[0] for text in world.told()] == ["A PreToolUse", "A PostToolUse"]
    assert all("passed over" in text and "oops" in text for text in world.told())


async def test_a_defect_of_the_engine_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, hooks(("PreToolUse", "true")))

    async def broken(*_: Any) -> Any:
        raise RuntimeError("a defect")

    monkeypatch.setattr(world.engine, "ask", broken)
    assert "its hooks could not be asked" in (await world.run("make")).content
    assert world.shell.commands == []


@pytest.mark.req("HOK-06")
async def test_hooks_beside_the_work_are_bounded_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "WAITING", 3)
    world = World(tmp_path, hooks(("Stop", f"echo $$ >> {tmp_path}/pids; trap '' TERM; sleep 60 & sleep 60")))
    for _ in range(5):
        world.engine.tell(HookEvent.STOP, "Main", {}, str(tmp_path))
    assert sum("did not run: 3 events wait" in text for text in world.told()) == 2
    await until(lambda: (tmp_path / "pids").is_file() and (tmp_path / "pids").read_text().count("\n") == 2)
    await world.engine.close(0.1)
    pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
    assert len(pids) == engine_module.AT_ONCE
    assert all(process_start(pid) is None for pid in pids)
    assert "Hooks of 3 events did not end within 0.1 s and were ended." in world.told()
    world.engine.tell(HookEvent.STOP, "Main", {}, str(tmp_path))
    assert len((tmp_path / "pids").read_text().split()) == 2


@pytest.mark.parametrize("early", [True, False])
async def test_an_interrupted_call_takes_its_hook_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    world = World(tmp_path, hooks(("PreToolUse", f"echo $$ > {tmp_path}/pid; sleep 60; true")))
    exec_ = asyncio.create_subprocess_exec

    async def slow(*arguments: Any, **options: Any) -> Any:
        process = await exec_(*arguments, **options)
        await asyncio.sleep(0.1)  # it runs, and who asked for it does not know
        return process

    if early:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", slow)
    call = asyncio.create_task(world.run("make"))
    pid = await number_in(tmp_path / "pid")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert process_start(pid) is None
    assert world.shell.commands == []


async def test_its_world_is_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-process")
    world = World(tmp_path, hooks(("PreToolUse", "env > env.txt; ls -l /proc/$$/fd | wc -l > fds")))
    await world.run("make")
    names = {line.partition("=")[0] for line in (tmp_path / "env.txt").read_text().splitlines()}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {"PATH", "LANG", "OPENDEV_PROJECT_DIR", "OPENDEV_HOOK"}


async def test_the_calls_of_a_batch_are_asked_about_one_by_one(tmp_path: Path) -> None:
    guard = python(
        "if letter['tool_name'] == 'run_command' and 'no' in letter['tool_input']['command']: sys.exit(2)"
    )
    world = World(tmp_path, hooks(("PreToolUse", guard)))
    calls = [{"tool": "run_command", "arguments": {"command": command}} for command in ("no", "yes")]
    await world.call("batch_tool", calls=calls)
    assert world.shell.commands == ["yes"]


async def test_a_projects_hook_runs_in_the_project_and_not_after_a_change(tmp_path: Path) -> None:
    script = tmp_path / "check.sh"
    script.write_text("cat > seen.json\n")
    theirs = hooks(("PreToolUse", "sh ./check.sh"))
    found = HookSet(projects=theirs, project=str(tmp_path), digest=digest_of(theirs, str(tmp_path)))
    copy = tmp_path / "worktree"
    copy.mkdir()
    (copy / "check.sh").write_text("touch EVIL\n")
    log = EventLog()
    engine = HookEngine(found, session="s", env=ENV, emit=log)
    answer = await engine.ask(HookEvent.PRE_TOOL_USE, "x", {"tool_input": {}}, str(copy))
    assert answer.refused == ""
    assert json.loads((tmp_path / "seen.json").read_text())["cwd"] == str(copy)
    script.write_text("touch EVIL\n")
    answer = await engine.ask(HookEvent.PRE_TOOL_USE, "x", {"tool_input": {}}, str(copy))
    assert "what it runs was changed since you agreed to it" in answer.refused
    assert not (tmp_path / "EVIL").exists()
    assert not (copy / "EVIL").exists()


@pytest.mark.slow
@pytest.mark.req("HOK-10")
async def test_the_example_of_the_documentation_works(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "hooks.md").read_text()
    home, project = tmp_path / "home", tmp_path / "project"
    (home / ".opendev" / "hooks").mkdir(parents=True)
    project.mkdir()
    (tmp_path / "npx").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/npx.log\n')
    (tmp_path / "npx").chmod(0o755)
    files = re.findall(r"`~/\.opendev/(\S+)`:\n\n```\w+\n(.*?)```", page, re.S)
    assert [name for name, _ in files] == [
        "settings.json",
        "hooks/protect.py",
        "hooks/pnpm.py",
        "hooks/lint.sh",
    ]
    for name, content in files:
        (home / ".opendev" / name).write_text(content)
    env = {
        "HOME": str(home),
        "PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.defpath}",
        "TMPDIR": str(tmp_path),
    }
    world = World(project, Hooks.model_validate(json.loads(files[0][1])["hooks"]), env=env)
    refused = await world.call("write_file", file_path="db/migrations/1.sql", content="x")
    assert "db/migrations/1.sql is a migration: write a new one instead" in refused.content
    assert "This project uses pnpm." in (await world.run("npm test")).content
    await world.run("npm-check")
    assert world.shell.commands == ["pnpm test", "npm-check"]
    for name in ("a.js", "a.py"):
        assert not (await world.call("write_file", file_path=name, content="x")).is_error
    await world.engine.close()
    assert (tmp_path / "npx.log").read_text() == "eslint --fix a.js\n"
    assert world.told() == []
