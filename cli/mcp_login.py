"""`opendev mcp login`: a person logs in to a server in the browser; what comes of it is kept for later runs (X12)."""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Mapping

import typer

from ..core.errors import ErrorKind, OpenDevError
from ..tools.mcp.client import connect
from ..tools.mcp.config import McpServer
from ..tools.mcp.loopback import Loopback, loopback
from ..tools.open_browser import opener

LOGIN_S = 300.0  # for the person
CONNECT_S = 15.0  # and for the opener of the browser


async def log_in(server: McpServer, env: Mapping[str, str], bring: Callable[[str], Awaitable[None]]) -> str:
    """Log in to ``server``; the sentence about it. ``bring`` takes the address to the person. Raises ``OpenDevError``."""
    async with loopback(server.oauth.port, bring) as login:
        try:
            async with asyncio.timeout(LOGIN_S):
                count = await _tools(server, env, login)
        except TimeoutError as error:
            raise OpenDevError(
                ErrorKind.TIMEOUT, f"The login to {server.name} was not finished within {LOGIN_S:.0f} s."
            ) from error
        if not login.shown:
            return f"{server.name} let us in without a new login: {count} tools."
        return f"Logged in to {server.name}: {count} tools."


async def _tools(server: McpServer, env: Mapping[str, str], login: Loopback) -> int:
    def nothing() -> None:
        """News of a connection that is only for the login."""

    async with connect(server, env, on_changed=nothing, on_closed=nothing, login=login) as session:
        return len(await session.tools())


def browser(env: Mapping[str, str]) -> Callable[[str], Awaitable[None]]:
    """Says the address, and opens it where there is a browser to open."""

    async def bring(url: str) -> None:
        typer.echo(f"Log in here (this command waits {LOGIN_S:.0f} s):\n{url}", err=True)
        with contextlib.suppress(OpenDevError, OSError, TimeoutError):
            quiet = asyncio.subprocess.DEVNULL
            process = await asyncio.create_subprocess_exec(
                *opener(sys.platform, env), url,
                env=dict(env), stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True,
            )  # fmt: skip
            async with asyncio.timeout(CONNECT_S):
                await process.wait()

    return bring
