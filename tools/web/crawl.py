"""Several pages from one: breadth first, depth first, or the most promising link first, with caps on everything (WEB-02)."""

import heapq
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from urllib.parse import urldefrag, urlsplit

from ...core.errors import OpenDevError
from .page import PAGE_S, Engine, Link, Page

MAX_PAGES = 50
MAX_DEPTH = 5
MAX_CHARS = 50_000  # of markdown, of all pages together
_WAITING = 1_000  # links in the queue


class Order(StrEnum):
    """In which order links are followed."""

    BREADTH = "bfs"
    DEPTH = "dfs"
    BEST = "best_first"


@dataclass(frozen=True, slots=True)
class Plan:
    """How far a crawl goes. ``domains`` besides the first page's own host; ``query`` ranks links for best-first."""

    order: Order
    max_pages: int
    max_depth: int
    domains: tuple[str, ...] = ()
    query: str = ""


@dataclass(slots=True)
class Crawl:
    """What a crawl found. ``failed``: address and reason; ``left``: links that a cap kept from being followed."""

    pages: list[Page] = field(default_factory=list[Page])
    failed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    left: int = 0


async def crawl(engine: Engine, start: str, plan: Plan, stop: Callable[[], bool]) -> Crawl:
    """Follow links from ``start`` until a cap is reached or ``stop`` says so (the fetch's bytes are used up, an interrupt).

    Raises ``OpenDevError`` when the first page cannot be fetched; later failures are part of the result.
    """
    found = Crawl()
    queue = _Frontier(plan.order)
    first = await engine.fetch(start, PAGE_S)
    hosts = {_host(start), _host(first.url), *(domain.lower() for domain in plan.domains)}
    seen = {_key(start), _key(first.url)}
    chars = _add(found, first)
    _queue_links(first, 1, plan, hosts, seen, queue)
    while queue and len(found.pages) < plan.max_pages and chars < MAX_CHARS and not stop():
        url, depth = queue.pop()
        try:
            page = await engine.fetch(url, PAGE_S)
        except OpenDevError as error:
            found.failed.append((url, error.info.message))
            if len(found.failed) >= MAX_PAGES:
                break
            continue
        if _key(page.url) in seen - {_key(url)} or not _allowed(page.url, hosts):
            continue  # a redirect to a page that is known, or out of the allowed domains
        seen.add(_key(page.url))
        chars += _add(found, page)
        _queue_links(page, depth + 1, plan, hosts, seen, queue)
    found.left = len(queue)
    return found


def in_domains(host: str, domains: tuple[str, ...] | set[str]) -> bool:
    """Whether ``host`` is one of ``domains`` or below one."""
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


class _Frontier:
    """Links that wait, at most 1,000; later ones are dropped."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._line: deque[tuple[str, int]] = deque()
        self._heap: list[tuple[float, int, str, int]] = []
        self._number = count()

    def __len__(self) -> int:
        return len(self._line) + len(self._heap)

    def push(self, url: str, depth: int, score: float) -> None:
        if len(self) >= _WAITING:
            return
        if self._order is Order.BEST:
            heapq.heappush(self._heap, (-score, next(self._number), url, depth))
        else:
            self._line.append((url, depth))

    def pop(self) -> tuple[str, int]:
        if self._order is Order.BEST:
            _score, _number, url, depth = heapq.heappop(self._heap)
            return url, depth
        return self._line.pop() if self._order is Order.DEPTH else self._line.popleft()


def _queue_links(
    page: Page, depth: int, plan: Plan, hosts: set[str], seen: set[str], queue: _Frontier
) -> None:
    if depth > plan.max_depth:
        return
    links = (
        page.links if plan.order is not Order.DEPTH else page.links[::-1]
    )  # a stack: the first link comes out first
    for link in links:
        if _key(link.url) in seen or not _allowed(link.url, hosts):
            continue
        seen.add(_key(link.url))
        queue.push(link.url, depth, relevance(link, plan.query) - depth / 100)


def relevance(link: Link, query: str) -> float:
    """The share of the query's words that stand in the link's words or address."""
    words = set(re.findall(r"\w+", query.lower()))
    text = f"{link.text} {link.url}".lower()
    return sum(word in text for word in words) / len(words) if words else 0.0


def _add(found: Crawl, page: Page) -> int:
    found.pages.append(page)
    return len(page.markdown)


def _allowed(url: str, hosts: set[str]) -> bool:
    return in_domains(_host(url), hosts)


def _host(url: str) -> str:
    return (urlsplit(url).hostname or "").lower()


def _key(url: str) -> str:
    return urldefrag(url).url.rstrip("/")
