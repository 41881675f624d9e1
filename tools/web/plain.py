"""Pages by plain HTTP, where no browser can be used: what a script would draw is missing (WEB-06)."""

import asyncio
from typing import TYPE_CHECKING

from ...core.errors import ErrorKind, OpenDevError
from .guard import Guard
from .markup import MAX_HTML, to_page
from .page import Page

if TYPE_CHECKING:
    import httpx

_REDIRECTS = 5
_AGENT = "Mozilla/5.0 (compatible; OpenDev)"
_TEXTS = ("application/json", "application/xml", "application/javascript", "application/x-yaml")


class PlainEngine:
    """An ``Engine`` that reads what the server sends; every request goes through the guard, redirects too."""

    name = "plain HTTP (no browser: what scripts draw is missing)"

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def fetch(self, url: str, timeout_s: float) -> Page:
        """See ``Engine``."""
        import httpx

        self._guard.refused.clear()
        try:
            async with (
                asyncio.timeout(timeout_s),
                httpx.AsyncClient(
                    proxy=self._guard.url,
                    trust_env=False,
                    follow_redirects=True,
                    max_redirects=_REDIRECTS,
                    timeout=timeout_s,
                    headers={"User-Agent": _AGENT, "Accept": "text/html,text/*;q=0.9,*/*;q=0.1"},
                ) as client,
                client.stream("GET", url) as response,
            ):
                _require_text(url, response)
                body = await _body(response)
                encoding = response.encoding or "utf-8"
        except (TimeoutError, httpx.TimeoutException) as error:
            raise OpenDevError(ErrorKind.TIMEOUT, f"{url} took more than {timeout_s:.0f} s.") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            why = str(error) or type(error).__name__
            raise self._guard.refusal(url) or OpenDevError(
                ErrorKind.TOOL, f"{url} cannot be fetched: {why}."
            ) from error
        if refusal := self._guard.refusal(url):
            raise refusal
        final, status = str(response.url), response.status_code
        if "html" in response.headers.get("content-type", "html"):
            html = body if response.charset_encoding is None else body.decode(encoding, "replace")
            return await asyncio.to_thread(to_page, html, final, status)
        return Page(final, status, "", body.decode(encoding, "replace"))


async def _body(response: "httpx.Response") -> bytes:
    kept = bytearray()
    async for chunk in response.aiter_bytes(65_536):
        kept += chunk
        if len(kept) >= MAX_HTML:
            break
    return bytes(kept[:MAX_HTML])


def _require_text(url: str, response: "httpx.Response") -> None:
    kind = response.headers.get("content-type", "text/html").partition(";")[0].strip().lower()
    attached = response.headers.get("content-disposition", "").lower().startswith("attachment")
    text = kind.startswith("text/") or kind.endswith(("+json", "+xml")) or kind in _TEXTS
    if attached or not text:
        raise download(url, kind)


def download(url: str, kind: str = "") -> OpenDevError:
    """The refusal of a download (WEB-01)."""
    what = f" ({kind})" if kind else ""
    return OpenDevError(
        ErrorKind.TOOL,
        f"{url} is a download{what}, not a page; downloads are blocked.",
        "Fetch a page instead.",
    )
