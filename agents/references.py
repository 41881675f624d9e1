"""Reads what the user mentioned by `@file`, through the same guard and limits as the tool read_file (RET-07)."""

import asyncio
from dataclasses import dataclass

from ..context.mentions import IMAGES, Mention, find_mentions
from ..core.errors import ErrorKind, OpenDevError
from ..core.tool import ToolContext, ToolResult
from ..policy.gate import Gate
from ..policy.paths import confine
from ..policy.redact import redact
from ..tools import list_files, read_file


@dataclass(frozen=True, slots=True)
class Mentioned:
    """``blocks``: what it is, and its content. ``notes``: one sentence for each that could not be attached."""

    blocks: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


async def read_mentions(prompt: str, ctx: ToolContext, gate: Gate, room: int) -> Mentioned:
    """The files and folders that ``prompt`` mentions, at most ``room`` characters in all.

    A mention that leads outside of the project, is binary, is missing, or does not fit is named and not attached; a word
    that is no path at all stays plain text.
    """
    blocks: list[tuple[str, str]] = []
    notes: list[str] = []
    for mention in find_mentions(prompt):
        try:
            block = await _attach(mention, ctx, gate)
        except OpenDevError as error:
            notes.append(f"@{mention.path} is not attached: {error.info.message}")
            continue
        if block is None:
            continue
        if len(block[1]) > room:
            notes.append(
                f"@{mention.path} is not attached: it does not fit beside the others. Read what you need of it."
            )
            continue
        room -= len(block[1])
        blocks.append(block)
    return Mentioned(tuple(blocks), tuple(notes))


async def _attach(mention: Mention, ctx: ToolContext, gate: Gate) -> tuple[str, str] | None:
    """Title and content; None when the word names nothing. Raises ``OpenDevError`` with the reason for the user."""
    if not mention.means_a_file and not await asyncio.to_thread((ctx.root / mention.path).exists):
        return None
    path = await asyncio.to_thread(confine, mention.path, ctx.root, (ctx.scratch,))
    if not await asyncio.to_thread(path.exists):
        raise OpenDevError(ErrorKind.NOT_FOUND, "there is no such file.")
    if path.suffix.lower() in IMAGES:
        raise OpenDevError(
            ErrorKind.CONFIG,
            "it is a picture. Pictures need a model in the role vision; the tool analyze_image asks it.",
        )
    is_dir = await asyncio.to_thread(path.is_dir)
    result = await (_folder(mention, ctx, gate) if is_dir else _file(mention, ctx, gate))
    if not result.ok:
        raise OpenDevError(ErrorKind.TOOL, result.error.message if result.error else result.text)
    return mention.path, redact(result.text)


async def _file(mention: Mention, ctx: ToolContext, gate: Gate) -> ToolResult:
    window: dict[str, int] = {}
    if mention.first:
        last = mention.last or mention.first
        window = {"offset": mention.first, "max_lines": max(1, last - mention.first + 1)}
    args = read_file.Args.model_validate({"file_path": mention.path, **window})
    verdict = gate.judge(read_file.TOOL, args)
    if verdict.decision == "deny":  # what would be asked, the user has answered by naming the file
        raise OpenDevError(ErrorKind.DENIED, verdict.reason)
    return await read_file.TOOL.run(args, ctx)


async def _folder(mention: Mention, ctx: ToolContext, gate: Gate) -> ToolResult:
    args = list_files.Args.model_validate({"path": mention.path})
    verdict = gate.judge(list_files.TOOL, args)
    if verdict.decision == "deny":
        raise OpenDevError(ErrorKind.DENIED, verdict.reason)
    return await list_files.TOOL.run(args, ctx)
