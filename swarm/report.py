"""The report of a run: built from the books, rendered as text, JSON, HTML and JUnit (SWM-15)."""

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast
from xml.etree import ElementTree

from ..core.chat import Usage
from ..core.errors import OpenDevError, exit_of
from ..core.exits import Exit, combine
from ..core.model import JsonObject
from ..core.ticket import TASK_EXIT, Leftovers, RunReport, SwarmPlan, TaskResult, TaskStatus, Tokens
from ..policy.visible import visible
from .books import Books, TaskBook
from .ports import RunSettings, SwarmPorts

Format = Literal["text", "json", "html", "junit"]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended: what ended the run itself (if anything), the branch's head, branches that are left, seconds."""

    failure: OpenDevError | None
    head: str
    branches: tuple[str, ...]
    wall_s: float


def task_result(task: str, book: TaskBook, ledger: Mapping[str, Any] | None) -> TaskResult:
    """One ticket's line of the report. ``ledger``: the model service's own count of this process, which wins."""
    total = book.total()
    usage, calls = total.usage, total.model_calls
    if ledger is not None:
        usage = sum((item.usage for item in book.earlier), Usage.model_validate(ledger["usage"]))
        calls = sum(item.model_calls for item in book.earlier) + int(ledger["calls"])
    status = book.status or TaskStatus.INFRA
    return TaskResult(
        id=task,
        status=status,
        attempts=book.attempts,
        branch=book.branch,
        commit=book.commit,
        merged_as=book.merged_as,
        files=book.files,
        verify=book.verify,
        reviews=book.reviews,
        model_calls=calls,
        tool_calls=total.tool_calls,
        tokens=Tokens(input=usage.input, output=usage.output, cached=usage.cached),
        cost_usd=usage.cost_usd,
        wall_s=book.wall_s,
        error=None if status is TaskStatus.MERGED else book.detail or f"It ended as {status}.",
    )


async def build_report(
    plan: SwarmPlan,
    ports: SwarmPorts,
    settings: RunSettings,
    books: Books,
    ending: Ending,
) -> RunReport:
    """The whole report."""
    failure = ending.failure
    totals = await ports.ledger.totals() if ports.ledger is not None else {}
    scopes = cast("dict[str, JsonObject]", totals.get("scopes", {}))
    tasks = tuple(task_result(name, book, scopes.get(f"task:{name}")) for name, book in books.tasks.items())
    codes = [TASK_EXIT[task.status] for task in tasks]
    exit_code = combine([*codes, exit_of(failure.info.kind)] if failure else codes)
    notes = [failure.info.sentence()] if failure else []
    notes += [settings.unconfined] if settings.unconfined else []
    return RunReport(
        run_id=settings.run_id,
        status=_status([task.status for task in tasks], exit_code),
        exit_code=int(exit_code),
        repo=str(settings.repo),
        base=settings.base,
        into=plan.swarm.into,
        head=ending.head,
        wall_s=ending.wall_s,
        cost_usd=sum(task.cost_usd for task in tasks),
        tokens=Tokens(
            input=sum(task.tokens.input for task in tasks),
            output=sum(task.tokens.output for task in tasks),
            cached=sum(task.tokens.cached for task in tasks),
        ),
        model_calls=sum(task.model_calls for task in tasks),
        agents=ports.counts() if ports.counts is not None else books.agents(),
        phases=dict(books.phases),
        tasks=tasks,
        leftovers=Leftovers(worktrees=tuple(sorted(books.worktrees)), branches=ending.branches),
        notes=tuple(notes + books.notes),
        sandbox=settings.sandbox,
    )


def _status(found: list[TaskStatus], code: Exit) -> Literal["succeeded", "partial", "failed", "cancelled"]:
    if code is Exit.INTERRUPTED:
        return "cancelled"
    if code is Exit.DONE:
        return "succeeded"
    return "partial" if TaskStatus.MERGED in found else "failed"


def render(report: RunReport, kind: Format) -> str:
    """The report in one of its four forms."""
    writers: dict[Format, Callable[[RunReport], str]] = {
        "text": render_text,
        "json": lambda value: value.model_dump_json(by_alias=True, indent=2),
        "html": render_html,
        "junit": render_junit,
    }
    return writers[kind](report)


def summary(report: RunReport) -> str:
    """The run in one line."""
    merged = sum(task.status is TaskStatus.MERGED for task in report.tasks)
    return (
        f"Run {report.run_id} {report.status} (exit {report.exit_code}): {merged} of {len(report.tasks)} merged into"
        f" {report.into} at {report.head[:12] or 'nothing'}, {report.wall_s:.1f} s, ${report.cost_usd:.4f},"
        f" {report.model_calls} model calls"
    )


