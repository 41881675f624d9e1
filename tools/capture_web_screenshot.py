"""capture_web_screenshot (T12): a page as a picture, and as a paged PDF if asked, in the scratch folder (WEB-04)."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .web.addresses import require_reachable
from .web.browser import browser_context, browser_error, open_page, save_shot
from .web.guard import Guard
from .web.output import new_shot
from .web_install import offer_browser


class Args(Frozen):
    """Arguments of capture_web_screenshot; sizes in CSS pixels."""

    url: str = Field(min_length=1, description="http(s) URL.")
    full_page: bool = Field(default=True, description="The whole page, not only the viewport.")
    width: int = Field(default=1920, ge=200, le=4096)
    height: int = Field(default=1080, ge=200, le=4096)
    pdf: bool = Field(default=False, description="Save a PDF with pages too.")
    timeout_s: float = Field(default=60.0, gt=0, le=180)


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    paths: list[Path] = []
    try:
        url = await require_reachable(args.url, allow_private=ctx.web.allow_private)
        await offer_browser("capture_web_screenshot", ctx)
        stem = f"web-{urlsplit(url).hostname}"
        for suffix in (".png", ".pdf") if args.pdf else (".png",):
            paths.append(await asyncio.to_thread(new_shot, ctx.scratch, stem, suffix))
        async with asyncio.timeout(args.timeout_s):
            status = await _capture(url, args, ctx, paths)
    except TimeoutError:
        await asyncio.to_thread(_drop, paths)
        return ToolResult.failure(
            f"{args.url} took more than {args.timeout_s:.0f} s.",
            "Raise timeout_s (at most 180).",
            ErrorKind.TIMEOUT,
        )
    except OpenDevError as error:
        await asyncio.to_thread(_drop, paths)
        return ToolResult.failure(error.info.message, error.info.hint, error.info.kind)
    except BaseException:  # cancelled: no empty file is left
        _drop(paths)
        raise
    names = ", ".join(map(str, paths))
    note = f" The page answered HTTP {status}." if status >= 400 else ""
    return ToolResult(
        ok=True,
        text=f"Saved {names}.{note}",
        summary=f"✓ Captured {url[:100]}",
        data={"files": [str(path) for path in paths], "status": status},
    )


async def _capture(url: str, args: Args, ctx: ToolContext, paths: list[Path]) -> int:
    """Fill the files; the page's HTTP status."""
    async with (
        Guard(allow_private=ctx.web.allow_private) as guard,
        browser_context(guard, ctx.env, width=args.width, height=args.height) as context,
    ):
        tab = await context.new_page()
        response = await open_page(tab, url, args.timeout_s, guard)
        try:
            await save_shot(tab, paths[0], full_page=args.full_page)
            if args.pdf:
                await tab.pdf(path=paths[1], format="A4", print_background=True)
        except browser_error() as error:
            line = str(error).partition("\n")[0]
            raise OpenDevError(ErrorKind.TOOL, f"{url} cannot be captured: {line}") from error
        return response.status if response is not None else 0


def _drop(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


TOOL = Tool(
    name="capture_web_screenshot",
    category="Web",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ, Effect.NET}),
    aliases={"timeout": "timeout_s"},
)
