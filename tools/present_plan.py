"""present_plan: put a plan file before the user; its steps become todos when it is approved (T34, TSK-06, TSK-07, APR-09)."""

import asyncio
import hashlib
import re
from pathlib import Path

from pydantic import Field

from ..core.approval import ApprovalAnswer, ApprovalLevel, ApprovalRequest, Mode
from ..core.errors import ErrorKind, OpenDevError
from ..core.ids import new_id
from ..core.model import Frozen
from ..core.tool import Effect, TodoState, Tool, ToolContext, ToolResult
from ..policy.paths import confine
from .todo_list import MAX_TODOS, replace_all, show

MIN_CHARS, MAX_BYTES = 100, 200_000
BEGIN, END = "BEGIN PLAN", "END PLAN"
PARTS = {  # the seven parts of SUB-12, as a heading may spell them
    "Goal": r"goal",
    "Context": r"context",
    "Files to modify": r"files?\s+to\s+(?:modify|change)|modified\s+files",
    "New files": r"new\s+files?|files?\s+to\s+create",
    "Implementation steps": r"implementation\s+steps?",
    "Verification criteria": r"verification(?:\s+criteria)?",
    "Risks": r"risks?",
}
_HEADING = re.compile(r"^(#{1,6})\s+(?:\d+[.)]\s*)?(.+?)[\s:#]*$", re.M)
_STEPS = (  # numbered lines, else sub-headings, else bullets
    re.compile(r"^(?:#{3,6}\s+|\*\*)?(?:step\s+)?\d{1,3}[.):]\s*(.+?)\**$", re.I | re.M),
    re.compile(r"^#{3,6}\s+(.+)$", re.M),
    re.compile(r"^[-*+]\s+(?:\[[ xX]\]\s*)?(.+)$", re.M),
)
_ANY_BULLET = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+\S", re.M)


class Args(Frozen):
    """Arguments of present_plan."""

    plan_file_path: str = Field(
        min_length=1,
        max_length=4_096,
        description="Absolute path of the plan file, as the Planner reported it.",
    )


def problem_of(text: str) -> str:
    """Why ``text`` is no plan that can be presented; empty when it is one. The checks stand in upstream's order."""
    missing = [part for part, pattern in PARTS.items() if _part(text, pattern) is None]
    checks = (
        (not text.strip(), "the file is empty"),
        (len(text.strip()) < MIN_CHARS, f"it has fewer than {MIN_CHARS} characters"),
        (
            not 0 <= text.find(BEGIN) < text.find(END),
            f"it is not enclosed in the lines `{BEGIN}` and `{END}`",
        ),
        (bool(missing), f"these headings are missing: {', '.join(missing)}"),
        (not steps_of(text), "the part Implementation steps holds no step"),
        (
            not _ANY_BULLET.search(_part(text, PARTS["Verification criteria"]) or ""),
            "the part Verification criteria holds no list of checks",
        ),
    )
    return next((why for wrong, why in checks if wrong), "")


def steps_of(text: str) -> tuple[str, ...]:
    """The steps of a plan, in order: numbered lines, else its sub-headings or bullets; at most ``MAX_TODOS`` (TSK-07)."""
    body = _part(text, PARTS["Implementation steps"]) or ""
    readings = ([match[1] for match in pattern.finditer(body)] for pattern in _STEPS)
    found = next((lines for lines in readings if lines), list[str]())
    return tuple(step.strip(" *`")[:500] for step in found if step.strip(" *`"))[:MAX_TODOS]


