"""The todo tools: one list, one item in work, three ways to name an item (TSK-03..05)."""

from pathlib import Path
from typing import Any

import pytest
from opendev.core.tool import AgentMemo, Todo, TodoState, Tool, ToolResult
from opendev.tools.complete_todo import TOOL as COMPLETE
from opendev.tools.list_todos import TOOL as LIST
from opendev.tools.schema import parse_args
from opendev.tools.update_todo import TOOL as UPDATE
from opendev.tools.write_todos import TOOL as WRITE
from support.tool_context import make_context


@pytest.fixture
def memo() -> AgentMemo:
    return AgentMemo()


async def use(tool: Tool[Any], memo: AgentMemo, **args: Any) -> ToolResult:
    return await tool.run(parse_args(tool, args), make_context(Path("/tmp"), memo=memo))


@pytest.mark.req("TSK-03")
async def test_write_replaces_the_list(memo: AgentMemo) -> None:
    await use(WRITE, memo, todos=["old"])
    result = await use(
        WRITE, memo,
        todos=[{"title": "Read code", "status": "completed"}, {"title": "Fix", "description": "the bug", "status": "in_progress"}, "Test it",
               {"title": "Also", "status": "doing"}],
    )  # fmt: skip
    assert memo.todos == [
        Todo(id="1", text="Read code", state=TodoState.DONE),
        Todo(id="2", text="Fix — the bug", state=TodoState.DOING),
        Todo(id="3", text="Test it"),
        Todo(id="4", text="Also"),  # a second one in work waits
    ]
    assert result.summary == "✓ Wrote the list (4 todos, 1 done)"


@pytest.mark.req("TSK-04")
@pytest.mark.parametrize("key", ["2", 2, "#2", "todo-2", "Fix the bug", "fix-the-bug", "FIX THE BUG"])
async def test_an_item_is_named_by_number_title_or_slug(memo: AgentMemo, key: Any) -> None:
    await use(
        WRITE,
        memo,
        todos=[{"title": "Read", "status": "doing"}, {"title": "Fix the bug", "description": "soon"}],
    )
    result = await use(UPDATE, memo, id=key, status="doing")
    assert result.ok
    assert [todo.state for todo in memo.todos] == [TodoState.TODO, TodoState.DOING]


@pytest.mark.req("TSK-05")
async def test_complete_and_list_in_order(memo: AgentMemo) -> None:
    await use(WRITE, memo, todos=["a", {"title": "b", "status": "doing"}, "c"])
    await use(COMPLETE, memo, id="1", log="was easy")
    assert (await use(LIST, memo)).text == "[~] 2. b\n[ ] 3. c\n[x] 1. a (was easy)"


async def test_what_does_not_fit_is_said_with_the_list(memo: AgentMemo) -> None:
    await use(WRITE, memo, todos=["same", "same", "other"])
    for tool, key, why in ((UPDATE, "9", "There is no todo"), (COMPLETE, "same", "More than one todo fits")):
        result = await use(tool, memo, id=key)
        assert not result.ok
        assert why in result.text
        assert "3. other" in result.text
    assert not (await use(WRITE, memo, todos=[" "])).ok
    assert len(memo.todos) == 3


async def test_update_changes_only_what_is_given(memo: AgentMemo) -> None:
    await use(WRITE, memo, todos=[{"title": "a", "status": "doing"}])
    await use(UPDATE, memo, id="1", log="half")
    await use(UPDATE, memo, id="1", title="b")
    assert memo.todos == [Todo(id="1", text="b", state=TodoState.DOING, log="half")]


async def test_the_list_is_bounded() -> None:
    with pytest.raises(Exception, match="100"):
        parse_args(WRITE, {"todos": ["x"] * 101})
    assert (await use(LIST, AgentMemo())).text == "(the list is empty)"
