"""Shared cases that no other test holds by name, re-created here: W03, and the readings of groups 2 and 3 that need no setting."""

# pyright: reportPrivateUsage=false
import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from opendev.actors import janitor
from opendev.cli.task import exit_of_report
from opendev.core.agent import AgentReport, AgentStatus
from opendev.core.approval import ApprovalLevel, Mode
from opendev.core.chat import ToolMessage, UserMessage
from opendev.core.errors import ErrorInfo, ErrorKind
from opendev.core.events import EVENT, Notice
from opendev.core.scope import Scope
from opendev.policy.gate import Gate
from opendev.policy.rules import judge_command
from opendev.store.records import TranscriptLine
from opendev.tools.catalog import BUILTIN
from support.agents import Bench
from support.scripted_model import call, calls, says

TOOLS = {tool.name: tool for tool in BUILTIN}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A worktree of a sub-agent beside the checkout of its parent."""
    (tmp_path / "main/repo/.git").mkdir(parents=True)
    (tmp_path / "main/repo/a.py").write_text("a = 1\n")
    (tmp_path / "w/agent/sub").mkdir(parents=True)
    (tmp_path / "w/agent-victim").mkdir()
    (tmp_path / "w/agent/.git").write_text(f"gitdir: {tmp_path}/main/repo/.git/worktrees/agent\n")
    (tmp_path / "w/agent/escape").symlink_to("/etc")
    return tmp_path


def judged(tree: Path, tool: str, **args: Any) -> str:
    gate = Gate(level=ApprovalLevel.AUTO, mode=Mode.NORMAL, root=tree / "w/agent", scope=Scope())
    return gate.judge(TOOLS[tool], TOOLS[tool].args.model_validate(args)).decision


def test_w03_a_subagent_cannot_touch_the_checkout_of_its_parent(tree: Path) -> None:
    parent = tree / "main/repo"
    for path in (str(parent / "a.py"), "../../main/repo/a.py", str(parent / "new.py")):
        assert judged(tree, "write_file", file_path=path, content="x") == "deny", path
        assert judged(tree, "edit_file", file_path=path, old_content="a", new_content="b") == "deny", path
    for command in (
        f"cd {parent} && git commit -am x",
        f"cd {parent} && echo x > a.py",
        f"git -C {parent} commit -am x",
        f"echo x > {parent}/a.py",
        f"cp a.py {parent}/",
        f"sed -i s/1/2/ {parent}/a.py",
    ):
        assert judged(tree, "run_command", command=command) != "allow", command
    assert judged(tree, "run_command", command="git commit -am x") == "allow"  # in its own tree it may


@pytest.mark.parametrize(
    ("path", "read", "write"),
    [
        ("../agent-victim/s.txt", "deny", "deny"),  # T01
        ("sub/../../x", "deny", "deny"),
        ("./../x", "deny", "deny"),
        ("%2e%2e/x", "allow", "allow"),  # a plain odd name
        ("escape/passwd", "deny", "deny"),  # T02
        ("escape/new", "deny", "deny"),
        (".GIT/config", "deny", "deny"),  # T06, T08
        (".Git/hooks/pre-commit", "deny", "deny"),
        (".git", "deny", "deny"),  # T11
        (".OpenDev/settings.json", "allow", "ask"),
        ("~/.SSH/id_ed25519", "deny", "deny"),
        (".ENV", "ask", "ask"),
        (".env. ", "ask", "ask"),
        (".GITIGNORE", "allow", "allow"),
        (".github/x.yml", "allow", "allow"),
    ],
)
def test_paths_of_group_3(tree: Path, path: str, read: str, write: str) -> None:
    assert judged(tree, "read_file", file_path=path) == read
    assert judged(tree, "write_file", file_path=path, content="x") == write
    assert judged(tree, "edit_file", file_path=path, old_content="a", new_content="b") == write


BLOCKED_FIRST = ("git add -A",)


@pytest.mark.parametrize(
    "command",
    [
        "env git add -A", "nice -n 5 git add -A", "timeout 5 git add -A", "stdbuf -oL git add -A", "setsid git add -A",
        "xargs git add -A </dev/null", "sh -c 'git add -A'", 'bash -lc "git add -A"', "eval 'git add -A'",
        "command git add -A", "exec git add -A", "\\git add -A", '"git" add -A', "/usr/bin/git add -A", 'g""it add -A',
        "busybox sh -c 'git add -A'", "ionice -c3 git add -A", "script -qc 'git add -A' /dev/null",
        "watch -n1 git add -A", "ssh localhost git add -A", "true && git add -A", "A=1 git add -A",
        "if true; then git add -A; fi", "alias x='git add -A'; x", "awk 'BEGIN{system(\"git add -A\")}'",
    ],
)  # fmt: skip
def test_s04_s07_s12_a_blocked_command_is_found_wherever_it_stands(command: str, tmp_path: Path) -> None:
    assert judge_command(command, ApprovalLevel.AUTO, (tmp_path,), BLOCKED_FIRST).decision != "allow"
    assert judge_command("git add a.py", ApprovalLevel.AUTO, (tmp_path,), BLOCKED_FIRST).decision == "allow"


SEMI = [
    "./sed -n 1p f", "bin/grep x f",  # S14
    "git -p status", "git --paginate show HEAD", "git --config-env=core.pager=X log",  # S15
    "find . -execdir sh -c id \\;", "find . -fprint out", "find . -fls out",  # S17
    "sed -n '1e id' f", "sed 's/a/b/w out' f", "sed -n 'w out' f", "sed -f s f", "awk '{print > \"out\"}' f",  # S18
    "rg --pre=./x.sh foo", "sort --output=out f", "less +'!id' f", "xxd -r in out", "uniq in out", "nl f > out",  # S20
    "git diff --", "git diff --no-index -- a b", "-",  # S22
    "ls(){ touch m; }; ls", "coproc touch m", "function ls { touch m; }; ls", "hash -p /usr/bin/touch ls; ls m",  # S45
    "FOO[$(touch m)]=1; ls", "test -v 'a[$(touch m)]'", "echo $((a[$(rm x)]))", "ls ${X:-$(rm x)}",  # S09, S10
    "lsof -i", "git difftool -y -x 'sh -c id' HEAD", "git diffx", "git diff --output=x",  # S06, S47
]  # fmt: skip


@pytest.mark.parametrize("command", SEMI)
def test_what_only_looks_like_reading_is_asked_about(command: str, tmp_path: Path) -> None:
    assert judge_command(command, ApprovalLevel.SEMI_AUTO, (tmp_path,)).decision != "allow"


@pytest.mark.parametrize(
    "command",
    ["ls -la", "git log -p", "git show HEAD", "find . -name '*.py'", "sed -n 1,5p f", "awk '{print $1}' f", "echo '$(rm x)'"],
)  # fmt: skip
def test_plain_reading_is_not(command: str, tmp_path: Path) -> None:
    assert judge_command(command, ApprovalLevel.SEMI_AUTO, (tmp_path,)).decision == "allow"


@pytest.mark.req("ACT-09")
def test_the_janitor_never_signals_a_process_that_took_over_a_pid() -> None:
    child = subprocess.Popen(["sleep", "30"])
    try:
        started = janitor.start_time(child.pid)
        assert started is not None
        janitor.send(child.pid, f"{int(started) - 1}", 15)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.3)
        janitor.send(child.pid, started, 15)
        assert child.wait(5) == -15
    finally:
        child.kill()
        child.wait()


async def test_d03_half_a_character_stops_neither_a_run_nor_a_write(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path,
        calls(call("list_files", path=".")),
        calls(call("read_file", file_path="a\ud800b")),
        calls(call("write_file", file_path="x.txt", content="lone \udc80 half")),
        says("Done \ud83d."),
    )
    odd = Path(os.fsdecode(os.fsencode(bench.root) + b"/caf\xe9.txt"))
    await asyncio.to_thread(odd.write_text, "x")
    report = await bench.run(prompt="hello \udcff")
    assert (report.status, report.error) == (AgentStatus.DONE, None)
    raw = await asyncio.to_thread(Path(report.transcript).read_bytes)
    said = [TranscriptLine.model_validate_json(line).message for line in raw.splitlines()]
    assert next(m.content for m in said if isinstance(m, UserMessage)).endswith("hello \ufffd")
    assert any(isinstance(m, ToolMessage) and "caf\ufffd.txt" in m.content for m in said)
    for event in bench.events:
        EVENT.validate_json(event.to_json())
    notice = Notice(level="info", text="torn \ud83d")
    assert EVENT.validate_json(notice.to_json()) == Notice(level="info", text="torn \ufffd")


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (AgentStatus.FAILED, ErrorKind.CONFIG, 2),
        (AgentStatus.FAILED, ErrorKind.USAGE, 2),
        (AgentStatus.FAILED, ErrorKind.TOOL, 1),
        (AgentStatus.INFRA, ErrorKind.CONFIG, 6),
        (AgentStatus.BUDGET, ErrorKind.BUDGET, 5),
        (AgentStatus.CANCELLED, ErrorKind.CANCELLED, 130),
    ],
)
def test_a_prompt_that_was_set_up_wrongly_ends_with_the_code_of_usage(
    status: AgentStatus, kind: ErrorKind, code: int
) -> None:
    report = AgentReport(id="a", agent="Main", status=status, error=ErrorInfo(kind=kind, message="m"))
    assert exit_of_report(report) == code
