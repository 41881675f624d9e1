"""The sections of the system prompts as data: file, priority, condition, cacheable (PRM-01, PRM-03, PRM-10, Catalogue P)."""

from collections.abc import Callable
from dataclasses import dataclass

_PROVIDERS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "fireworks": "fireworks",
    "fireworks_ai": "fireworks",
}


@dataclass(frozen=True, slots=True)
class PromptContext:
    """What conditions look at, and what stands in the dynamic part: ``scratch`` and ``environment``, a finished block.

    But for these two nothing here differs between siblings of one agent type in one project, so they share the stable part.
    """

    tools: frozenset[str]
    in_git_repo: bool = False
    model_provider: str = ""
    session_id: str = ""
    scratch: str = ""
    environment: str = ""

    @property
    def has_subagents(self) -> bool:
        """Whether the agent can give work away."""
        return "spawn_subagent" in self.tools

    @property
    def todo_enabled(self) -> bool:
        """Whether the agent keeps a list."""
        return self.tools.issuperset(("write_todos", "update_todo", "complete_todo"))


@dataclass(frozen=True, slots=True)
class Section:
    """One file of a folder of sections. ``condition`` None = always.

    ``needs`` are the tools it names: an agent that lacks one is not shown the section (TOR-06). ``shared`` sections go into
    the prompts of sub-agents too, whose own role text replaces the rest.
    """

    name: str
    priority: int
    condition: Callable[[PromptContext], bool] | None = None
    cacheable: bool = True
    needs: frozenset[str] = frozenset()
    shared: bool = False

    def wanted(self, context: PromptContext) -> bool:
        """Whether it belongs into a prompt for ``context``; decided before its file is opened (PRM-02)."""
        return self.needs <= context.tools and (self.condition is None or self.condition(context))


def prompt_provider(model: str) -> str:
    """``openai``, ``anthropic`` or ``fireworks`` for ``provider/NAME``; empty for every other provider (PRM-08)."""
    return _PROVIDERS.get(model.partition("/")[0].casefold(), "") if "/" in model else ""


def _provider(name: str) -> Callable[[PromptContext], bool]:
    return lambda context: context.model_provider == name


_LOOK = frozenset({"read_file", "search", "list_files", "find_symbol"})
_SPAWN = frozenset({"spawn_subagent"})
_TODO = frozenset({"write_todos", "update_todo", "complete_todo", "list_todos"})
_CHANGE = frozenset({"write_file", "edit_file", "rename_symbol", "replace_symbol_body", "run_command"})

MAIN_SECTIONS: tuple[Section, ...] = (
    Section("mode-awareness", 12, needs=_SPAWN),
    Section("security-policy", 15, shared=True),
    Section("tone-and-style", 20),
    Section("no-time-estimates", 25),
    Section("interaction-pattern", 40, needs=frozenset({"task_complete"})),
    Section(
        "available-tools",
        45,
        needs=_LOOK | _CHANGE | _TODO | _SPAWN | {"get_subagent_output", "task_complete"},
    ),
    Section("tool-selection", 50, needs=_LOOK),
    Section("code-quality", 55, needs=frozenset({"edit_file"})),
    Section("action-safety", 60, needs=frozenset({"run_command"}), shared=True),
    Section("read-before-edit", 62, needs=frozenset({"read_file", "edit_file"}), shared=True),
    Section("error-recovery", 65, shared=True),
    Section("subagent-guide", 70, lambda context: context.has_subagents, needs=_SPAWN),
    Section("git-workflow", 72, lambda context: context.in_git_repo, needs=frozenset({"run_command"})),
    Section("task-tracking", 75, lambda context: context.todo_enabled, needs=_TODO),
    Section("provider-openai", 80, _provider("openai"), shared=True),
    Section("provider-anthropic", 80, _provider("anthropic"), shared=True),
    Section("provider-fireworks", 80, _provider("fireworks"), shared=True),
    Section("output-awareness", 85, needs=frozenset({"read_file"}), shared=True),
    Section("scratchpad", 87, lambda context: bool(context.session_id), cacheable=False, shared=True),
    Section("code-references", 90, shared=True),
    Section("reminders-note", 95, cacheable=False, shared=True),
)
SUBAGENT_SECTIONS = tuple(section for section in MAIN_SECTIONS if section.shared)
THINKING_SECTIONS: tuple[Section, ...] = (
    Section("thinking-available-tools", 45),
    Section("thinking-subagent-guide", 70),
    Section("thinking-code-references", 90),
    Section("thinking-output-rules", 95),
)
