"""Skills: list, show, create, agree to one of the project (SKL-01..06)."""

import re
from pathlib import Path
from typing import ClassVar

from ....core.errors import ErrorKind, OpenDevError
from ....store.consent import agree
from ....tools.skills import FoundSkills, body_of, discover
from ....ui.repl.ports import Command, CommandResult
from ..base import Handler, choose, need, split, told
from ..files import new_text_file

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class SkillsHandler(Handler):
    """What agents can load when they need it."""

    commands: ClassVar = (
        Command(
            name="skills",
            usage="[list|show NAME|create NAME DESCRIPTION|trust NAME]",
            summary="skills that agents can load",
        ),
    )

    async def handle(self, args: str) -> CommandResult:
        """See the base."""
        ways = {"list": self._list, "show": self._show, "create": self._create, "trust": self._trust}
        return await choose(split(args)[1], ways, "list")

    def _list(self, _rest: str) -> CommandResult:
        found = self._found()
        rows = [
            f"{skill.name:20} {skill.tier:8} {skill.description}"
            for skill in sorted(found.skills, key=lambda skill: skill.name)
        ]
        return told(
            "\n".join((*rows, *found.refused)) or "No skills. To write one: /skills create NAME DESCRIPTION"
        )

    def _show(self, rest: str) -> CommandResult:
        found = self._found()
        name = need(rest, "which skill: /skills show NAME")
        skill = next((skill for skill in found.skills if skill.name == name), None)
        if skill is not None:
            return told(body_of(skill, ""))
        if name in found.untrusted:
            return told(Path(found.untrusted[name][0]).read_bytes().decode("utf-8", "replace"))
        raise _unknown(found, name)

    def _create(self, rest: str) -> CommandResult:
        name, described = split(rest)
        need(described, "when it is of use: /skills create NAME DESCRIPTION")
        if not _NAME.fullmatch(name):
            raise OpenDevError(ErrorKind.USAGE, f"`{name}` is not a word of letters, digits, - and _.")
        path = self.repl.config.project.layout.home / "skills" / f"{name}.md"
        new_text_file(path, {"name": name, "description": described}, f"# {name}\n\n{described}\n")
        self.repl.config.reload()
        return told(
            f"{name} can be loaded from the next turn on. Write down how it is done: {path}", file=str(path)
        )

    def _trust(self, rest: str) -> CommandResult:
        found, home = self._found(), self.repl.config.project.layout.home
        name = need(rest, "which skill: /skills trust NAME")
        if name not in found.untrusted:
            raise _unknown(found, name)
        path, digest = found.untrusted[name]
        agree(home, path, digest)
        self.repl.config.reload()
        return told(f"You agreed to the skill {name}, as {path} is now.")

    def _found(self) -> FoundSkills:
        project = self.repl.config.project
        return discover(project.layout.home, project.path)


def _unknown(found: FoundSkills, name: str) -> OpenDevError:
    known = ", ".join(sorted({*(skill.name for skill in found.skills), *found.untrusted})) or "none"
    return OpenDevError(ErrorKind.USAGE, f"There is no such skill: {name}.", f"Known: {known}.")
