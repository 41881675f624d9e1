"""task_complete: the declared end, refused while todos are open, at most twice (TSK-08)."""

from pathlib import Path
from typing import Any

import pytest
from opendev.core.errors import OpenDevError
from opendev.core.tool import AgentMemo, Todo, TodoState, ToolResult
from opendev.tools.schema import parse_args
from opendev.tools.task_complete import TOOL
from support.tool_context import make_context


async def end(memo: AgentMemo, **args: Any) -> ToolResult:
    return await TOOL.run(parse_args(TOOL, args), make_context(Path("/tmp"), memo=memo))


@pytest.mark.req("TSK-08")
async def test_success_and_failure_are_recorded() -> None:
    memo = AgentMemo(todos=[Todo(id="1", text="a", state=TodoState.DONE)])
    assert (await end(memo, status="completed", summary="did it")).ok
    assert memo.completed == {"status": "success", "summary": "did it"}
    memo = AgentMemo(todos=[Todo(id="1", text="a")])
    assert (await end(memo, status="failure", summary="no access")).ok
    assert memo.completed == {"status": "failure", "summary": "no access"}


@pytest.mark.req("TSK-08")
async def test_open_todos_refuse_it_twice() -> None:
    memo = AgentMemo(todos=[Todo(id="1", text="write tests"), Todo(id="2", text="b", state=TodoState.DONE)])
    for _ in range(2):
        result = await end(memo, status="success", summary="x")
        assert not result.ok
        assert "1. write tests" in result.text
        assert memo.completed is None
    assert (await end(memo, status="success", summary="x")).ok
    assert memo.completed is not None


@pytest.mark.parametrize(
    "args", [{"status": "maybe", "summary": "x"}, {"status": "success", "summary": ""}, {"summary": "x"}]
)
def test_a_status_must_be_clear(args: dict[str, str]) -> None:
    with pytest.raises(OpenDevError):
        parse_args(TOOL, args)
