"""Agent types as data: the built-in ones from configs/agents, the user's own, and what a child may hold (SUB-01, AGT-09)."""

import tomllib
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import NotRequired, TypedDict, TypeVar

from pydantic import ValidationError

from ..core.agent import AgentSpec, Budget, DockerConfig
from ..core.errors import ErrorKind, OpenDevError

FOLDER = Path(__file__).resolve().parent.parent / "configs" / "agents"
SAFE_TOOLS = (
    "read_file",
    "search",
    "list_files",
    "find_symbol",
)  # of a custom agent that names no tools (AGT-10)
TODO_TOOLS = frozenset(
    {"write_todos", "update_todo", "complete_todo", "list_todos"}
)  # the main agent's (SUB-04)
MAIN = "Main"
T = TypeVar("T", int, float)


class SubAgentSpec(TypedDict):
    """A custom agent as written in configuration (AGT-09). ``system_prompt`` is the prompt itself."""

    name: str
    description: str
    system_prompt: str
    tools: NotRequired[list[str]]
    model: NotRequired[str]
    writes: NotRequired[bool]
    max_iterations: NotRequired[int]
    docker: NotRequired[dict[str, str]]  # the fields of ``DockerConfig``


@cache
def _read() -> tuple[AgentSpec, ...]:
    return tuple(_spec(path) for path in sorted(FOLDER.glob("*.toml")))


def builtin_specs() -> dict[str, AgentSpec]:
    """The built-in agent types by name: Main, Coder and the eight of Catalogue A. Raises ``OpenDevError`` (config)."""
    return {spec.name: spec for spec in _read()}


def _spec(path: Path) -> AgentSpec:
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
        tools = None if fields.pop("all_tools", False) else fields.pop("tools", SAFE_TOOLS)
        return AgentSpec.model_validate({**fields, "tools": tools})
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise OpenDevError(ErrorKind.CONFIG, f"The agent file {path} cannot be used: {error}") from error


def custom_spec(given: SubAgentSpec) -> AgentSpec:
    """A custom agent as a spec, by the same rules as the built-in ones. Raises ``OpenDevError`` (config)."""
    if given["name"] in builtin_specs():
        raise OpenDevError(
            ErrorKind.CONFIG, f"The agent name {given['name']} is built in.", "Choose another name."
        )
    try:
        return AgentSpec(
            name=given["name"],
            description=given["description"],
            prompt=f"{given['system_prompt']}\n",
            tools=tuple(tool for tool in given.get("tools", SAFE_TOOLS) if tool not in TODO_TOOLS),
            model=given.get("model", ""),
            writes=given.get("writes", False),
            max_iterations=given.get("max_iterations"),
            docker=DockerConfig.model_validate(given["docker"]) if "docker" in given else None,
            builtin=False,
        )
    except (ValidationError, KeyError) as error:
        raise OpenDevError(
            ErrorKind.CONFIG, f"The agent {given.get('name')!r} cannot be used: {error}"
        ) from error


def effective(parent: AgentSpec, spec: AgentSpec) -> AgentSpec:
    """``spec`` as a child of ``parent``: it never holds a tool, a right or an iteration that its parent lacks."""
    if parent.tools is None:
        tools = spec.tools
    elif spec.tools is None:
        tools = parent.tools
    else:
        tools = tuple(tool for tool in spec.tools if tool in parent.tools)
    return spec.model_copy(
        update={
            "tools": tools,
            "writes": spec.writes and parent.writes,
            "max_iterations": _least(parent.max_iterations, spec.max_iterations),
            "docker": spec.docker or parent.docker,  # no way out of a container by a child
        }
    )


def effective_budget(parent: Budget, child: Budget) -> Budget:
    """``child`` within ``parent``: of each cap the lower one."""
    return Budget(
        max_cost_usd=_least(parent.max_cost_usd, child.max_cost_usd),
        max_tokens=_least(parent.max_tokens, child.max_tokens),
        max_iterations=_least(parent.max_iterations, child.max_iterations),
        timeout_s=_least(parent.timeout_s, child.timeout_s),
    )


def missing_tools(spec: AgentSpec, available: Collection[str]) -> tuple[str, ...]:
    """The tools a spec lists that this installation does not have; shown by ``opendev agents show``."""
    return tuple(tool for tool in spec.tools or () if tool not in available)


def iteration_cap(spec: AgentSpec, main: int, sub: int) -> int:
    """The iterations of ``spec`` (C-02): its own, else ``main`` for agents that can write a file, else ``sub``."""
    if spec.max_iterations is not None:
        return spec.max_iterations
    can_write = spec.writes or spec.tools is None or "write_file" in spec.tools
    return main if can_write else sub


def _least(one: T | None, other: T | None) -> T | None:
    given = [value for value in (one, other) if value is not None]
    return min(given, default=None)
