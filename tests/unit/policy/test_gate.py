"""The gate: levels, plan mode, paths, scope, and a broken layer that stays shut (APR-01, REG-06, SAF-01, SAF-09)."""

from pathlib import Path
from typing import Any

import pytest
from opendev.core.approval import ApprovalLevel, Mode
from opendev.core.model import Frozen
from opendev.core.scope import Scope
from opendev.core.tool import Effect, Tool, ToolContext, ToolResult
from opendev.policy.gate import Gate
from opendev.policy.verdict import Verdict, allow, ask, deny, join
from opendev.tools.catalog import BUILTIN, RECIPE

TOOLS = {tool.name: tool for tool in (*BUILTIN, *RECIPE)}


def gate(root: Path, level: ApprovalLevel = ApprovalLevel.AUTO, **other: Any) -> Gate:
    fields: dict[str, Any] = {
        "mode": Mode.NORMAL,
        "scope": Scope(),
        "extra_roots": (root.parent / "scratch",),
        "blocked_commands": (),
    }
    return Gate(level=level, root=root, **(fields | other))


def judge(found: Gate, name: str, **args: Any) -> Verdict:
    return found.judge(TOOLS[name], TOOLS[name].args(**args))


WRITE = {"file_path": "a.py", "content": "x"}


@pytest.mark.req("APR-01")
@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (ApprovalLevel.MANUAL, ("ask", "ask", "ask", "ask", "ask", "allow", "allow")),
        (ApprovalLevel.SEMI_AUTO, ("allow", "ask", "allow", "ask", "allow", "allow", "allow")),
        (ApprovalLevel.AUTO, ("allow", "allow", "allow", "allow", "allow", "allow", "allow")),
    ],
)
def test_levels(tmp_path: Path, level: ApprovalLevel, expected: tuple[str, ...]) -> None:
    found = gate(tmp_path, level)
    decisions = (
        judge(found, "read_file", file_path="a.py").decision,
        judge(found, "write_file", **WRITE).decision,
        judge(found, "run_command", command="git status").decision,
        judge(found, "run_command", command="make").decision,
        judge(found, "spawn_subagent", agent="Code-Explorer", prompt="x").decision,
        judge(found, "write_todos", todos=("a",)).decision,
        judge(found, "task_complete", status="success", summary="x").decision,
    )
    assert decisions == expected


@pytest.mark.req("REG-06")
def test_plan_mode_leaves_reading_and_planning(tmp_path: Path) -> None:
    found = gate(tmp_path, mode=Mode.PLAN)
    allowed = {t.name for t in TOOLS.values() if found.judge(t, t.args.model_construct()).decision == "allow"}
    planning = {
        "write_todos",
        "update_todo",
        "complete_todo",
        "spawn_subagent",
        "task_complete",
        "present_plan",
    }
    assert allowed == {tool.name for tool in TOOLS.values() if tool.read_only} | planning
    verdict = judge(found, "write_file", **WRITE)
    assert (verdict.decision, verdict.layer) == ("deny", "mode")
    assert "plan mode" in verdict.reason


@pytest.mark.req("FIL-15")
@pytest.mark.parametrize("path", ["../x", "/etc/passwd", ".git/config", ".GIT/config", "link/x"])
@pytest.mark.parametrize("tool", ["read_file", "list_files", "search", "delete_file", "edit_file"])
def test_paths_are_refused_before_the_tool_runs(tmp_path: Path, tool: str, path: str) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w/link").symlink_to(tmp_path)
    name = "path" if tool in ("list_files", "search") else "file_path"
    args = TOOLS[tool].args.model_construct(_fields_set={name}, **{name: path})
    verdict = gate(tmp_path / "w").judge(TOOLS[tool], args)
    assert (verdict.decision, verdict.layer) == ("deny", "paths")


