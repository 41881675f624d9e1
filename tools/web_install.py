"""The offer to fetch Chromium at the first use of a browser, asked once; without a yes pages are read by plain HTTP (WEB-02)."""

import contextlib

from ..core.errors import ErrorKind, OpenDevError
from ..core.tool import ToolContext
from .installs import install_hint, offer
from .web.browser import FETCH, lacks_chromium_alone


async def offer_browser(tool: str, ctx: ToolContext) -> None:
    """Ask, where Chromium alone is missing; whoever goes on then looks for it again. A failed download is no failure of the call."""
    if lacks_chromium_alone(ctx.env):
        missing = OpenDevError(
            ErrorKind.NOT_FOUND, "There is no Chromium on this machine.", install_hint(FETCH)
        )
        with contextlib.suppress(OpenDevError):
            await offer(tool, missing, ctx)
