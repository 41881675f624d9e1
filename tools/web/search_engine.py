"""The door of ddgs: a search at DuckDuckGo, or at another engine that the setting names (WEB-03)."""

from dataclasses import dataclass
from importlib.util import find_spec

from ...core.errors import ErrorKind, OpenDevError

TIMEOUT_S = 15


@dataclass(frozen=True, slots=True)
class Hit:
    """One result."""

    title: str
    url: str
    snippet: str


def search_web(query: str, provider: str, count: int) -> tuple[Hit, ...]:
    """At most ``count`` hits; none is an empty tuple. Blocking.

    Raises:
        OpenDevError: ``TOOL`` when ddgs is missing, does not know ``provider`` or gets no answer; ``TIMEOUT``.
    """
    if find_spec("ddgs") is None:
        raise OpenDevError(
            ErrorKind.TOOL, "Web search is not installed.", "`pip install 'opendev[web]'` brings it."
        )
    from ddgs.ddgs import DDGS
    from ddgs.engines import ENGINES
    from ddgs.exceptions import DDGSException, TimeoutException

    if provider not in ENGINES["text"]:  # the library would take any other engine, at random
        known = ", ".join(sorted(ENGINES["text"]))
        raise OpenDevError(
            ErrorKind.CONFIG,
            f"The search provider {provider!r} is not known.",
            f"The setting web.search_provider may be: {known}.",
        )
    try:
        rows = DDGS(timeout=TIMEOUT_S).text(query, backend=provider, max_results=count)
    except TimeoutException as error:
        raise OpenDevError(
            ErrorKind.TIMEOUT, f"{provider} did not answer within {TIMEOUT_S} s.", "Try again later."
        ) from error
    except DDGSException as error:
        if "No results" in str(error):
            return ()
        raise OpenDevError(
            ErrorKind.TOOL,
            f"The search at {provider} failed: {str(error)[:200]}.",
            "The machine may be offline, or the provider refuses it for now.",
        ) from error
    return tuple(Hit(str(row["title"]), str(row["href"]), str(row["body"])) for row in rows)
