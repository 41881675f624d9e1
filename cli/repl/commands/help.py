"""Help: what there is, and what one command does."""

from typing import ClassVar

from ....core.errors import ErrorKind, OpenDevError
from ....ui.repl.ports import Command, CommandResult
from ..base import Handler, split, told

_KEYS = (
    "Anything else is a task for the agent; while it works, what you type reaches it at its next step. "
    "@path attaches a file. Shift+Tab switches between normal and plan mode; Esc or Ctrl-C interrupts."
)


class HelpHandler(Handler):
    """It knows every command, the user's own too."""

    commands: ClassVar = (Command(name="help", usage="[COMMAND]", summary="what there is"),)

    async def handle(self, args: str) -> CommandResult:
        """See the base."""
        wanted = split(args)[1].removeprefix("/")
        known = self.repl.commands()
        if wanted:
            found = [command for command in known if command.name == wanted]
            if not found:
                raise OpenDevError(ErrorKind.USAGE, f"There is no command /{wanted}.", "/help lists them.")
            return told(f"/{found[0].name} {found[0].usage}".rstrip() + f"\n{found[0].summary}")
        width = max(len(command.name) for command in known) + 2
        rows = [f"/{command.name:{width}}{command.summary}" for command in known]
        return told("\n".join([*rows, "", "/help COMMAND shows its arguments.", _KEYS]))
