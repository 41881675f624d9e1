"""present_plan: checks, the three outcomes and nobody, steps as todos (TSK-06, TSK-07, APR-09, C-14)."""

from pathlib import Path
from typing import Any

import pytest
from opendev.core.approval import ApprovalAnswer, ApprovalLevel, ApprovalRequest, Mode
from opendev.core.errors import ErrorKind, OpenDevError
from opendev.core.tool import AgentMemo, ToolResult
from opendev.tools.present_plan import MAX_BYTES, TOOL, problem_of, steps_of
from opendev.tools.schema import parse_args
from support.tool_context import FakeAsker, make_context

PLAN = """BEGIN PLAN
## Goal
Split the client.
## Context
It is one file.
## Files to modify
- src/client.py
## New files
none
## Implementation steps
1. Move `Session` to src/session.py.
   - keep the name
2. **Import it in src/client.py.**
3) Run the tests.
## Verification criteria
- pytest -q
## Risks
none
END PLAN
"""


async def present(
    tmp_path: Path, text: str = PLAN, **overrides: Any
) -> tuple[ToolResult, AgentMemo, FakeAsker]:
    plans = tmp_path / "plans"
    plans.mkdir(exist_ok=True)
    path = plans / "calm-making-river.md"
    path.write_text(text)
    root = tmp_path / "project"
    root.mkdir(exist_ok=True)
    asker: FakeAsker = overrides.pop("ask", FakeAsker())
    ctx = make_context(root, plans=plans, ask=asker, **overrides)
    return await TOOL.run(parse_args(TOOL, {"plan_file_path": str(path)}), ctx), ctx.memo, asker


@pytest.mark.req("TSK-06")
@pytest.mark.req("TSK-07")
@pytest.mark.req("C-14")
@pytest.mark.req("APR-09")
@pytest.mark.parametrize(("decision", "auto"), [("once", False), ("session", True), ("always", True)])
async def test_an_approval_makes_todos_of_the_steps(tmp_path: Path, decision: str, auto: bool) -> None:
    result, memo, asker = await present(tmp_path, ask=FakeAsker(decision))
    assert result.ok
    assert result.data is not None
    assert (result.data["plan_approved"], result.data["auto_approve"]) == (True, auto)
    assert [todo.text for todo in memo.todos] == [
        "Move `Session` to src/session.py.",
        "Import it in src/client.py.",
        "Run the tests.",
    ]
    assert asker.requests[0].card == PLAN
    assert asker.requests[0].tool == "present_plan"
    assert "Split the client." in result.text


@pytest.mark.req("TSK-06")
async def test_changes_wanted_come_back_as_feedback(tmp_path: Path) -> None:
    class Reviewer(FakeAsker):
        async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
            return ApprovalAnswer(decision="deny", digest=request.digest, note="Keep the old name.")

    result, memo, _ = await present(tmp_path, ask=Reviewer())
    assert result.ok
    assert result.data is not None
    assert (result.data["requires_modification"], result.data["feedback"]) == (True, "Keep the old name.")
    assert "Spawn the Planner again" in result.text
    assert memo.todos == []


@pytest.mark.req("APR-09")
async def test_nobody_is_no_approval_and_neither_is_an_answer_to_another_plan(tmp_path: Path) -> None:
    class Stale(FakeAsker):
        async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
            return ApprovalAnswer(decision="once", digest="of another text")

    for asker in (FakeAsker("no_answer"), Stale()):
        result, memo, _ = await present(tmp_path, ask=asker)
        assert not result.ok
        assert result.error is not None
        assert result.error.kind is ErrorKind.UNANSWERED
        assert memo.todos == []


async def test_the_level_auto_speaks_for_the_user_but_not_in_plan_mode(tmp_path: Path) -> None:
    result, memo, asker = await present(tmp_path, approve=ApprovalLevel.AUTO, ask=FakeAsker("deny"))
    assert (result.ok, len(memo.todos), asker.requests) == (True, 3, [])
    assert "by the approval level auto" in result.text
    result, memo, asker = await present(
        tmp_path, approve=ApprovalLevel.AUTO, mode=Mode.PLAN, ask=FakeAsker("no_answer")
    )
    assert (result.ok, memo.todos, len(asker.requests)) == (False, [], 1)


@pytest.mark.req("TSK-06")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("BEGIN PLAN\nEND PLAN", "fewer than 100"),
        (PLAN.replace("END PLAN", ""), "not enclosed"),
        (PLAN.replace("## Risks", "## Dangers").replace("## Context", "Context"), "missing: Context, Risks"),
        (
            PLAN.replace("1. ", "").replace("2. ", "").replace("3) ", "").replace("   - keep", "   keep"),
            "holds no step",
        ),
        (PLAN.replace("- pytest -q", "It works."), "no list of checks"),
        (PLAN.replace("END PLAN", "").replace("BEGIN PLAN", "END PLAN\nBEGIN PLAN"), "not enclosed"),
    ],
)
async def test_a_plan_that_is_none_is_not_shown(tmp_path: Path, text: str, why: str) -> None:
    assert why in problem_of(text)
    result, _, asker = await present(tmp_path, text)
    assert not result.ok
    assert why in result.text
    assert asker.requests == []


def test_steps_in_other_forms() -> None:
    def plan(steps: str) -> str:
        return f"## Implementation Steps\n{steps}\n## Risks\n- not a step"

    assert steps_of(plan("### Step 1: One\ntext\n### Step 2: Two")) == ("One", "Two")
    assert steps_of(plan("### One\n- detail\n### Two")) == ("One", "Two")
    assert steps_of(plan("- [ ] One\n* Two")) == ("One", "Two")
    assert steps_of(plan("\n".join(f"{n}. s{n}" for n in range(1, 200)))) == tuple(
        f"s{n}" for n in range(1, 101)
    )
    assert steps_of("nothing") == ()


async def test_only_a_file_of_the_agents_own_places_is_read(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    ctx = make_context(root, plans=tmp_path / "plans")
    for path, kind in (
        (tmp_path / "other.md", ErrorKind.SCOPE),
        (tmp_path / "plans/none.md", ErrorKind.NOT_FOUND),
    ):
        with pytest.raises(OpenDevError) as caught:
            await TOOL.run(parse_args(TOOL, {"path": str(path)}), ctx)
        assert caught.value.info.kind is kind
    (root / "big.md").write_text("x" * (MAX_BYTES + 1))
    with pytest.raises(OpenDevError, match="larger than"):
        await TOOL.run(parse_args(TOOL, {"plan_file_path": "big.md"}), ctx)
