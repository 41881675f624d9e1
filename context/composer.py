"""Composes a system prompt of a role text and sections: filter, sort, load, join (PRM-02, PRM-07, PRM-09, PRM-11)."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..core.chat import SystemMessage
from .reminders import TEMPLATES
from .sections import MAIN_SECTIONS, PROMPT_VARIABLES, PromptContext, Section

_COMMENT = re.compile(r"\A\s*<!--.*?-->\s*", re.S)
_VARIABLE = re.compile(r"\$\{([A-Z_]+\.[a-z]+)\}")


class Composer:
    """Composes prompts from one folder of templates."""

    def __init__(
        self,
        templates: Path = TEMPLATES,
        sections: Iterable[Section] = MAIN_SECTIONS,
        variables: Mapping[str, str] = PROMPT_VARIABLES,
    ) -> None:
        self._templates = templates
        self._sections = tuple(sorted(sections, key=lambda section: section.priority))
        self._variables = variables

    def role(self, prompt: str) -> str:
        """The role text: the template ``agents/<prompt>.md``, or ``prompt`` itself when it holds a line break or names no file."""
        if "\n" in prompt:
            return self._rendered(prompt)
        return self._load(self._templates / "agents" / f"{prompt}.md") or self._rendered(prompt)

    def compose(self, prompt: str, context: PromptContext, *, subagent: bool) -> SystemMessage:
        """Role and sections in two parts; the stable part holds no id, path or date, so that siblings share a cache.

        A false condition drops a section before its file is opened; a missing file is passed over.
        """
        wanted = [
            section
            for section in self._sections
            if (section.shared or not subagent) and (section.condition is None or section.condition(context))
        ]
        texts = [
            (s.cacheable, self._load(self._templates / "system" / "main" / f"{s.name}.md")) for s in wanted
        ]
        stable = [self.role(prompt), *(text for cacheable, text in texts if cacheable)]
        dynamic = [text for cacheable, text in texts if not cacheable]
        return SystemMessage(
            stable="\n\n".join(text for text in stable if text),
            dynamic="\n\n".join(text for text in dynamic if text),
        )

    def _load(self, path: Path) -> str:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError:
            return ""
        return self._rendered(text)

    def _rendered(self, text: str) -> str:
        body = _COMMENT.sub("", text)
        return _VARIABLE.sub(lambda m: self._variables.get(m.group(1), m.group(0)), body).strip()
