"""web_search (T11): up to ten results of a search engine, filtered by domain (WEB-03)."""

import asyncio
from urllib.parse import urlsplit

from pydantic import Field

from ..core.errors import OpenDevError
from ..core.model import Frozen
from ..core.tool import Effect, Tool, ToolContext, ToolResult
from .outside import as_data
from .web.crawl import in_domains
from .web.search_engine import Hit, search_web

MAX_RESULTS = 10
_ASKED = 30  # of the engine, so that filters leave enough
_SNIPPET = 500


class Args(Frozen):
    """Arguments of web_search."""

    query: str = Field(min_length=1, max_length=500, description="What to search for.")
    max_results: int = Field(default=MAX_RESULTS, ge=1, le=MAX_RESULTS)
    allowed_domains: tuple[str, ...] = Field(
        default=(), max_length=10, description="Only results from these domains."
    )
    blocked_domains: tuple[str, ...] = Field(
        default=(), max_length=50, description="No results from these domains."
    )


async def _run(args: Args, ctx: ToolContext) -> ToolResult:
    allowed, blocked = _plain(args.allowed_domains), _plain(args.blocked_domains)
    query = args.query
    if allowed:
        query += f" ({' OR '.join(f'site:{domain}' for domain in allowed)})"
    provider = ctx.web.search_provider
    try:
        found = await asyncio.to_thread(search_web, query, provider, _ASKED if blocked else MAX_RESULTS)
    except OpenDevError as error:
        return ToolResult.failure(error.info.message, error.info.hint, error.info.kind)
    hits = [hit for hit in found if _passes(hit, allowed, blocked)][: args.max_results]
    if not hits:
        return ToolResult(
            ok=True,
            text=f"No results at {provider} for {args.query!r} with these domains.",
            summary="✓ Searched the web (no results)",
            data={"results": []},
        )
    lines = [f"{n}. {hit.title}\n   {hit.url}\n   {hit.snippet[:_SNIPPET]}" for n, hit in enumerate(hits, 1)]
    return ToolResult(
        ok=True,
        text=as_data(f"search at {provider}", "\n".join(lines)),
        summary=f"✓ Searched the web for {args.query[:100]!r} ({len(hits)} results)",
        data={"results": [{"title": hit.title, "url": hit.url} for hit in hits]},
    )


def _plain(domains: tuple[str, ...]) -> tuple[str, ...]:
    """Domains without scheme, path and ``www.``, in lower case."""
    hosts = [domain.lower().partition("//")[2] or domain.lower() for domain in domains]
    return tuple(host.partition("/")[0].removeprefix("www.").removeprefix("*.") for host in hosts if host)


def _passes(hit: Hit, allowed: tuple[str, ...], blocked: tuple[str, ...]) -> bool:
    host = (urlsplit(hit.url).hostname or "").lower()
    return bool(host) and (not allowed or in_domains(host, allowed)) and not in_domains(host, blocked)


TOOL = Tool(
    name="web_search",
    category="Web",
    args=Args,
    run=_run,
    effects=frozenset({Effect.READ, Effect.NET}),
    aliases={"q": "query", "num_results": "max_results"},
)
