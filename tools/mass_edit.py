"""The shared end of replace_text and rewrite_code: planned changes of many files, written all or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.tool import ToolContext, ToolResult
from .edit.canonical import printable
from .edit.diff import diff
from .files import Text, Write, encode, writable_place, write_all

_MAX_DIFF = 50_000
_NAMED = 10


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file's planned change; ``count`` replacements."""

    name: str
    data: bytes
    before: Text
    after: str
    count: int


def commit(changes: Sequence[FileChange], ctx: ToolContext, *, verb: str, notes: Sequence[str]) -> ToolResult:
    """Write all changes; every file is checked against the scope before any is opened for writing.

    Raises:
        OpenDevError: a file is out of scope, read-only, or changed meanwhile; then no file is changed.
    """
    writes = [
        Write(
            writable_place(change.name, ctx).path,
            change.name,
            change.data,
            encode(change.before, change.after, change.name),
        )
        for change in changes
    ]
    linked = write_all(writes, ctx.operations)
    for write in writes:
        ctx.seen.record(write.path, write.after)
    total = sum(change.count for change in changes)
    said = f"{verb} {total} place{'s' * (total != 1)} in {len(changes)} file{'s' * (len(changes) != 1)}"
    lines = [f"{said}:", *(f"  {change.name}: {change.count}" for change in changes[:200])]
    if len(changes) > 200:
        lines.append(f"  … and {len(changes) - 200} more files")
    if linked:
        lines.append(f"Other hard links keep the old content: {named(linked)}.")
    shown = "".join(printable(diff(change.name, change.before.text, change.after)) for change in changes[:50])
    return ToolResult(
        ok=True,
        text="\n".join([*lines, *notes]),
        summary=f"✓ {said}",
        data={
            "files": {change.name: change.count for change in changes[:1000]},
            "replacements": total,
            "diff": shown[:_MAX_DIFF],
        },
        changed=tuple(change.name for change in changes),
    )


def named(names: Sequence[str]) -> str:
    """At most ten names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
