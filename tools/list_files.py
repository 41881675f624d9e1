"""list_files: a folder as a tree, or the files that match a glob (T04, FIL-13)."""

import os
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec
from pydantic import Field

from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .blocking import run_blocking
from .edit.canonical import printable
from .files import place

EXCLUDED = frozenset(
    [
        ".git",
        "node_modules",
        "__pycache__",
        ".venv",
        "venv",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        ".hypothesis",
        ".gradle",
        ".idea",
        ".DS_Store",
        "Thumbs.db",
        "desktop.ini",
        ".Spotlight-V100",
        ".Trashes",
        ".eggs",
        ".terraform",
        "bower_components",
    ]
)
_MAX_SEEN = 200_000  # entries looked at in one call


class Args(Frozen):
    """Arguments of list_files."""

    path: str = Field(default=".", description="Relative to the working folder.")
    pattern: str = Field(
        default="", max_length=1_000, description="Only files that match, e.g. *.py or src/**/*.ts."
    )
    max_results: int = Field(default=100, ge=1, description="Never more than 500.")


@dataclass(slots=True)
class _Found:
    """Paths relative to the listed folder, folders with a slash at the end, links with an ``@``."""

    entries: list[str] = field(default_factory=list[str])
    more: bool = False
    unreadable: list[str] = field(default_factory=list[str])


def _list(args: Args, ctx: ToolContext) -> ToolResult:
    found = place(args.path or ".", ctx)
    if not found.path.exists():
        return ToolResult.failure(
            f"There is no folder {found.name}.", "List its parent folder to see what is there."
        )
    if not found.path.is_dir():
        return ToolResult.failure(
            f"{found.name} is a file, not a folder.", "Use read_file to see what is in it."
        )
    limit = min(args.max_results, ctx.limits.list_entries)
    try:
        result = _scan(found.path, args.pattern, limit)
    except ValueError as error:
        return ToolResult.failure(f"The pattern {args.pattern} cannot be read: {error}.")
    count = len(result.entries)
    lines = [f"{found.name}/", *_tree(result.entries)] if count else [f"{found.name}/ (nothing found)"]
    if result.more:
        lines.append(f"[… only the first {count} entries are shown; list a folder below or use a pattern]")
    if result.unreadable:
        lines.append(f"[not readable: {', '.join(result.unreadable[:5])}]")
    plus = "+" if result.more else ""
    return ToolResult(
        ok=True,
        text="\n".join(lines),
        summary=f"✓ Listed directory ({count}{plus} items)",
        data={"items": count, "more": result.more, "entries": result.entries},
    )


def _scan(top: Path, pattern: str, limit: int) -> _Found:
    """Breadth first, so that a deep folder cannot hide its neighbours; links are shown and not followed."""
    spec = GitIgnoreSpec.from_lines([pattern.removeprefix("./")]) if pattern else None
    found, queue, seen = _Found(), deque([""]), 0
    while queue:
        folder = queue.popleft()
        try:
            with os.scandir(top / folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            found.unreadable.append(printable(folder) or ".")
            continue
        for entry in listed:
            seen += 1
            if entry.name in EXCLUDED:
                continue
            path = f"{folder}{entry.name}"
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder:
                queue.append(f"{path}/")
            if spec is not None and (is_folder or not spec.match_file(path)):
                continue
            if len(found.entries) >= limit or seen > _MAX_SEEN:
                found.more = True
                return found
            found.entries.append(printable(path) + ("/" if is_folder else "@" if entry.is_symlink() else ""))
    return found


def _tree(entries: list[str]) -> list[str]:
    """The paths as an indented tree; folders that are only on the way to an entry are shown as well."""
    lines: list[str] = []
    shown: set[str] = set()
    for entry in sorted(entries, key=lambda item: item.rstrip("/@").split("/")):
        parts = entry.rstrip("/").split("/")
        for depth in range(len(parts) - 1):
            above = "/".join(parts[: depth + 1])
            if above not in shown:
                shown.add(above)
                lines.append(f"{'  ' * (depth + 1)}{parts[depth]}/")
        if entry.endswith("/"):
            if entry.rstrip("/") in shown:
                continue
            shown.add(entry.rstrip("/"))
        lines.append(f"{'  ' * len(parts)}{parts[-1]}{'/' if entry.endswith('/') else ''}")
    return lines


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    return await run_blocking(_list, args, ctx)


TOOL = Tool(
    name="list_files",
    category="file",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ}),
    aliases={"directory": "path", "dir": "path", "folder": "path", "glob": "pattern", "limit": "max_results"},
)
