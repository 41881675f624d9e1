"""web_search through the real library, against a stand-in of the engine's page on loopback (WEB-03)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opendev.core.errors import ErrorKind
from opendev.core.tool import ToolResult, WebRules
from opendev.tools.web_search import TOOL, Args
from support.tool_context import make_context
from support.web_pages import WebPages

duckduckgo = pytest.importorskip("ddgs.engines.duckduckgo", reason="the extra opendev[web] is not installed")


def _hit(n: int, host: str) -> str:
    url = f"https://{host}/{n}"
    return f"<div class='result__body'><h2>Title {n} turtles</h2><a href='{url}'>Snippet {n} on turtles</a></div>"


@pytest.fixture(scope="module")
def site() -> Iterator[WebPages]:
    with WebPages() as pages:
        yield pages


@pytest.fixture(autouse=True)
def _stub(site: WebPages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckduckgo.Duckduckgo, "search_url", f"{site.url}/html/")
    site.answer = "<html><body>" + "".join(_hit(n, f"h{n % 3}.example") for n in range(14)) + "</body></html>"
    site.posted.clear()


async def search(tmp_path: Path, provider: str = "duckduckgo", **args: Any) -> ToolResult:
    ctx = make_context(tmp_path, web=WebRules(search_provider=provider))
    return await TOOL.run(Args.model_validate({"query": "turtles", **args}), ctx)


@pytest.mark.req("WEB-03", "SAF-07")
async def test_ten_results_with_title_address_and_snippet(tmp_path: Path, site: WebPages) -> None:
    result = await search(tmp_path)
    assert result.data is not None
    assert len(result.data["results"]) == 10
    assert "Title 3 turtles\n   https://h0.example/3\n   Snippet 3 on turtles" in result.text
    assert result.text.startswith('<outside source="search at duckduckgo">')
    assert site.posted[0]["q"] == "turtles"
    assert len((await search(tmp_path, max_results=2)).data["results"]) == 2  # type: ignore[index]
    assert TOOL.read_only


@pytest.mark.req("WEB-03")
async def test_domain_filters(tmp_path: Path, site: WebPages) -> None:
    only = await search(tmp_path, allowed_domains=("https://www.H1.example/x",))
    assert only.data is not None
    assert only.data["results"]
    assert all("//h1.example/" in row["url"] for row in only.data["results"])
    assert site.posted[0]["q"] == "turtles (site:h1.example)"
    without = await search(tmp_path, blocked_domains=("h1.example", "h2.example"))
    assert without.data is not None
    assert without.data["results"]
    assert all("//h0.example/" in row["url"] for row in without.data["results"])
    nothing = await search(tmp_path, allowed_domains=("none.example",))
    assert nothing.ok
    assert "No results" in nothing.text


async def test_no_results_are_no_error(tmp_path: Path, site: WebPages) -> None:
    site.answer = "<html><body></body></html>"
    result = await search(tmp_path)
    assert result.ok
    assert result.data == {"results": []}


@pytest.mark.req("WEB-03")
async def test_offline_and_an_unknown_provider_are_clear_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckduckgo.Duckduckgo, "search_url", "http://127.0.0.1:9/")
    offline = await search(tmp_path)
    assert not offline.ok
    assert "The search at duckduckgo failed" in offline.text
    unknown = await search(tmp_path, provider="altavista")
    assert unknown.error is not None
    assert unknown.error.kind is ErrorKind.CONFIG
    assert "web.search_provider" in unknown.text
    assert "duckduckgo" in unknown.text


async def test_a_machine_without_the_library_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: dict[str, None] = {}
    monkeypatch.setattr("opendev.tools.web.search_engine.find_spec", nothing.get)
    assert "opendev[web]" in (await search(tmp_path)).text