def render_text(report: RunReport) -> str:
    """Plain text, one ticket a line, then what went wrong, then the notes."""
    width = max((len(task.id) for task in report.tasks), default=2)
    lines = [summary(report), ""]
    for task in report.tasks:
        where = task.merged_as[:12] or task.branch
        lines.append(
            f"  {task.id:<{width}}  {task.status:<13}  tries {task.attempts}  {task.wall_s:>7.1f} s  ${task.cost_usd:.4f}  {where}"
        )
        if task.error:
            lines += [f"      {line}" for line in task.error.splitlines()[:12]]
    if report.notes:
        lines += ["", "Notes:", *(f"  - {note}" for note in report.notes)]
    if report.leftovers.branches or report.leftovers.worktrees:
        lines += ["", "Left on purpose:"]
        lines += [f"  branch {name}" for name in report.leftovers.branches]
        lines += [f"  worktree {path}" for path in report.leftovers.worktrees]
    return visible("\n".join(line.rstrip() for line in lines)) + "\n"


def render_junit(report: RunReport) -> str:
    """JUnit XML for CI: a ticket is a test case; infra endings are errors, skipped ones skipped, the rest failures."""
    bad = [task for task in report.tasks if task.status is not TaskStatus.MERGED]
    skipped = [task for task in bad if task.status is TaskStatus.SKIPPED]
    errors = [task for task in bad if TASK_EXIT[task.status] in (Exit.INFRA, Exit.INTERRUPTED)]
    counts = {"tests": len(report.tasks), "failures": len(bad) - len(skipped) - len(errors)}
    counts |= {"errors": len(errors), "skipped": len(skipped)}
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": f"swarm {report.run_id}",
            "time": f"{report.wall_s:.3f}",
            **{k: str(v) for k, v in counts.items()},
        },
    )
    for task in report.tasks:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": report.into, "name": task.id, "time": f"{task.wall_s:.3f}"}
        )
        if task in bad:
            tag = "skipped" if task in skipped else "error" if task in errors else "failure"
            text = visible(task.error or "")
            child = ElementTree.SubElement(
                case, tag, {"type": task.status, "message": text.split("\n")[0][:300]}
            )
            child.text = text
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def render_html(report: RunReport) -> str:
    """One self-contained page without scripts; everything from the run is escaped."""
    rows = "\n".join(_html_row(task) for task in report.tasks)
    notes = "".join(f"<li>{_escaped(note)}</li>" for note in report.notes)
    left = "".join(
        f"<li>{_escaped(name)}</li>" for name in (*report.leftovers.branches, *report.leftovers.worktrees)
    )
    phases = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in report.phases.items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Swarm {_escaped(report.run_id)}</title>
<style>
body {{ font: 14px/1.5 system-ui, sans-serif; margin: 2rem; max-width: 75rem; }}
table {{ border-collapse: collapse; width: 100%; }} td, th {{ border-bottom: 1px solid #ccc; padding: .4rem; text-align: left; vertical-align: top; }}
.merged {{ color: #176b2c; }} .bad {{ color: #a3171f; }} pre {{ white-space: pre-wrap; margin: 0; max-height: 16rem; overflow: auto; }}
</style></head><body>
<h1>Swarm {_escaped(report.run_id)}: {report.status}</h1>
<p>{_escaped(summary(report))}</p>
<p>Base {_escaped(report.base)}; {report.agents.spawned} agents, at most {report.agents.peak} at once; {phases}.</p>
<table><thead><tr><th>Ticket</th><th>Status</th><th>Tries</th><th>Files</th><th>Verification</th><th>Cost</th><th>What happened</th></tr></thead>
<tbody>
{rows}
</tbody></table>
<h2>Notes</h2><ul>{notes}</ul>
<h2>Left on purpose</h2><ul>{left}</ul>
</body></html>
"""


def _html_row(task: TaskResult) -> str:
    style = "merged" if task.status is TaskStatus.MERGED else "bad"
    verify = f"{task.verify.command} ({task.verify.outcome})" if task.verify else "none"
    reviews = "; ".join(f"{item.agent}: {item.verdict}" for item in task.reviews)
    happened = task.error or f"merged as {task.merged_as[:12]}"
    cells = (
        f'<td class="{style}">{_escaped(task.status)}</td>',
        f"<td>{task.attempts}</td>",
        f"<td>{_escaped(', '.join(task.files[:50]))}</td>",
        f"<td>{_escaped(verify)}<br>{_escaped(reviews)}</td>",
        f"<td>${task.cost_usd:.4f}</td>",
        f"<td><pre>{_escaped(happened)}</pre></td>",
    )
    return f"<tr><td>{_escaped(task.id)}</td>{''.join(cells)}</tr>"


def _escaped(text: str) -> str:
    return html.escape(visible(text), quote=True)
