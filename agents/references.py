"""Reads what the user mentioned by `@file`, through the same guard and limits as the tool read_file (RET-07)."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..context.mentions import IMAGES, Mention, find_mentions
from ..context.pressure import CHARS_PER_TOKEN
from ..core.chat import IMAGE_TOKENS, ImagePart
from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen
from ..core.tool import Tool, ToolContext, ToolResult
from ..policy.gate import Gate
from ..policy.paths import confine
from ..policy.redact import redact
from ..tools import list_files, read_file
from ..tools.analyze_image import MAX_IMAGE, load_picture


@dataclass(frozen=True, slots=True)
class Mentioned:
    """``blocks``: what it is, and its content. ``notes``: one sentence for each that could not be attached. ``images`` in order."""

    blocks: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    images: tuple[ImagePart, ...] = ()


@dataclass(slots=True)
class _Collected:
    """What fits into ``room`` characters and ``MAX_IMAGE`` bytes of pictures."""

    room: int
    blocks: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    images: list[ImagePart] = field(default_factory=list[ImagePart])

    def add(self, title: str, content: str | ImagePart) -> None:
        """Raises ``OpenDevError`` when it does not fit beside the others."""
        picture = isinstance(content, ImagePart)
        weight = IMAGE_TOKENS * CHARS_PER_TOKEN if picture else len(content)
        bytes_left = MAX_IMAGE - sum(len(image.data) for image in self.images) * 3 // 4
        if weight > self.room or (picture and len(content.data) * 3 // 4 > bytes_left):
            raise OpenDevError(ErrorKind.TOOL, "it does not fit beside the others. Read what you need of it.")
        self.room -= weight
        if picture:
            self.images.append(content)
            content = f"(picture {len(self.images)} of this message)"
        self.blocks.append((title, content))


async def read_mentions(prompt: str, ctx: ToolContext, gate: Gate, room: int, blind: str) -> Mentioned:
    """The files and folders that ``prompt`` mentions, at most ``room`` characters in all, pictures at most 5 MB in all.

    ``blind`` says why the model sees no pictures; empty when it does. A mention that leads outside of the project, is
    binary, is missing, or does not fit is named and not attached; a word that is no path at all stays plain text.
    """
    found = _Collected(room)
    notes: list[str] = []
    for mention in find_mentions(prompt):
        try:
            path = await _found(mention, ctx)
            if path is None:
                continue
            if path.suffix.lower() not in IMAGES:
                found.add(mention.path, await _text(mention, path, ctx, gate))
            elif blind:
                raise OpenDevError(ErrorKind.CONFIG, blind)
            else:
                found.add(mention.path, await _picture(mention, ctx, gate))
        except OpenDevError as error:
            notes.append(f"@{mention.path} is not attached: {error.info.message}")
    return Mentioned(tuple(found.blocks), tuple(notes), tuple(found.images))


async def _found(mention: Mention, ctx: ToolContext) -> Path | None:
    """Where it lies; None when the word names nothing. Raises ``OpenDevError`` with the reason for the user."""
    if not mention.means_a_file and not await asyncio.to_thread((ctx.root / mention.path).exists):
        return None
    path = await asyncio.to_thread(confine, mention.path, ctx.root, (ctx.scratch,))
    if not await asyncio.to_thread(path.exists):
        raise OpenDevError(ErrorKind.NOT_FOUND, "there is no such file.")
    return path


async def _picture(mention: Mention, ctx: ToolContext, gate: Gate) -> ImagePart:
    """The picture, told by its bytes and not by its name. Raises ``OpenDevError`` like ``_found``."""
    _judge(read_file.TOOL, read_file.Args(file_path=mention.path), gate)
    _, picture = await asyncio.to_thread(load_picture, mention.path, ctx)
    return picture


async def _text(mention: Mention, path: Path, ctx: ToolContext, gate: Gate) -> str:
    """Its content, as the tools show it. Raises ``OpenDevError`` like ``_found``."""
    is_dir = await asyncio.to_thread(path.is_dir)
    result = await (_folder(mention, ctx, gate) if is_dir else _file(mention, ctx, gate))
    if not result.ok:
        raise OpenDevError(ErrorKind.TOOL, result.error.message if result.error else result.text)
    return redact(result.text)


async def _file(mention: Mention, ctx: ToolContext, gate: Gate) -> ToolResult:
    window: dict[str, int] = {}
    if mention.first:
        last = mention.last or mention.first
        window = {"offset": mention.first, "max_lines": max(1, last - mention.first + 1)}
    args = read_file.Args.model_validate({"file_path": mention.path, **window})
    _judge(read_file.TOOL, args, gate)
    return await read_file.TOOL.run(args, ctx)


async def _folder(mention: Mention, ctx: ToolContext, gate: Gate) -> ToolResult:
    args = list_files.Args.model_validate({"path": mention.path})
    _judge(list_files.TOOL, args, gate)
    return await list_files.TOOL.run(args, ctx)


def _judge(tool: Tool[Any], args: Frozen, gate: Gate) -> None:
    """Raises ``OpenDevError`` (denied). What would be asked, the user has answered by naming the file."""
    verdict = gate.judge(tool, args)
    if verdict.decision == "deny":
        raise OpenDevError(ErrorKind.DENIED, verdict.reason)
