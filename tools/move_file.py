"""move_file: gives a file another path; never onto an existing one (recipe step ``move``)."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from pydantic import Field

from ..core.errors import ErrorKind
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .blocking import run_blocking
from .files import MAX_BYTES, lock_key, os_failure, writable_place


class Args(Frozen):
    """Arguments of move_file."""

    source: str = Field(description="Present path of the file, relative to the working folder.")
    destination: str = Field(
        description="New path; missing folders are created, an existing file is never replaced."
    )


def _move(args: Args, ctx: ToolContext) -> ToolResult:
    source = writable_place(args.source, ctx, follow=False)
    target = writable_place(args.destination, ctx, follow=False)
    if not os.path.lexists(source.path):
        return ToolResult.failure(f"{source.name} does not exist.", kind=ErrorKind.NOT_FOUND)
    if source.path.is_dir() and not source.path.is_symlink():
        return ToolResult.failure(
            f"{source.name} is a directory. Nothing was moved.", "Move its files one by one."
        )
    if os.path.lexists(target.path):
        return ToolResult.failure(
            f"{target.name} exists already. Nothing was moved.",
            "Choose another destination, or delete it first.",
        )
    made = [folder for folder in target.path.parents if not folder.exists()][::-1]
    try:
        for folder in made:
            folder.mkdir(exist_ok=True)
        _rename(source.path, target.path)
    except OSError as error:
        for folder in [folder for folder in reversed(made) if folder.exists()]:
            folder.rmdir()
        raise os_failure(f"move {source.name} to", target.name, error) from error
    with suppress(OSError):
        _log(source.path, target.path, ctx)
    return ToolResult(
        ok=True,
        text=f"Moved {source.name} to {target.name}.",
        summary=f"✓ Moved {source.name} to {target.name}",
        data={"source": source.name, "destination": target.name},
        changed=tuple(end.name for end in (source, target) if end.in_root),
    )


def _log(source: Path, target: Path, ctx: ToolContext) -> None:
    status = target.lstat()
    if ctx.operations is None or not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        return
    data = target.read_bytes()
    ctx.operations.note(source, data, None, stat.S_IMODE(status.st_mode))
    ctx.operations.note(target, None, data)


def _rename(source: Path, target: Path) -> None:
    """Rename without the race of ``rename``, which would replace a file that appears meanwhile."""
    os.link(source, target, follow_symlinks=False)
    source.unlink()


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    return await run_blocking(_move, args, ctx)


TOOL = Tool(
    name="move_file",
    category="file",
    args=Args,
    run=_run,
    effects=frozenset({Effect.WRITE}),
    resources=lambda args: (lock_key(args.source), lock_key(args.destination)),
    aliases={"from": "source", "to": "destination", "src": "source", "dest": "destination"},
)
