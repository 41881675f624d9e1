"""Splits a goal into a ticket file: asks the Planner, checks its answer, and lets it mend the answer once (`swarm plan`)."""

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from string import Template

from ..core.agent import AgentReport, AgentSpec, AgentStatus
from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen
from .plan import PlanView

REPAIRS = 1
ANSWER_CHARS = 40_000
_TEMPLATES = Path(__file__).parent.parent / "templates" / "swarm"
_TOOLS = ("read_file", "list_files", "search", "find_symbol")
_BLOCK = re.compile(r"^(`{3,}|~{3,})toml[ \t]*\n(.*?\n)\1[ \t]*$", re.MULTILINE | re.DOTALL)
_KINDS = {
    AgentStatus.BUDGET: ErrorKind.BUDGET,
    AgentStatus.CANCELLED: ErrorKind.CANCELLED,
    AgentStatus.INFRA: ErrorKind.INFRA,
    AgentStatus.TIMEOUT: ErrorKind.TIMEOUT,
    AgentStatus.UNANSWERED: ErrorKind.UNANSWERED,
}


class Draft(Frozen):
    """A ticket file that passed every check, and what it would do."""

    text: str
    view: PlanView


def planner_spec(planner: AgentSpec, max_iterations: int) -> AgentSpec:
    """The Planner with reading tools only and the task of cutting tickets."""
    prompt = (_TEMPLATES / "planner.md").read_text(encoding="utf-8")
    return planner.model_copy(
        update={"prompt": prompt, "tools": _TOOLS, "writes": False, "max_iterations": max_iterations}
    )


async def draft_plan(
    goal: str,
    *,
    branch: str,
    specs: Mapping[str, AgentSpec],
    ask: Callable[[str], Awaitable[AgentReport]],
    check: Callable[[str], Awaitable[PlanView]],
) -> Draft:
    """Ask for a ticket file and check it; one that is off goes back once with its problems.

    ``check`` raises ``OpenDevError`` for a text that is no plan. Raises ``OpenDevError``: what ended the agent, or tool (exit 1)
    when the second answer is off too.
    """
    repair = problems = ""
    for _ in range(REPAIRS + 1):
        report = await ask(_prompt(goal, branch, specs, repair))
        if report.status is not AgentStatus.DONE:
            raise _ended(report)
        try:
            text = read_block(report.text)
            return Draft(text=text, view=await check(text))
        except OpenDevError as error:
            if error.info.kind is not ErrorKind.USAGE:
                raise
            problems = error.info.message
            answer = report.text[:ANSWER_CHARS] or "(nothing)"
            repair = _fill("plan-repair.md", problems=problems, answer=answer)
    raise OpenDevError(
        ErrorKind.TOOL,
        f"The Planner's ticket file cannot be used, also after a second try: {problems}",
        "Nothing was written. Say the goal more narrowly, or try another model.",
    )


def read_block(text: str) -> str:
    """The one block of TOML in an answer. Raises ``OpenDevError`` (usage) when there is none, or more than one."""
    blocks = [body for _, body in _BLOCK.findall(text)]
    if len(blocks) != 1:
        raise OpenDevError(
            ErrorKind.USAGE, f"The answer holds {len(blocks)} fenced blocks of TOML instead of one."
        )
    return blocks[0]


def _prompt(goal: str, branch: str, specs: Mapping[str, AgentSpec], repair: str) -> str:
    writers = [name for name, spec in specs.items() if spec.writes and spec.calls_model]
    reviewers = [name for name in specs if name.endswith("Reviewer")]
    return _fill(
        "plan.md",
        goal=goal,
        branch=branch,
        writers=", ".join(writers),
        reviewers=", ".join(reviewers),
        repair=repair,
    )


def _fill(name: str, **values: str) -> str:
    return Template((_TEMPLATES / name).read_text(encoding="utf-8")).substitute(values)


def _ended(report: AgentReport) -> OpenDevError:
    if report.error is not None:
        kind = _KINDS.get(report.status, report.error.kind)
        return OpenDevError(kind, report.error.message, report.error.hint)
    return OpenDevError(
        _KINDS.get(report.status, ErrorKind.TOOL),
        f"The Planner ended without an answer ({report.status.value}).",
        "Nothing was written.",
    )