def test_scope_binds_writers_only(tmp_path: Path) -> None:
    found = gate(tmp_path, scope=Scope(may=("src",), avoid=("src/gen",)))
    assert judge(found, "write_file", file_path="src/a.py", content="").decision == "allow"
    assert judge(found, "read_file", file_path="other.py").decision == "allow"
    for path in ("other.py", "src/gen/x.py", "srcx/a.py"):
        assert judge(found, "write_file", file_path=path, content="").layer == "scope"
    assert judge(found, "move_file", source="src/a", destination="b").decision == "deny"
    assert (
        judge(found, "write_file", file_path=str(tmp_path.parent / "scratch/x"), content="").decision
        == "allow"
    )


@pytest.mark.parametrize("path", [".env", ".ENV", "deploy/.env", ".ssh/id_rsa"])
def test_files_of_secrets_ask_at_every_level(tmp_path: Path, path: str) -> None:
    assert judge(gate(tmp_path), "read_file", file_path=path).decision == "ask"
    assert judge(gate(tmp_path), "read_file", file_path=".env.example").decision == "allow"


@pytest.mark.parametrize("path", [".opendev/settings.json", ".OpenDev/hooks.json", ".mcp.json"])
def test_the_agents_own_settings_ask_when_written(tmp_path: Path, path: str) -> None:
    assert judge(gate(tmp_path), "write_file", file_path=path, content="{}").decision == "ask"
    assert judge(gate(tmp_path), "read_file", file_path=path).decision == "allow"


def test_commands_know_their_folder_and_the_scratch_folder(tmp_path: Path) -> None:
    (tmp_path / "w/sub").mkdir(parents=True)
    found = gate(tmp_path / "w")
    assert judge(found, "run_command", command="cat ../a", cwd="sub").decision == "allow"
    assert judge(found, "run_command", command="cat ../a").decision == "ask"
    assert judge(found, "run_command", command="ls", cwd="../x").decision == "deny"
    assert judge(found, "run_command", command=f"cp a {tmp_path}/scratch/a").decision == "allow"


class Strange(Frozen):
    command: str = "ls"


async def _never(_args: Strange, _ctx: ToolContext) -> ToolResult:
    raise AssertionError


def test_a_root_inside_of_the_state_root_is_an_ordinary_folder(tmp_path: Path) -> None:
    """Worktrees of agents lie in ``~/.opendev``: only what is called so inside of them is a setting."""
    root = tmp_path / ".opendev/worktrees/w"
    root.mkdir(parents=True)
    args = {"content": "x"}
    for path, decision in (
        (root / "a.py", "allow"),
        (root / ".opendev/x", "ask"),
        (root / ".mcp.json", "ask"),
    ):
        for spelled in (str(path), str(path.relative_to(root))):
            assert judge(gate(root), "write_file", file_path=spelled, **args).decision == decision, spelled
    for command, decision in (
        (f"touch {root}/a.py", "allow"),
        ("touch a.py", "allow"),
        ("touch .opendev/x", "ask"),
        (f"touch {root}/.mcp.json", "ask"),
    ):
        assert judge(gate(root), "run_command", command=command).decision == decision, command


@pytest.mark.req("SAF-09")
def test_a_layer_that_breaks_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Verdict:
        raise RuntimeError("boom")

    monkeypatch.setattr("opendev.policy.gate.judge_command", broken)
    verdict = gate(tmp_path).judge(Tool(name="t", category="x", args=Strange, run=_never), Strange())
    assert (verdict.decision, verdict.layer) == ("deny", "gate")


def test_a_tool_without_declared_effects_asks(tmp_path: Path) -> None:
    class Plain(Frozen):
        x: int = 1

    tool = Tool(name="mcp__x__y", category="mcp", args=Plain, run=_never)  # type: ignore[arg-type]
    assert tool.effects == frozenset(Effect)
    assert gate(tmp_path, ApprovalLevel.SEMI_AUTO).judge(tool, Plain()).decision == "ask"


def test_verdicts_join_to_the_most_severe() -> None:
    assert join([]).decision == "allow"
    assert join([allow("a"), ask("b", "x"), deny("c", "y"), deny("d", "z")]) == deny("c", "y")
    assert join([allow("a"), ask("b", "x"), ask("c", "y")]) == ask("b", "x")
