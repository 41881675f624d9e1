"""How the next query is worked on: mode and plan, thinking, how much passes without asking (REPL-05)."""

from typing import ClassVar

from ....core.approval import ApprovalLevel, Mode
from ....core.chat import ThinkingLevel
from ....core.errors import ErrorKind, OpenDevError
from ....ui.repl.ports import Command, CommandResult
from ..base import Handler, run, split, told


class ModeHandler(Handler):
    """What is chosen here is read when the next query begins."""

    commands: ClassVar = (
        Command(
            name="approve", usage="[manual|semi-auto|auto]", summary="how much passes without asking you"
        ),
        Command(name="mode", usage="[normal|plan]", summary="plan mode reads and plans, and changes nothing"),
        Command(name="plan", usage="[TASK]", summary="plan mode for the next query; with a task, at once"),
        Command(
            name="thinking",
            usage="[off|low|medium|high]",
            summary="how much the agent thinks before each step",
        ),
    )

    async def handle(self, args: str) -> CommandResult:
        """See the base."""
        name, rest = split(args)
        ways = {"approve": self._approve, "mode": self._mode, "plan": self._plan, "thinking": self._thinking}
        return await run(ways[name], rest)

    def _mode(self, rest: str) -> CommandResult:
        modes = self.repl.modes
        modes.want(Mode(_one(rest, tuple(Mode)))) if rest else modes.toggle()
        return told(f"Mode {modes.shown.value}{self._when()}")

    def _plan(self, rest: str) -> CommandResult:
        self.repl.modes.want(Mode.PLAN)
        if rest and self.repl.turns.busy:
            raise OpenDevError(
                ErrorKind.USAGE, "The agent works in its present mode.", "Plan mode is on for the next query."
            )
        return CommandResult(success=True, message="" if rest else f"Mode plan{self._when()}", prompt=rest)

    def _thinking(self, rest: str) -> CommandResult:
        config = self.repl.config
        if not rest:
            return told(f"Thinking: {config.project.config.thinking.level.value}")
        level = _one(rest, tuple(ThinkingLevel))
        config.choose("thinking.level", level)
        return told(f"Thinking {level}{self._when()}")

    def _approve(self, rest: str) -> CommandResult:
        if rest:
            self.repl.approvals.choose(ApprovalLevel(_one(rest, tuple(ApprovalLevel))))
        return told(f"Approval level {self.repl.approvals.level.value}{self._when() if rest else '.'}")

    def _when(self) -> str:
        return ", from the next query on." if self.repl.turns.busy else "."


def _one(given: str, known: tuple[str, ...]) -> str:
    if given not in known:
        names = ", ".join(str(one) for one in known)
        raise OpenDevError(ErrorKind.USAGE, f"`{given}` is none of: {names}.")
    return given
