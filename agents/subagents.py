"""The manager of sub-agent types: compiles specs, lists them for the description of spawn_subagent (AGT-10, SUB-15)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..core.agent import AgentSpec
from .main_agent import MainAgent
from .specs import MAIN, builtin_specs


@dataclass(frozen=True, slots=True)
class CompiledSubAgent:
    """A sub-agent type, ready to run."""

    name: str
    description: str
    agent: MainAgent
    tools: tuple[str, ...]


class SubAgentManager:
    """The sub-agent types of one factory. ``compile_agent`` makes an agent of a spec."""

    def __init__(self, compile_agent: Callable[[AgentSpec], MainAgent]) -> None:
        self._compile = compile_agent
        self._compiled: dict[str, CompiledSubAgent] = {}

    def register_defaults(self) -> None:
        """Compile the built-in types."""
        for spec in builtin_specs().values():
            if spec.name != MAIN:
                self.register_subagent(spec)

    def register_custom_agents(self, specs: Iterable[AgentSpec]) -> None:
        """Compile the user's types, by the same path (CFG-11)."""
        for spec in specs:
            self.register_subagent(spec)

    def register_subagent(self, spec: AgentSpec) -> CompiledSubAgent:
        """Compile one type; a second one of the same name replaces the first."""
        agent = self._compile(spec)
        compiled = CompiledSubAgent(spec.name, spec.description, agent, agent.registry.names)
        self._compiled[spec.name] = compiled
        return compiled

    def get(self, name: str) -> CompiledSubAgent | None:
        """The compiled type of this name."""
        return self._compiled.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order of registration."""
        return tuple(self._compiled)


def on_offer(specs: Iterable[AgentSpec]) -> str:
    """One line per sub-agent type, sorted by name."""
    lines = [f"- {spec.name}: {spec.description}" for spec in specs if spec.name != MAIN and spec.offered]
    return "\n".join(sorted(lines))
