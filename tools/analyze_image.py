"""analyze_image (T21): what the vision model sees in a picture (VIS-02, MOD-02)."""

import asyncio
import base64

from pydantic import Field

from ..core.chat import ImagePart, ImageType, ModelFailed
from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .files import place, read_bytes
from .outside import as_data

MAX_IMAGE = 5_000_000  # bytes; what every provider with vision takes
_KINDS: tuple[tuple[bytes, ImageType], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class Args(Frozen):
    """Arguments of analyze_image."""

    file_path: str = Field(min_length=1, description="PNG, JPEG, GIF or WebP file.")
    question: str = Field(
        default="Describe what this picture shows, with all text in it.",
        min_length=1,
        max_length=4_000,
        description="What to find out.",
    )


def load_picture(file_path: str, ctx: ToolContext) -> tuple[str, ImagePart]:
    """The name and the picture, told by its first bytes. Blocking; raises ``OpenDevError`` when it is none or too large."""
    found = place(file_path, ctx)
    data = read_bytes(found.path, found.name)
    kind: ImageType | None = next((kind for magic, kind in _KINDS if data.startswith(magic)), None)
    if kind is None and data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "image/webp"
    if kind is None:
        raise OpenDevError(
            ErrorKind.TOOL, f"{found.name} is no PNG, JPEG, GIF or WebP picture.", "Convert it to PNG first."
        )
    if len(data) > MAX_IMAGE:
        raise OpenDevError(
            ErrorKind.TOOL,
            f"{found.name} is too large: {len(data):,} bytes, the limit is {MAX_IMAGE:,}.",
            "Make it smaller, or capture a region.",
        )
    return found.name, ImagePart(media_type=kind, data=base64.b64encode(data).decode("ascii"))


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    try:
        if ctx.vision is None:
            raise OpenDevError(
                ErrorKind.CONFIG,
                "No vision model can be asked here.",
                "Configure a model for the role vision.",
            )
        name, picture = await asyncio.to_thread(load_picture, args.file_path, ctx)
        reply = await ctx.vision(args.question, picture)
    except OpenDevError as error:
        return ToolResult.failure(error.info.message, error.info.hint, error.info.kind)
    if isinstance(reply, ModelFailed):
        return ToolResult.failure(
            f"The vision model gave no answer about {name}: {reply.error.message}",
            reply.error.hint,
            reply.error.kind,
        )
    said = reply.message.content.strip()
    if not said:
        return ToolResult.failure(f"The vision model ({reply.model}) said nothing about {name}.")
    return ToolResult(
        ok=True,
        text=as_data(f"{reply.model} on the picture {name}", said),
        summary=f"✓ Looked at {name}: {said[:120]}",
        data={"model": reply.model},
    )


TOOL = Tool(
    name="analyze_image",
    category="Vision",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ, Effect.NET}),
    aliases={"path": "file_path", "image_path": "file_path", "prompt": "question"},
)
