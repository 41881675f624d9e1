"""capture_screenshot (T20): the desktop, or a region of it, as a PNG in the scratch folder (VIS-01)."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .web.output import new_shot

_TIMEOUT_S = 20.0
_MAX_PIXELS = 100_000_000
Side = Annotated[int, Field(ge=1, le=32_768)]


class Region(Frozen):
    """A part of the desktop in pixels; x and y count from the top left corner of all screens."""

    x: int = Field(ge=-32_768, le=32_768)
    y: int = Field(ge=-32_768, le=32_768)
    width: Side
    height: Side


class Args(Frozen):
    """Arguments of capture_screenshot."""

    region: Region | None = Field(default=None, description="Part of the desktop; default: all screens.")


def _capture(args: Args, ctx: ToolContext) -> ToolResult:
    from mss import tools
    from mss.base import MSS
    from mss.exception import ScreenShotError

    camera = cast("Any", MSS)  # its types are another platform's
    display = ctx.env.get("DISPLAY", "")
    if sys.platform.startswith("linux") and not display:
        raise _no_display(
            "Wayland alone is not supported" if ctx.env.get("WAYLAND_DISPLAY") else "DISPLAY is not set"
        )
    try:
        with camera(display=display) if display else camera() as screen:
            whole = screen.monitors[0]
            area = whole if args.region is None else _clipped(args.region, whole)
            if area["width"] * area["height"] > _MAX_PIXELS:
                raise OpenDevError(
                    ErrorKind.TOOL, "The desktop is too large for one picture.", "Give a region."
                )
            picture = screen.grab(area)
            data = tools.to_png(picture.rgb, picture.size) or b""
    except ScreenShotError as error:
        raise _no_display(" ".join(str(error).split())[:200]) from error
    path: Path = new_shot(ctx.scratch, "screen", ".png")
    path.write_bytes(data)
    size = f"{picture.size.width}x{picture.size.height}"
    return ToolResult(
        ok=True,
        text=f"Saved {path} ({size}). Look at it with analyze_image.",
        summary=f"✓ Captured the screen ({size})",
        data={"file": str(path), "width": picture.size.width, "height": picture.size.height},
    )


def _clipped(region: Region, whole: dict[str, int]) -> dict[str, int]:
    """The part of ``region`` that is on a screen. Raises ``OpenDevError`` when none of it is."""
    left, top = max(region.x, whole["left"]), max(region.y, whole["top"])
    right = min(region.x + region.width, whole["left"] + whole["width"])
    bottom = min(region.y + region.height, whole["top"] + whole["height"])
    if right <= left or bottom <= top:
        raise OpenDevError(
            ErrorKind.TOOL,
            f"The region is outside of the desktop, which is {whole['width']}x{whole['height']} at"
            f" ({whole['left']}, {whole['top']}).",
        )
    return {"left": left, "top": top, "width": right - left, "height": bottom - top}


def _no_display(why: str) -> OpenDevError:
    return OpenDevError(
        ErrorKind.TOOL,
        f"There is no display to take a picture of ({why}).",
        "For a web page use capture_web_screenshot, which needs none.",
    )


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            return await asyncio.to_thread(_capture, args, ctx)
    except TimeoutError:
        return ToolResult.failure("The display did not answer.", kind=ErrorKind.TIMEOUT)
    except OpenDevError as error:
        return ToolResult.failure(error.info.message, error.info.hint, error.info.kind)


TOOL = Tool(
    name="capture_screenshot",
    category="Vision",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ}),
)
