"""Settings and models; what changes counts from the next turn on (REPL-06)."""

import json
from typing import Any, ClassVar, cast

from ....configs.explain import explain
from ....configs.load import load_config
from ....configs.set_value import changed_settings
from ....core.chat import Role
from ....core.errors import ErrorKind, OpenDevError
from ....core.model import JsonObject
from ....llm.roles import model_for
from ....store.atomic import write_atomic
from ....ui.repl.ports import Command, CommandResult
from ...catalogue import open_catalog
from ..base import Handler, choose, need, run, split, told


class ConfigHandler(Handler):
    """``/config set`` writes the user's file; ``/models`` chooses for this conversation only."""

    commands: ClassVar = (
        Command(
            name="config",
            usage="[show KEY|explain KEY|set KEY VALUE|path]",
            summary="settings, and where they come from",
        ),
        Command(
            name="models", usage="[MODEL|ROLE MODEL]", summary="the model of each role; choose another one"
        ),
    )

    async def handle(self, args: str) -> CommandResult:
        """See the base."""
        name, rest = split(args)
        if name == "models":
            return await run(self._models, rest)
        ways = {"show": self._show, "explain": self._explain, "set": self._set, "path": self._path}
        return await choose(rest, ways, "show")

    def _models(self, rest: str) -> CommandResult:
        if not rest or rest == "list":
            return told("\n".join(self._roles()))
        first, name = split(rest)
        role, model = (first, name) if first in tuple(Role) else (Role.ACTION.value, rest)
        need(model, "which model: /models ROLE provider/NAME")
        config = self.repl.config
        if "/" not in config.project.config.named_model(model):
            raise OpenDevError(ErrorKind.USAGE, f"`{model}` is no model.", "Name it as provider/NAME.")
        config.choose("model" if role == Role.ACTION else f"roles.{role}", model)
        return told(f"{role}: {config.project.config.models()[Role(role)]}, from the next turn on.")

    def _roles(self) -> list[str]:
        project = self.repl.config.project
        catalog, rows = open_catalog(project), list[str]()
        for role in Role:
            try:
                found = model_for(role, project.config.models(), catalog.has_vision)
            except OpenDevError as error:
                found = f"- ({error.info.message})"
            rows.append(f"{role.value:10} {found}")
        return [*rows, "To choose: /models provider/NAME, or /models ROLE provider/NAME"]

    def _show(self, rest: str) -> CommandResult:
        whole: Any = self.repl.config.project.config.model_dump(mode="json")
        for part in filter(None, rest.split(".")):
            if part not in (cast("JsonObject", whole) if isinstance(whole, dict) else {}):
                raise OpenDevError(
                    ErrorKind.USAGE, f"There is no setting `{rest}`.", "/config show lists them."
                )
            whole = whole[part]
        return told(json.dumps(whole, indent=2, ensure_ascii=False))

    def _explain(self, rest: str) -> CommandResult:
        found = explain(self.repl.config.project.loaded, need(rest, "which setting: /config explain KEY"))
        return told(json.dumps(found, indent=2, default=str))

    def _set(self, rest: str) -> CommandResult:
        key, value = split(rest)
        need(value, "what to: /config set KEY VALUE")
        project = self.repl.config.project
        path = project.layout.settings()
        content, parsed = changed_settings(path, key, value)
        load_config(project=project.path, environment=project.environment, cli={key: parsed})
        write_atomic(path, content)
        self.repl.config.reload()
        now = self.repl.config.project.loaded.origins[key][-1].layer
        over = "" if now == "user" else f" The {now} says otherwise, and counts more."
        return told(f"{key} is set in {path}, from the next turn on.{over}")

    def _path(self, _rest: str) -> CommandResult:
        project = self.repl.config.project
        files = (project.layout.settings(), project.path / ".opendev" / "settings.json")
        return told("\n".join(f"{file}{'' if file.exists() else '  (does not exist)'}" for file in files))
