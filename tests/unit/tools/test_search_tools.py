"""search_tools: scores, three levels of detail, activation (T29, MCP-03..06, T-12)."""

from pathlib import Path

import pytest
from opendev.core.chat import ToolSchema
from opendev.tools.search_tools import LIMITS, TOOL, Args, best, score
from support.tool_context import make_context


def schema(name: str, description: str = "") -> ToolSchema:
    return ToolSchema(
        name=name, description=description, parameters={"type": "object", "properties": {"q": {}}}
    )


class Shelf:
    def __init__(self, *tools: ToolSchema, notes: tuple[str, ...] = ()) -> None:
        self.tools, self.notes = tools, notes

    def deferred(self) -> tuple[ToolSchema, ...]:
        return self.tools

    async def settled(self, wait_s: float) -> tuple[str, ...]:
        return self.notes


ISSUE = schema("mcp__github__create_issue", "Open a new ticket in a repository")
CLOSE = schema("mcp__github__close_ticket", "Close an issue of a repository")
QUERY = schema("mcp__db__query", "Run SQL")
SHELF = Shelf(ISSUE, CLOSE, QUERY)


@pytest.mark.req("MCP-03", "MCP-04")
def test_two_points_for_a_name_one_for_a_description() -> None:
    assert score(ISSUE, ["issue", "ticket", "of"]) == 3
    assert score(CLOSE, ["issue"]) == 1
    assert [tool.name for tool in best(SHELF.tools, "issue")] == [ISSUE.name, CLOSE.name]
    assert best(SHELF.tools, "weather") == []


@pytest.mark.req("MCP-03")
def test_a_short_word_finds_a_server_of_that_name() -> None:
    assert [tool.name for tool in best(SHELF.tools, "db")] == [QUERY.name]
    assert best(SHELF.tools, "in") == []  # of a description it says nothing


@pytest.mark.req("MCP-05", "MCP-06")
@pytest.mark.parametrize(
    ("detail", "active"), [("names", set[str]()), ("brief", set[str]()), ("full", {ISSUE.name, CLOSE.name})]
)
async def test_only_full_activates(tmp_path: Path, detail: str, active: set[str]) -> None:
    ctx = make_context(tmp_path, directory=SHELF)
    result = await TOOL.run(Args.model_validate({"query": "issue", "detail": detail}), ctx)
    assert result.ok
    assert ctx.memo.activated == active
    assert ISSUE.name in result.text
    assert (ISSUE.description in result.text) == (detail != "names")
    assert ('"properties"' in result.text) == (detail == "full")
    assert "<outside" in result.text


async def test_what_comes_back_is_bounded_and_says_so(tmp_path: Path) -> None:
    shelf = Shelf(*(schema(f"mcp__s__tool_{n}") for n in range(200)))
    ctx = make_context(tmp_path, directory=shelf)
    result = await TOOL.run(Args(query="tool", detail="full"), ctx)
    assert len(ctx.memo.activated) == LIMITS["full"]
    assert "195 more match" in result.text


async def test_nothing_found_names_the_servers_and_what_is_wrong_with_others(tmp_path: Path) -> None:
    ctx = make_context(tmp_path, directory=Shelf(*SHELF.tools, notes=("The MCP server x is failed.",)))
    result = await TOOL.run(Args(query="weather"), ctx)
    assert "db, github" in result.text
    assert "The MCP server x is failed." in result.text
    empty = await TOOL.run(Args(query="weather"), make_context(tmp_path))
    assert empty.text == "There are no further tools."
