"""Settings and models; what changes counts from the next turn on (REPL-06)."""

import json
from typing import ClassVar

from ....configs.explain import explain
from ....core.chat import Role
from ....core.errors import ErrorKind, OpenDevError
from ....llm.roles import model_for
from ....ui.repl.ports import Command, CommandResult
from ...catalogue import open_catalog
from ...config import change_setting
from ...project import open_place
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
        node = self.repl.config.project.config.model_dump(mode="json")
        *above, leaf = rest.split(".")
        try:
            for part in above:
                node = node[part]
            found = node[leaf] if leaf else node
        except (KeyError, TypeError):
            raise OpenDevError(
                ErrorKind.USAGE, f"There is no setting `{rest}`.", "/config show lists them."
            ) from None
        return told(json.dumps(found, indent=2, ensure_ascii=False))

    def _explain(self, rest: str) -> CommandResult:
        found = explain(
            self.repl.config.project.loaded.origins, need(rest, "which setting: /config explain KEY")
        )
        return told(json.dumps(found, indent=2, default=str))

    def _set(self, rest: str) -> CommandResult:
        key, value = split(rest)
        need(value, "what to: /config set KEY VALUE")
        done, *warnings = change_setting(open_place(self.repl.config.project.path), key, value)
        self.repl.config.reload()
        now = self.repl.config.project.loaded.origins.get(key)
        over = ""
        if now and now[-1].layer != "user":
            over = f" The {now[-1].layer} says otherwise, and counts more."
        return told("\n".join([f"{done} It counts from the next turn on.{over}", *warnings]))

    def _path(self, _rest: str) -> CommandResult:
        project = self.repl.config.project
        files = (project.layout.settings(), project.path / ".opendev" / "settings.json")
        return told("\n".join(f"{file}{'' if file.exists() else '  (does not exist)'}" for file in files))
