"""Composes system prompts of a role text and sections: filter, sort, load, join (PRM-02, PRM-04, PRM-09, PRM-11)."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from ..core.chat import SystemMessage
from ..core.prompts import PromptRenderer, PromptVariables
from .core_prompt import CORE_PROMPT
from .reminders import TEMPLATES
from .sections import MAIN_SECTIONS, SUBAGENT_SECTIONS, THINKING_SECTIONS, PromptContext, Section

Kind = Literal["system/main", "system/thinking"]
_KINDS: dict[Kind, tuple[str, tuple[Section, ...]]] = {
    "system/main": ("agents/main", MAIN_SECTIONS),
    "system/thinking": ("thinking", THINKING_SECTIONS),
}


@dataclass(frozen=True, slots=True)
class Composer:
    """Composes one kind of prompt from one folder of templates.

    ``role`` is the name of the template of the role text, below ``templates`` and without its suffix, or the text itself
    when it holds a line break; ``folder`` holds the files of the sections.
    """

    templates: Path
    folder: str
    role: str
    sections: tuple[Section, ...]
    variables: PromptVariables = field(default_factory=PromptVariables)

    def compose(self, context: PromptContext) -> str:
        """The whole prompt as one text."""
        return "\n\n".join(part for part in self.compose_two_part(context) if part)

    def compose_two_part(self, context: PromptContext) -> tuple[str, str]:
        """The stable and the dynamic part. The stable one holds no id, path or date, so that turns and siblings share a cache.

        A condition that does not hold drops a section before its file is opened; a missing file is passed over; without
        a folder of templates the core prompt stands for role and sections.
        """
        values = {**self.variables.values, "SCRATCH.path": context.scratch}
        renderer = PromptRenderer(replace(self.variables, values=values))
        if not self.templates.is_dir():
            role = renderer.render(self.role) if "\n" in self.role else ""
            return _joined([role, CORE_PROMPT]), context.environment
        wanted = sorted((s for s in self.sections if s.wanted(context)), key=lambda section: section.priority)
        texts = [(s.cacheable, self._load(f"{self.folder}/{s.name}", renderer)) for s in wanted]
        stable = [self._role(renderer), *(text for cacheable, text in texts if cacheable)]
        dynamic = [*(text for cacheable, text in texts if not cacheable), context.environment]
        return _joined(stable), _joined(dynamic)

    def message(self, context: PromptContext) -> SystemMessage:
        """The prompt as the message that is sent; the model client marks the stable part as cacheable (PRM-09)."""
        stable, dynamic = self.compose_two_part(context)
        return SystemMessage(stable=stable, dynamic=dynamic)

    def _role(self, renderer: PromptRenderer) -> str:
        if "\n" in self.role:
            return renderer.render(self.role)
        return self._load(self.role, renderer) or self.role.rsplit("/", 1)[-1]

    def _load(self, name: str, renderer: PromptRenderer) -> str:
        try:
            text = (self.templates / f"{name}.md").read_text(encoding="utf-8")
        except (OSError, ValueError):  # missing, or not UTF-8: one section less is better than no prompt
            return ""
        return renderer.render(text)


def create_composer(templates_dir: Path, mode: Kind) -> Composer:
    """The composer of the main agent (21 sections) or of the thinking call (4 sections)."""
    role, sections = _KINDS[mode]
    return Composer(templates_dir, mode, role, sections)


def create_default_composer() -> Composer:
    """The main agent's composer on the built-in templates."""
    return create_composer(TEMPLATES, "system/main")


def create_thinking_composer() -> Composer:
    """The thinking call's composer on the built-in templates."""
    return create_composer(TEMPLATES, "system/thinking")


def create_agent_composer(prompt: str) -> Composer:
    """A sub-agent's: ``prompt`` is a template of ``agents/`` or the role text itself; only the shared sections follow."""
    role = prompt if "\n" in prompt else f"agents/{prompt}"
    return Composer(TEMPLATES, "system/main", role, SUBAGENT_SECTIONS)


def standalone(name: str) -> str:
    """The text of a stand-alone template (``critique``, ``init``, ``reflector``, ``curator``, ``compaction``).

    Raises:
        OSError: it cannot be read.
    """
    return PromptRenderer().render((TEMPLATES / f"{name}.md").read_text(encoding="utf-8"))


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part)
