"""Deferred schemas: off, external, all (REG-02, REG-08, C-12)."""

from pathlib import Path

import pytest
from opendev.core.chat import canonical
from opendev.core.errors import ErrorInfo
from opendev.core.model import Frozen
from opendev.core.tool import Effect, Tool, ToolContext, ToolResult
from opendev.tools.catalog import BUILTIN
from opendev.tools.registry import CORE, Deferral, ToolRegistry
from support.agents import Bench
from support.scripted_model import call, calls, says


class Args(Frozen):
    x: str = ""


async def _run(_args: Args, _ctx: ToolContext) -> ToolResult:
    return ToolResult(ok=True, text="did")


def foreign(name: str) -> Tool[Args]:
    return Tool(
        name=name,
        category="mcp",
        args=Args,
        run=_run,
        effects=frozenset({Effect.READ}),
        description="foreign",
    )


def registry(deferral: Deferral, allowed: tuple[str, ...] | None = None) -> ToolRegistry:
    return ToolRegistry(BUILTIN, allowed, lambda: (foreign("mcp__s__a"), foreign("mcp__s__b")), deferral)


def names(found: ToolRegistry, *activated: str) -> list[str]:
    return [schema.name for schema in found.schemas(activated=activated)]


EVERY = sorted(tool.name for tool in BUILTIN)
FOREIGN = ["mcp__s__a", "mcp__s__b"]


@pytest.mark.req("REG-02")
def test_external_tools_are_sent_once_activated_the_built_in_ones_always() -> None:
    found = registry("external")
    assert names(found) == EVERY
    assert names(found, "mcp__s__b", "mcp__gone") == sorted([*EVERY, "mcp__s__b"])
    assert [schema.name for schema in found.deferred()] == FOREIGN
    assert names(registry("off")) == sorted([*EVERY, *FOREIGN])
    assert registry("off").deferred() == ()


@pytest.mark.req("REG-08")
def test_all_sends_a_core_set_and_what_was_activated() -> None:
    found = registry("all")
    assert names(found) == sorted(CORE & set(EVERY))
    assert names(found, "kill_process", "mcp__s__a") == sorted(
        [*(CORE & set(EVERY)), "kill_process", "mcp__s__a"]
    )
    late = [schema.name for schema in found.deferred()]
    assert late == sorted((set(EVERY) - CORE) | set(FOREIGN))
    assert found.is_deferred("kill_process")
    assert not found.is_deferred("read_file")
    assert not isinstance(found.resolve("kill_process"), ErrorInfo)  # a direct call is still answered
    first = canonical([schema.model_dump() for schema in found.schemas(activated=("kill_process",))])
    again = canonical(
        [schema.model_dump() for schema in registry("all").schemas(activated=("kill_process",))]
    )
    assert first == again


@pytest.mark.req("REG-08")
def test_an_agent_that_cannot_search_gets_all_its_tools() -> None:
    found = registry("all", ("read_file", "kill_process"))
    assert names(found) == ["kill_process", "read_file"]
    assert found.deferred() == ()


@pytest.mark.req("REG-08")
@pytest.mark.req("LOOP-08")
async def test_a_deferred_tool_is_sent_from_the_call_after_its_first_use(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(call("list_todos")), says("Done."))
    bench.settings = bench.settings.model_copy(update={"schema_deferral": "all"})
    await bench.run()
    sent = [{tool.name for tool in request.tools} for request in bench.model.requests]
    assert sent[0] == CORE & set(EVERY)
    assert sent[1] - sent[0] == {"list_todos"}


def test_another_spelling_of_an_external_name_is_understood() -> None:
    found = registry("external").resolve("mcp__s__A")
    assert not isinstance(found, ErrorInfo)
    assert found.name == "mcp__s__a"
