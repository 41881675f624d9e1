"""open_browser (T13): a URL or a local file in the user's own browser, by the platform's command (WEB-05)."""

import asyncio
import shutil
import sys
from collections.abc import Mapping

from pydantic import Field

from ..core.errors import ErrorKind, OpenDevError
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from ..policy.paths import confine
from .web.addresses import parse_url

_ANSWER_S = 3.0  # an opener that still runs after that has become the browser


class Args(Frozen):
    """Arguments of open_browser."""

    url: str = Field(min_length=1, description="http(s) URL, or path of a file in the project.")


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    try:
        target = await asyncio.to_thread(_target, args.url, ctx)
        argv = opener(sys.platform, ctx.env)
        code = await _start([*argv, target], ctx)
    except OpenDevError as error:
        return ToolResult.failure(error.info.message, error.info.hint, error.info.kind)
    if code:
        return ToolResult.failure(f"{argv[0]} could not open {target} (exit code {code}).")
    return ToolResult(
        ok=True, text=f"Opened {target} in the user's browser.", summary=f"✓ Opened {target[:150]}"
    )


def _target(url: str, ctx: ToolContext) -> str:
    """The URL to open; a path becomes ``file://``. Raises ``OpenDevError``."""
    if "://" in url and not url.startswith("file://"):
        return parse_url(url).geturl()
    path = confine(url.removeprefix("file://"), ctx.root, ctx.own_places)
    if not path.exists():
        raise OpenDevError(ErrorKind.NOT_FOUND, f"{url} does not exist.")
    return path.as_uri()


def opener(platform: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """The command that opens an address. Raises ``OpenDevError`` (tool) on a machine without one or without a display."""
    if platform == "darwin":
        return ("/usr/bin/open",)
    if platform == "win32":
        return ("rundll32", "url.dll,FileProtocolHandler")
    if not (env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")):
        raise OpenDevError(
            ErrorKind.TOOL,
            "There is no display on this machine, so no browser can be opened.",
            "Use fetch_url or capture_web_screenshot, or tell the user the address.",
        )
    found = shutil.which("xdg-open", path=env.get("PATH", ""))
    if found is None:
        raise OpenDevError(
            ErrorKind.TOOL, "xdg-open is not installed (package xdg-utils); nothing was opened."
        )
    return (found,)


async def _start(argv: list[str], ctx: ToolContext) -> int | None:
    """Start it apart from us, its output thrown away; the exit code, or None when it goes on running."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=ctx.root,
            env=dict(ctx.env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise OpenDevError(ErrorKind.TOOL, f"{argv[0]} cannot be started ({error}).") from error
    try:
        async with asyncio.timeout(_ANSWER_S):
            return await process.wait()
    except TimeoutError:
        return None


TOOL = Tool(
    name="open_browser",
    category="Web",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ, Effect.NET}),
    aliases={"path": "url", "file_path": "url"},
)
