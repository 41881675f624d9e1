"""delete_file: removes one file, or one link itself (recipe step ``delete``)."""

from pydantic import Field

from ..core.errors import ErrorKind
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .blocking import run_blocking
from .files import MAX_BYTES, lock_key, os_failure, read_bytes, writable_place


class Args(Frozen):
    """Arguments of delete_file."""

    file_path: str = Field(description="Relative to the working folder.")


def _delete(args: Args, ctx: ToolContext) -> ToolResult:
    target = writable_place(args.file_path, ctx, follow=False)
    data = None
    try:
        if not target.path.is_symlink():
            if not target.path.exists():
                return ToolResult.failure(f"{target.name} does not exist.", kind=ErrorKind.NOT_FOUND)
            if not target.path.is_file():
                return ToolResult.failure(
                    f"{target.name} is not a file. Nothing was deleted.", "Delete files one by one."
                )
            status = target.path.stat()
            if not status.st_mode & 0o222:
                return ToolResult.failure(
                    f"{target.name} is read-only; permission to delete it is denied. Nothing was deleted.",
                    "Leave it as it is, or ask the user.",
                )
            if status.st_size <= MAX_BYTES:
                data = read_bytes(target.path, target.name)
                ctx.seen.assert_fresh(target.path, data)
        perm = target.path.lstat().st_mode & 0o7777
        target.path.unlink()
        if ctx.operations is not None and data is not None:
            ctx.operations.note(target.path, data, None, perm)
    except OSError as error:
        raise os_failure("delete", target.name, error) from error
    return ToolResult(
        ok=True,
        text=f"Deleted {target.name}.",
        summary=f"✓ Deleted {target.name}",
        data={"path": target.name},
        changed=(target.name,) if target.in_root else (),
    )


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    return await run_blocking(_delete, args, ctx)


TOOL = Tool(
    name="delete_file",
    category="file",
    args=Args,
    run=_run,
    effects=frozenset({Effect.WRITE}),
    resources=lambda args: (lock_key(args.file_path),),
    aliases={"path": "file_path", "filename": "file_path"},
)