def _part(text: str, pattern: str) -> str | None:
    """What stands under the heading that ``pattern`` names, up to the next heading of its level; None without one."""
    headings = list(_HEADING.finditer(text))
    for index, heading in enumerate(headings):
        if re.fullmatch(pattern, heading[2].strip(" *"), re.I):
            level = len(heading[1])
            after = (other.start() for other in headings[index + 1 :] if len(other[1]) <= level)
            end = next(after, len(text))
            return text[heading.end() : end].split(END, 1)[0]
    return None


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    folders = (ctx.scratch,) if ctx.plans is None else (ctx.plans, ctx.scratch)
    path = confine(args.plan_file_path, ctx.root, folders)
    text = await asyncio.to_thread(_read, path)
    if problem := problem_of(text):
        return ToolResult.failure(
            f"The plan {path} cannot be presented: {problem}.",
            "Have the Planner mend the file, then present it again.",
        )
    if ctx.approve is ApprovalLevel.AUTO and ctx.mode is Mode.NORMAL:
        return _approved(text, path, ctx, auto=True, by="the approval level auto")
    answer = await _ask(text, path, ctx)
    match answer.decision:
        case "no_answer":
            return ToolResult.failure(
                f"The plan {path} was shown, and nobody decided about it.",
                "Nothing may be changed before it is approved. Finish, and say where the plan is.",
                ErrorKind.UNANSWERED,
            )
        case "deny":
            return _rejected(path, answer.note)
        case decision:
            return _approved(text, path, ctx, auto=decision != "once", by="the user")


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise OpenDevError(
            ErrorKind.NOT_FOUND,
            f"The plan file {path} cannot be read: {error.strerror or error}.",
            "Use the path that the Planner reported, or have it write the file.",
        ) from error
    if len(data) > MAX_BYTES:
        raise OpenDevError(
            ErrorKind.TOOL, f"The plan file {path} is larger than {MAX_BYTES:,} bytes.", "Shorten it."
        )
    return data.decode("utf-8", "replace")


async def _ask(text: str, path: Path, ctx: ToolContext) -> ApprovalAnswer:
    """The user's decision about exactly this text: once = approve, session or always = approve_auto, deny = modify (C-14)."""
    mark = hashlib.sha256(text.encode()).hexdigest()
    request = ApprovalRequest(
        id=new_id(),
        agent_id=ctx.agent_id,
        agent="plan",
        tool=TOOL.name,
        arguments={"plan_file_path": str(path), "sha256": mark},
        reason="Approve the plan: once = review each edit, session = approve the edits too, deny with a note = changes wanted.",
        card=text,
        keep="session",
    )
    answer = await ctx.ask.approve(request)
    if answer.allowed and answer.digest != request.digest:
        return answer.model_copy(update={"decision": "no_answer"})
    return answer


def _rejected(path: Path, feedback: str) -> ToolResult:
    wish = (
        f"The user wants changes: {feedback}"
        if feedback
        else "The user did not approve it and gave no reason."
    )
    return ToolResult(
        ok=True,
        text=f"The plan {path} is not approved. {wish}\nSpawn the Planner again (with `resume` and its id) and give it this "
        "feedback; then present the plan again. Change nothing before.",
        summary="✓ Plan shown: changes wanted",
        data={"plan_approved": False, "auto_approve": False, "requires_modification": True, "feedback": feedback,
              "plan_file_path": str(path)},
    )  # fmt: skip


def _approved(text: str, path: Path, ctx: ToolContext, *, auto: bool, by: str) -> ToolResult:
    replace_all(ctx.memo, [(step, TodoState.TODO) for step in steps_of(text)])
    edits = "its edits need no further approval" if auto else "each edit is reviewed"
    return ToolResult(
        ok=True,
        text=f"The plan {path} is approved by {by}; {edits}. Its steps are the todos:\n{show(ctx.memo)}\n\n{text.strip()}",
        summary=f"✓ Plan approved ({len(ctx.memo.todos)} todos)",
        data={"plan_approved": True, "auto_approve": auto, "requires_modification": False, "feedback": "",
              "plan_file_path": str(path)},
    )  # fmt: skip


TOOL = Tool(
    name="present_plan",
    category="Planning",
    args=Args,
    run=_run,
    effects=frozenset({Effect.WRITE, Effect.ASK}),
    resources=lambda _args: ("todos",),
    aliases={"path": "plan_file_path", "file_path": "plan_file_path", "plan_path": "plan_file_path"},
)
