"""The tools of one agent: a filtered, ordered view that builds schemas and resolves the names a model writes (REG-01, SUB-02)."""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from ..core.chat import ToolSchema
from ..core.errors import ErrorInfo, ErrorKind, OpenDevError
from ..core.prompts import PromptRenderer, PromptVariables
from ..core.tool import Tool
from .schema import lean, schema_of

_TEMPLATES = Path(__file__).parents[1] / "templates" / "tools"
_VARIABLE = re.compile(r"\$\{([A-Z_]+)\}")
# C-22, and what models are used to from elsewhere.
_ALIASES = {
    "text_search": "search",
    "use_skill": "invoke_skill",
    "grep": "search",
    "read": "read_file",
    "ls": "list_files",
    "bash": "run_command",
}
SEARCH = "search_tools"
# Always sent, whatever is deferred (REG-08): what nearly every task needs, and what the prompts and reminders name.
CORE = frozenset(
    {
        "read_file",
        "write_file",
        "edit_file",
        "list_files",
        "search",
        "run_command",
        "find_symbol",
        "write_todos",
        "update_todo",
        "complete_todo",
        "ask_user",
        "spawn_subagent",
        "get_subagent_output",
        "present_plan",
        "task_complete",
        SEARCH,
    }
)
Deferral = Literal["off", "external", "all"]
_PREFIX = 4  # a shorter beginning of a name says too little


