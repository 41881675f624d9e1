"""What an engine makes of one address, and what an engine is."""

from dataclasses import dataclass
from typing import Protocol

PAGE_S = 30.0  # WEB-01: seconds for one page


@dataclass(frozen=True, slots=True)
class Link:
    """Where a page leads: an absolute http(s) address without fragment, and the words of the link."""

    url: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """One page as markdown. ``url`` is where redirects ended, ``status`` the HTTP status (0 = unknown)."""

    url: str
    status: int
    title: str
    markdown: str
    links: tuple[Link, ...] = ()


class Engine(Protocol):
    """Fetches pages. ``name`` is said in the result."""

    @property
    def name(self) -> str: ...

    async def fetch(self, url: str, timeout_s: float) -> Page:
        """Raises ``OpenDevError``: refused, not found, too slow, or no page (a download)."""
        ...
