"""The user's own slash commands: Markdown files whose text is the prompt; a project's only after consent."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from ...core.errors import OpenDevError
from ...core.model import JsonObject
from ...store.consent import agreed, read_foreign
from ...store.plugins import plugins
from ...tools.skills import FRONT, fill_places
from ...ui.repl.ports import Command

MAX_BYTES = 64_000
MAX_FILES = 200


@dataclass(frozen=True, slots=True)
class _Own:
    command: Command
    text: str


class CustomCommands:
    """``<home>/commands``, those of plugins, then ``.opendev/commands`` of the project. ``sub/name.md`` is ``/sub:name``.

    Built-in names (``taken``) cannot be replaced, nor the user's by a project's. Blocking; read anew each time, so that a file
    that is written now can be used now.
    """

    def __init__(self, home: Path, project: Path, taken: frozenset[str]) -> None:
        self._found: dict[str, _Own] = {}
        self._refused: dict[str, str] = {}
        folders = [home / "commands", *(plugin.folder / "commands" for plugin in plugins(home))]
        consent = agreed(home)
        for folder in folders:
            for name, path in _files(folder):
                self._add(name, path, _text(path), taken)
        own = project / ".opendev" / "commands"
        for name, path in _files(own):
            if name in taken or name in self._found:
                continue
            try:
                data, digest = read_foreign(path)
            except OpenDevError as error:
                self._refused[name] = error.info.sentence()
                continue
            if consent.get(str(path)) == digest:
                self._add(name, path, data.decode("utf-8-sig", "replace"), taken)
            else:
                self._refused[name] = (
                    f"/{name} comes with the project and you have not agreed to it as it is now. "
                    f"Read it; to agree: opendev config trust {path.relative_to(project)}"
                )

    @property
    def commands(self) -> tuple[Command, ...]:
        """Those that can be used."""
        return tuple(own.command for own in self._found.values())

    def prompt(self, name: str, args: str) -> str | None:
        """The prompt, ``$ARGUMENTS`` and ``$1`` … filled in; without a place for them they stand at its end. None: there is none."""
        own = self._found.get(name)
        if own is None:
            return None
        filled = fill_places(own.text, args)
        return filled if filled != own.text or not args else f"{own.text}\n\n{args}"

    def refused(self, name: str) -> str:
        """Why a command of this name is not used; empty when there is none."""
        return self._refused.get(name, "")

    def _add(self, name: str, path: Path, text: str | None, taken: frozenset[str]) -> None:
        if text is None or name in taken or name in self._found:
            return
        front = FRONT.match(text)
        given = _given(front.group(1)) if front else {}
        body = (text[front.end() :] if front else text).strip()
        if not body:
            return
        summary = " ".join(str(given.get("description") or body.splitlines()[0]).split())[:120]
        usage = " ".join(str(given.get("argument-hint") or "").split())[:60]
        self._found[name] = _Own(
            Command(name=name, usage=usage, summary=f"{summary} ({path.parent.name})"), body
        )


def _files(folder: Path) -> list[tuple[str, Path]]:
    try:
        paths = sorted(path for path in folder.rglob("*.md") if path.is_file())[:MAX_FILES]
    except OSError:
        return []
    return [(path.relative_to(folder).with_suffix("").as_posix().replace("/", ":"), path) for path in paths]


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return None


def _given(text: str) -> JsonObject:
    try:
        value: Any = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return cast("JsonObject", value) if isinstance(value, dict) else {}
