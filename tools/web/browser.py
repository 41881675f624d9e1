"""Playwright's door: the system's Chromium, headless, every connection through the guard, downloads and its own storage off."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ...core.errors import ErrorKind, OpenDevError
from .guard import Guard
from .markup import MAX_HTML, to_page
from .page import Page
from .plain import download

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright, Request, Response
    from playwright.async_api import Page as Tab

FETCH = f"{sys.executable} -m playwright install chromium"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FETCHED = ("chromium-*/chrome-linux*/chrome", "chromium-*/chrome-mac*/*.app/Contents/MacOS/*")
_QUIET_S = 3.0  # how long scripts may go on loading after the document is there
_HTML = f"() => document.documentElement.outerHTML.slice(0, {MAX_HTML})"
_UNREAD = frozenset({"image", "media", "font"})
# The proxy alone looks names up and connects: no direct sockets by WebRTC or QUIC, no look-ups ahead.
_ARGS = (
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-dev-shm-usage",
)


def chromium_path(env: Mapping[str, str]) -> str:
    """The system's Chromium on the PATH of ``env``, else the newest that ``playwright install`` fetched; empty without any."""
    found = (shutil.which(name, path=env.get("PATH", "")) for name in _NAMES)
    return next((path for path in found if path), "") or _fetched(env)


def _fetched(env: Mapping[str, str]) -> str:
    home = Path(env.get("HOME", "/nonexistent"))
    folders = (home / ".cache/ms-playwright", home / "Library/Caches/ms-playwright")
    programs = [program for folder in folders for shape in _FETCHED for program in folder.glob(shape)]
    return str(max(programs, key=lambda path: path.stat().st_mtime)) if programs else ""


def missing_part(env: Mapping[str, str]) -> str:
    """What a browser lacks here, as a sentence; empty when one can be started."""
    if find_spec("playwright") is None:
        return "Playwright is not installed; `pip install 'opendev[web]'` brings it."
    if not chromium_path(env):
        return f"There is no Chromium; install your system's package chromium, or run `{FETCH}`."
    return ""


def lacks_chromium_alone(env: Mapping[str, str]) -> bool:
    """Whether ``FETCH`` is all that is missing (WEB-02)."""
    return find_spec("playwright") is not None and not chromium_path(env)


@asynccontextmanager
async def browser_context(
    guard: Guard, env: Mapping[str, str], *, width: int = 1280, height: int = 800
) -> AsyncGenerator["BrowserContext"]:
    """A fresh browser context, without storage of earlier ones; the browser is gone on exit.

    Raises:
        OpenDevError: ``TOOL``; a part is missing or Chromium does not start.
    """
    if lacking := missing_part(env):
        raise OpenDevError(ErrorKind.TOOL, f"No browser can be used here. {lacking}")
    async with _driver() as playwright:
        try:
            browser: Browser = await playwright.chromium.launch(
                executable_path=chromium_path(env),
                args=list(_ARGS),
                chromium_sandbox=os.geteuid() != 0,  # Chromium refuses its sandbox to root
                proxy={"server": guard.url, "bypass": "<-loopback>"},
                env={**env},
            )
        except browser_error() as error:
            line = str(error).strip().partition("\n")[0]
            raise OpenDevError(
                ErrorKind.TOOL, f"Chromium ({chromium_path(env)}) does not start: {line}"
            ) from error
        try:
            yield await browser.new_context(
                accept_downloads=False,
                service_workers="block",
                viewport={"width": width, "height": height},
            )
        finally:
            await browser.close()


@asynccontextmanager
async def _driver() -> AsyncGenerator["Playwright"]:
    """Playwright's helper process. Cancelled while it starts, it is waited for all the same: else it would outlive us."""
    from playwright.async_api import async_playwright

    starting = asyncio.ensure_future(async_playwright().start())
    try:
        yield await asyncio.shield(starting)
    finally:
        await (await starting).stop()


def browser_error() -> type[Exception]:
    """Playwright's error; its time-out is one of them."""
    from playwright.async_api import Error

    return Error


async def open_page(tab: "Tab", url: str, timeout_s: float, guard: Guard) -> "Response | None":
    """Load ``url`` and let its scripts settle. Raises ``OpenDevError`` when it is refused, no page, or too slow."""
    guard.refused.clear()
    hosts: set[str] = set()

    def note(request: "Request") -> None:
        hosts.add(urlsplit(request.url).hostname or "")

    tab.on("request", note)
    try:
        response = await tab.goto(url, wait_until="domcontentloaded", timeout=timeout_s * 1000)
    except browser_error() as error:
        raise guard.refusal(url, hosts) or _failure(url, str(error), timeout_s) from error
    finally:
        tab.remove_listener("request", note)
    if response is not None and response.status == 403 and (refusal := guard.refusal(url, hosts)):
        raise refusal
    try:
        await tab.wait_for_load_state("networkidle", timeout=min(_QUIET_S, timeout_s) * 1000)
    except browser_error():
        pass  # a page that never falls silent is taken as it is
    return response


def _failure(url: str, said: str, timeout_s: float) -> OpenDevError:
    line = said.partition("\n")[0].removeprefix("Page.goto: ")
    if "Download is starting" in said or "ERR_ABORTED" in line:
        return download(url)
    if "Timeout" in line:
        return OpenDevError(ErrorKind.TIMEOUT, f"{url} took more than {timeout_s:.0f} s.")
    return OpenDevError(ErrorKind.TOOL, f"{url} cannot be opened: {line}")


class BrowserEngine:
    """An ``Engine`` on one browser context: pages after their scripts ran, without pictures and fonts."""

    def __init__(self, context: "BrowserContext", guard: Guard) -> None:
        self._context = context
        self._guard = guard

    name = "Chromium by Playwright"

    async def fetch(self, url: str, timeout_s: float) -> Page:
        """See ``Engine``."""
        tab = await self._context.new_page()
        try:
            async with asyncio.timeout(timeout_s):
                await tab.route(
                    "**/*",
                    lambda route: (
                        route.abort() if route.request.resource_type in _UNREAD else route.continue_()
                    ),
                )
                response = await open_page(tab, url, timeout_s, self._guard)
                html = str(await tab.evaluate(_HTML))
                final = tab.url
        except TimeoutError as error:
            raise OpenDevError(ErrorKind.TIMEOUT, f"{url} took more than {timeout_s:.0f} s.") from error
        except browser_error() as error:
            raise _failure(url, str(error), timeout_s) from error
        finally:
            await tab.close()
        status = response.status if response is not None else 0
        return await asyncio.to_thread(to_page, html, final, status)


async def save_shot(tab: "Tab", path: Path, *, full_page: bool) -> None:
    """A PNG of the viewport, or of the whole page down to 16,000 pixels."""
    if not full_page:
        await tab.screenshot(path=path)
        return
    size = await tab.evaluate(
        "() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    )
    if size[1] <= 16_000 and size[0] <= 16_000:
        await tab.screenshot(path=path, full_page=True)
        return
    clip = {"x": 0.0, "y": 0.0, "width": float(min(size[0], 16_000)), "height": 16_000.0}
    await tab.screenshot(path=path, full_page=True, clip=clip)  # type: ignore[arg-type]
