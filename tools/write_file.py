"""write_file: creates a file that does not exist yet (FIL-05, C-29)."""

from pathlib import Path

from pydantic import Field

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .blocking import run_blocking
from .diagnostics import with_problems
from .edit.diff import diff
from .files import Place, Text, Write, encode, lock_key, os_failure, writable_place, write_bytes_atomic


class Args(Frozen):
    """Arguments of write_file."""

    file_path: str = Field(description="Relative to the working folder.")
    content: str = Field(description="Written exactly as given.")
    create_dirs: bool = Field(default=False, description="Create missing parent folders.")


def create(target: Place, content: str, ctx: ToolContext, *, create_dirs: bool) -> ToolResult:
    """Create ``target`` with ``content``. Raises ``OpenDevError`` when it exists or cannot be written."""
    if target.path.is_dir():
        return ToolResult.failure(f"{target.name} is a directory.", "Give the path of a file.")
    if target.path.exists():
        return ToolResult.failure(
            f"{target.name} exists already; write_file creates new files only.",
            "Use edit_file to change it (read it first).",
        )
    data = encode(Text("", "utf-8"), content, target.name)
    made = _make_parents(target, create_dirs=create_dirs)
    try:
        write_bytes_atomic(Write(target.path, target.name, None, data), ctx.operations)
    except OpenDevError:
        for folder in reversed(made):
            folder.rmdir()
        raise
    ctx.seen.record(target.path, data)
    return ToolResult(
        ok=True,
        text=f"Created {target.name} ({len(data):,} bytes).",
        summary=f"✓ Created {target.name} ({len(data):,} bytes)",
        data={"path": target.name, "bytes": len(data), "diff": diff(target.name, "", content)},
        changed=(target.name,) if target.in_root else (),
    )


def _make_parents(target: Place, *, create_dirs: bool) -> list[Path]:
    """Create the missing parents; the folders made, outermost first."""
    missing = [folder for folder in target.path.parents if not folder.exists()][::-1]
    if missing and not create_dirs:
        raise OpenDevError(
            ErrorKind.NOT_FOUND,
            f"The folder of {target.name} does not exist. Nothing was written.",
            "Pass create_dirs=true to create it.",
        )
    try:
        for folder in missing:
            folder.mkdir(exist_ok=True)
    except OSError as error:
        raise os_failure("create the folder of", target.name, error) from error
    return missing


def _write(args: Args, ctx: ToolContext) -> ToolResult:
    return create(writable_place(args.file_path, ctx), args.content, ctx, create_dirs=args.create_dirs)


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    return await with_problems(await run_blocking(_write, args, ctx), ctx)


TOOL = Tool(
    name="write_file",
    category="file",
    args=Args,
    run=_run,
    effects=frozenset({Effect.WRITE}),
    resources=lambda args: (lock_key(args.file_path),),
    aliases={"path": "file_path", "filename": "file_path", "contents": "content", "text": "content"},
)
