"""edit_file: replaces one stretch of text in a file, through the nine passes (FIL-06..12, C-13, C-46)."""

from dataclasses import dataclass

from pydantic import Field

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen
from ..core.tool import Effect, Limits, Tool, ToolContext, ToolResult
from .blocking import run_blocking
from .diagnostics import with_problems
from .edit.canonical import printable
from .edit.chain import Edited, chain, edit
from .edit.diff import diff
from .edit.elided import refuse_elided
from .files import (
    Place,
    Text,
    Write,
    decode,
    encode,
    lock_key,
    read_bytes,
    splits_character,
    writable_place,
    write_bytes_atomic,
)
from .write_file import create

_SHOWN_DIFF = 2_000


class Args(Frozen):
    """Arguments of edit_file. ``new_content`` has no default: leaving it out is an error, empty means deletion."""

    file_path: str = Field(description="Relative to the working folder.")
    old_content: str = Field(description="Exactly as in the file, without line numbers; it must occur once.")
    new_content: str = Field(description="Written literally; empty deletes.")
    replace_all: bool = Field(default=False, description="Replace every occurrence.")


@dataclass(frozen=True, slots=True)
class _Change:
    edited: Edited
    before: Text
    after: bytes


def _edit(args: Args, ctx: ToolContext) -> ToolResult:
    """An unread file may be edited: old_content must match its present content once, which proves it known (P10).

    A file that changed since this agent read it may not, whatever matches (FIL-04, FIL-09).
    """
    target = writable_place(args.file_path, ctx)
    if not args.old_content:
        return _create(args, target, ctx)
    data = read_bytes(target.path, target.name)
    ctx.seen.assert_fresh(target.path, data)
    change = _plan(args, target, data, ctx.limits)
    linked = write_bytes_atomic(Write(target.path, target.name, data, change.after), ctx.operations)
    ctx.seen.record(target.path, change.after)
    return _result(target, change, hard_links=bool(linked))


def _create(args: Args, target: Place, ctx: ToolContext) -> ToolResult:
    """An empty old_content creates a file, or fills an empty one; it never replaces content."""
    if not target.path.exists():
        return create(target, args.new_content, ctx, create_dirs=True)
    data = read_bytes(target.path, target.name)
    if data:
        return ToolResult.failure(
            f"old_content is empty, but {target.name} exists and has content. Nothing was written.",
            "Give the text to replace; write_file creates new files.",
        )
    after = encode(Text("", "utf-8"), args.new_content, target.name)
    write_bytes_atomic(Write(target.path, target.name, data, after), ctx.operations)
    ctx.seen.record(target.path, after)
    edited = Edited(text=args.new_content, by="empty-file", lines=(1,), offsets=(0,), matched=("",))
    return _result(target, _Change(edited, Text("", "utf-8"), after), hard_links=False)


def _plan(args: Args, target: Place, data: bytes, limits: Limits) -> _Change:
    before = decode(data, target.name)
    refuse_elided(before.text, args.new_content, target.name)
    mark = "\ufeff" if before.mark else ""  # it is no part of the text, also where a caller copied it along
    similarity = "locate" if args.replace_all else limits.edit_similarity  # C-46: never both
    edited = edit(
        before.text,
        args.old_content.removeprefix(mark),
        args.new_content.removeprefix(mark),
        path=target.name,
        replace_all=args.replace_all,
        passes=chain(similarity),
    )
    if any(splits_character(before, offset) for offset in edited.offsets):
        raise OpenDevError(
            ErrorKind.TOOL,
            f"{target.name} is not UTF-8, and the match may start inside one of its double-byte characters."
            " Nothing was written.",
            "Let old_content start earlier, at plain ASCII text.",
        )
    return _Change(edited, before, encode(before, edited.text, target.name))


def _result(target: Place, change: _Change, *, hard_links: bool) -> ToolResult:
    edited = change.edited
    shown = printable(diff(target.name, change.before.text, edited.text))
    count = len(edited.lines)
    lines = ", ".join(map(str, edited.lines[:20])) + (", …" if count > 20 else "")
    text = f"Edited {target.name}: {count} replacement{'s' * (count > 1)}, line{'s' * (count > 1)} {lines} (pass: {edited.by})."
    if edited.by not in ("exact", "empty-file"):
        text += (
            f"\nold_content did not match exactly; the {edited.by} pass found this place. Unchanged lines keep the"
            f" file's own white space. What changed:\n{shown[:_SHOWN_DIFF]}"
        )
    if hard_links:
        text += f"\nNote: {target.name} had other hard links; those keep the old content."
    return ToolResult(
        ok=True,
        text=text,
        summary=f"✓ Edited {target.name} ({count} replacement{'s' * (count > 1)}, {edited.by})",
        data={
            "path": target.name,
            "pass": edited.by,
            "replacements": count,
            "lines": list(edited.lines[:1000]),
            "matched": printable(edited.matched[0])[:_SHOWN_DIFF],
            "diff": shown,
        },
        changed=(target.name,) if target.in_root else (),
    )


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    return await with_problems(await run_blocking(_edit, args, ctx), ctx)


TOOL = Tool(
    name="edit_file",
    category="file",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ, Effect.WRITE}),
    resources=lambda args: (lock_key(args.file_path),),
    aliases={
        "path": "file_path",
        "filename": "file_path",
        "old_string": "old_content",
        "old_str": "old_content",
        "old_text": "old_content",
        "new_string": "new_content",
        "new_str": "new_content",
        "new_text": "new_content",
    },
)