class ToolRegistry:
    """``allowed`` None = every tool; names in it that no tool has are ignored. Of two tools with one name the first stays.

    The first stays so that a later source (an MCP server) can never stand in for a built-in tool (M05). ``external`` gives
    the tools of MCP servers as they are now; an allow-list names them in full or by a pattern such as ``mcp__github__*``.
    ``deferral`` says whose schemas wait for their activation (C-12): nobody's, those of external tools, or those of all tools
    outside of ``CORE``; the latter only for an agent that can search for tools.
    """

    def __init__(
        self,
        tools: Iterable[Tool[Any]],
        allowed: tuple[str, ...] | None = None,
        external: Callable[[], Iterable[Tool[Any]]] = tuple,
        deferral: Deferral = "external",
    ) -> None:
        known: dict[str, Tool[Any]] = {}
        for tool in tools:
            known.setdefault(tool.name, tool)
        self._known = frozenset(known)
        self._tools = {n: known[n] for n in sorted(known) if allowed is None or n in allowed}
        self._allowed = allowed
        self._external = external
        hidden = set(self._tools) - CORE if deferral == "all" and SEARCH in self._tools else set[str]()
        self._hidden = frozenset(hidden)
        self._defers_external = deferral != "off"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the built-in tools on offer, sorted."""
        return tuple(self._tools)

    def get(self, name: str) -> Tool[Any] | None:
        """The tool of exactly this name, when it is on offer."""
        return self._tools.get(name) or self._discoverable().get(name)

    def schemas(
        self, variables: Mapping[str, str] | None = None, activated: Collection[str] = ()
    ) -> tuple[ToolSchema, ...]:
        """What the model is told, sorted by name and byte-stable: all tools but the deferred ones, and of those the activated.

        ``variables`` fill ``${NAME}`` in the descriptions (``AGENTS``: the agent types on offer); a missing one reads "none".

        Raises:
            OpenDevError: ``INTERNAL`` when a tool has no description.
        """
        late = self._deferred()
        found = [tool for name, tool in self._all() if name not in late or name in activated]
        return tuple(_schema(tool, variables) for tool in sorted(found, key=lambda tool: tool.name))

    def deferred(self) -> tuple[ToolSchema, ...]:
        """The tools that are sent only once they are activated, sorted by name (MCP-01)."""
        return tuple(_schema(tool, None) for _, tool in sorted(self._deferred().items()))

    def is_deferred(self, name: str) -> bool:
        """Whether the tool of this name is one of ``deferred``."""
        return name in self._deferred()

    def _all(self) -> tuple[tuple[str, Tool[Any]], ...]:
        return (*self._tools.items(), *self._discoverable().items())

    def _deferred(self) -> dict[str, Tool[Any]]:
        own = {name: self._tools[name] for name in self._hidden}
        return own | self._discoverable() if self._defers_external else own

    def _discoverable(self) -> dict[str, Tool[Any]]:
        """The external tools this agent may call; a second one of a name, and one named like a built-in tool, is left out."""
        found: dict[str, Tool[Any]] = {}
        for tool in self._external():
            named = self._allowed is None or any(fnmatchcase(tool.name, item) for item in self._allowed)
            if named and tool.name not in self._known:
                found.setdefault(tool.name, tool)
        return found

    def resolve(self, name: str) -> Tool[Any] | ErrorInfo:
        """The tool a model means, or why there is none, with near names (M12).

        Another case, other separators or a name space (``functions.read_file``) are forgiven, and a beginning of a name of
        at least four letters, each only when exactly one tool on offer fits. A tool outside of the allow-list is refused.
        """
        exact = self.get(name)
        if exact is not None:
            return exact
        if name in self._known or any(tool.name == name for tool in self._external()):
            return ErrorInfo(
                kind=ErrorKind.DENIED,
                message=f"The tool {name} is not available to this agent.",
                hint=f"Available are: {', '.join(self.names) or 'none'}.",
            )
        found = self._alike(name)
        if len(found) == 1:
            return self._tools.get(found[0]) or self._discoverable()[found[0]]
        near = self.near(name)
        hint = (
            f"Did you mean {' or '.join(near)}?"
            if near
            else f"Available are: {', '.join(self.names) or 'none'}."
        )
        shown = ascii(name[:80])
        return ErrorInfo(kind=ErrorKind.NOT_FOUND, message=f"There is no tool named {shown}.", hint=hint)

    def near(self, name: str) -> tuple[str, ...]:
        """Up to three names on offer that resemble ``name``, best first."""
        wanted = _fold(name[:200])
        folded = {_fold(item): item for item in (*self._tools, *self._discoverable())}
        close = difflib.get_close_matches(wanted, list(folded), n=3, cutoff=0.6)
        words = set(re.split(r"[^a-z]+", name[:200].casefold())) - {""}
        shared = [i for i in self._tools if words & set(i.split("_")) and _fold(i) not in close]
        return tuple([folded[item] for item in close] + shared)[:3]

    def _alike(self, name: str) -> list[str]:
        last = re.split(r"[.:/]", name.strip())[-1] if not name.startswith("mcp__") else name
        wanted = _fold(_ALIASES.get(last.casefold(), last))
        same = [item for item in (*self._tools, *self._discoverable()) if _fold(item) == wanted]
        if same or len(wanted) < _PREFIX:
            return same
        return [item for item in self._tools if _fold(item).startswith(wanted)]


def _schema(tool: Tool[Any], variables: Mapping[str, str] | None) -> ToolSchema:
    if tool.description:  # of an external tool, whose schema is its server's
        return ToolSchema(name=tool.name, description=tool.description, parameters=schema_of(tool))
    described = load_tool_description(tool.name, variables)
    return ToolSchema(name=tool.name, description=described, parameters=lean(schema_of(tool)))


def _fold(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


@lru_cache(maxsize=256)
def _template(name: str) -> str:
    try:
        return (_TEMPLATES / f"{name}.md").read_text(encoding="utf-8").strip()
    except OSError as error:
        raise OpenDevError(
            ErrorKind.INTERNAL, f"The tool {name} has no description.", f"Add templates/tools/{name}.md."
        ) from error


def load_tool_description(
    name: str, variables: Mapping[str, str] | None = None, prompts: PromptVariables | None = None
) -> str:
    """The description of a tool from ``templates/tools/<name>.md``, for the model (PRM-13).

    ``variables`` fill ``${NAME}`` (a missing one reads "none"), ``prompts`` the names of other tools.

    Raises:
        OpenDevError: ``INTERNAL`` when there is no such file.
    """
    text = PromptRenderer(prompts or PromptVariables()).render(_template(name))
    # Not string.Template: `$VAR` is ordinary text in descriptions (ast-grep patterns).
    return _VARIABLE.sub(lambda found: (variables or {}).get(found[1], "none"), text)
