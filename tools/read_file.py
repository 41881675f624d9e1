"""read_file: a text file with line numbers, in windows (FIL-01..04)."""

from dataclasses import dataclass

from pydantic import Field

from ..core.model import Frozen
from ..core.tool import Effect, Limits, Tool, ToolContext, ToolResult
from .blocking import run_blocking
from .edit.canonical import printable
from .edit.document import Document
from .files import decode, place, read_bytes


class Args(Frozen):
    """Arguments of read_file."""

    file_path: str = Field(description="Relative to the working folder.")
    offset: int = Field(default=1, ge=1, description="First line, from 1.")
    max_lines: int = Field(default=2_000, ge=1, description="Lines to show at most.")


@dataclass(frozen=True, slots=True)
class _Window:
    text: str
    last: int  # number of the last line shown
    omitted: str  # which lines of the window were left out, in words


def _read(args: Args, ctx: ToolContext) -> ToolResult:
    found = place(args.file_path, ctx)
    data = read_bytes(found.path, found.name)
    content = decode(data, found.name)
    ctx.seen.record(found.path, data)
    document = Document(content.text)
    total = document.count
    if total == 0:
        return ToolResult(ok=True, text=f"({found.name} is empty)", summary=f"✓ Read {found.name} (empty)")
    if args.offset > total:
        return ToolResult.failure(
            f"{found.name} has {total} lines; offset {args.offset} is past its end.",
            f"Use an offset between 1 and {total}.",
        )
    size = min(args.max_lines, ctx.limits.read_lines)
    window = _window(document, args.offset, size, ctx.limits)
    notes = [window.omitted] if window.omitted else []
    if window.last < total:
        notes.append(f"[lines {args.offset}-{window.last} of {total}; go on with offset={window.last + 1}]")
    if content.foreign:
        notes.append(
            "[this file is not UTF-8: bytes of its own encoding are shown as \ufffd and are kept by edits]"
        )
    return ToolResult(
        ok=True,
        text="\n".join([window.text, *notes]),
        summary=f"✓ Read {found.name} ({window.last - args.offset + 1} of {total} lines)",
        data={"lines": total, "first": args.offset, "last": window.last},
    )


def _window(document: Document, offset: int, size: int, limits: Limits) -> _Window:
    """At most ``size`` numbered lines; above ``result_chars`` the first and last characters only, whole lines."""
    last = min(document.count, offset + size - 1)
    lines = [_numbered(document, number, limits.line_chars) for number in range(offset, last + 1)]
    if sum(len(line) + 1 for line in lines) <= limits.result_chars:
        return _Window("\n".join(lines), last, "")
    head = _fitting(lines, limits.keep_head)
    tail = min(_fitting(lines[::-1], limits.keep_tail), len(lines) - head)
    first_cut, last_cut = offset + head, last - tail
    marker = f"[… lines {first_cut}-{last_cut} left out …]"
    text = "\n".join([*lines[:head], marker, *lines[len(lines) - tail :]])
    return _Window(
        text, last, f"[too long to show whole: read_file with offset={first_cut} shows the lines left out]"
    )


def _fitting(lines: list[str], chars: int) -> int:
    """How many lines from the start fit into ``chars``; at least one."""
    used = 0
    for count, line in enumerate(lines):
        used += len(line) + 1
        if used > chars:
            return max(1, count)
    return len(lines)


def _numbered(document: Document, number: int, limit: int) -> str:
    line = printable(document.lines[number - 1])
    if len(line) > limit:
        line = f"{line[:limit]}[… line cut: {len(line) - limit:,} more characters]"
    return f"{number:6d}\t{line}"


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    return await run_blocking(_read, args, ctx)


TOOL = Tool(
    name="read_file",
    category="file",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ}),
    aliases={"path": "file_path", "filename": "file_path", "limit": "max_lines"},
)
