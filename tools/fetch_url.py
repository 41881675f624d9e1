"""fetch_url (T10): a web page, or pages from one, as markdown by a browser engine (WEB-01, WEB-02, WEB-06)."""

from typing import Literal

from pydantic import Field

from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .outside import as_data
from .summarise import FAILED
from .web.addresses import require_reachable
from .web.crawl import MAX_CHARS, MAX_DEPTH, MAX_PAGES, Crawl, Order, Plan, crawl
from .web.engines import open_engine
from .web.guard import Guard
from .web_install import offer_browser

_FAILED = 10


class Args(Frozen):
    """Arguments of fetch_url."""

    url: str = Field(min_length=1, description="http(s) URL.")
    deep_crawl: Literal["none", "bfs", "dfs", "best_first"] = Field(
        default="none", description="Follow links of the page in this order."
    )
    max_pages: int = Field(default=10, ge=1, le=MAX_PAGES, description="Pages of a deep crawl.")
    max_depth: int = Field(default=2, ge=1, le=MAX_DEPTH, description="Links away from the first page.")
    domains: tuple[str, ...] = Field(
        default=(), max_length=20, description="Domains to follow besides the page's own."
    )
    query: str = Field(default="", max_length=500, description="Words that best_first looks for.")


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    try:
        url = await require_reachable(args.url, allow_private=ctx.web.allow_private)
        deep = args.deep_crawl != "none"
        plan = Plan(
            order=Order(args.deep_crawl) if deep else Order.BREADTH,
            max_pages=args.max_pages if deep else 1,
            max_depth=args.max_depth if deep else 0,
            domains=args.domains,
            query=args.query,
        )
        await offer_browser("fetch_url", ctx)
        async with (
            Guard(allow_private=ctx.web.allow_private) as guard,
            open_engine(guard, ctx.env) as (engine, note),
        ):
            found = await crawl(engine, url, plan, lambda: guard.full or ctx.interrupt.is_set)
    except OpenDevError as error:
        return ToolResult.failure(error.info.message, error.info.hint, error.info.kind)
    how = f"Fetched by {engine.name}." + (f" {note}" if note else "")
    return _result(url, found, how)


def _result(url: str, found: Crawl, how: str) -> ToolResult:
    first = found.pages[0]
    text, cut = _joined(found)
    notes = [how]
    if cut:
        notes.append(f"Cut at {MAX_CHARS:,} characters.")
    if found.left:
        notes.append(f"{found.left} more links were not followed.")
    notes += [f"Not fetched: {address}: {why}" for address, why in found.failed[:_FAILED]]
    status = f", HTTP {first.status}" if first.status >= 400 else ""
    return ToolResult(
        ok=first.status < 400,
        text="\n".join([as_data(first.url, text), *(f"[{note}]" for note in notes)]),
        summary=f"{'✓' if first.status < 400 else FAILED} Fetched {url[:100]} ({len(found.pages)} pages, {len(text):,} chars{status})",
        data={
            "url": first.url,
            "status": first.status,
            "pages": [page.url for page in found.pages],
            "failed": [address for address, _why in found.failed],
        },
        error=None if first.status < 400 else _bad_status(first.url, first.status),
    )


def _bad_status(url: str, status: int) -> ErrorInfo:
    kind = ErrorKind.NOT_FOUND if status in (404, 410) else ErrorKind.TOOL
    return ErrorInfo(kind=kind, message=f"{url} answered HTTP {status}.")


def _joined(found: Crawl) -> tuple[str, bool]:
    """The pages one after the other, at most 50,000 characters, and whether something was cut."""
    parts: list[str] = []
    for page in found.pages:
        head = (
            f"# {page.title or page.url}\n({page.url}{f', HTTP {page.status}' if page.status >= 400 else ''})"
        )
        parts.append(f"{head}\n\n{page.markdown or '(the page shows no text)'}")
    text = "\n\n".join(parts)
    return text[:MAX_CHARS], len(text) > MAX_CHARS


TOOL = Tool(
    name="fetch_url",
    category="Web",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ, Effect.NET}),
)
