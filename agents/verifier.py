"""The verification command as the gate of completion: the verifier says done, not the model (LOOP-14, BLG-01)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from ..context.detectors import same_failure
from ..core.errors import OpenDevError
from ..core.ports import CommandResult, Shell
from ..core.ticket import VerifyOutcome
from ..core.tool import Limits
from ..policy.redact import redact

MAX_VERIFICATIONS = 3


class Verifier:
    """Runs ``command`` in ``root`` and counts the claims of completion it refused; at most ``MAX_VERIFICATIONS``.

    A claim without any action since the last failure is refused on that outcome: the command would say the same.
    """

    def __init__(
        self, *, command: str, root: Path, env: Mapping[str, str], shell: Shell, limits: Limits
    ) -> None:
        self.command = command
        self.attempts = 0
        self.output = ""
        self.unchanged = 0  # failures in a row that said the same
        self._mark = ""
        self._root = root
        self._env = env
        self._shell = shell
        self._limits = limits
        self._last: VerifyOutcome | None = None

    def note_action(self) -> None:
        """Something was written or run: the last outcome says nothing any more."""
        self._last = None

    @property
    def spent(self) -> bool:
        """Whether no further claim is allowed."""
        return self.attempts >= MAX_VERIFICATIONS

    async def check(self) -> VerifyOutcome:
        """The outcome of the command on the present state; ``output`` holds what it printed."""
        if self._last is None:
            self._last = await self._run()
        if self._last.outcome != "pass":
            self.attempts += 1
            mark = same_failure(self.command, f"{self._last.outcome} {self._last.exit_code} {self.output}")
            self.unchanged = self.unchanged + 1 if mark == self._mark else 1
            self._mark = mark
        return self._last

    async def _run(self) -> VerifyOutcome:
        total = self._limits.command_total_s
        try:
            result = await self._shell.run(
                self.command, cwd=self._root, env=self._env, idle_s=total, total_s=total
            )
        except OpenDevError as error:
            self.output = str(error)
            return VerifyOutcome(command=self.command, outcome="infra")
        self.output = redact(result.text)
        return VerifyOutcome(
            command=self.command,
            exit_code=result.exit_code,
            wall_s=result.wall_s,
            log=result.log,
            outcome=_outcome(result),
        )


def _outcome(result: CommandResult) -> Literal["pass", "fail", "timeout", "infra"]:
    if result.ended == "cancelled":
        return "infra"
    if result.exit_code is None:
        return "timeout"
    return "pass" if result.exit_code == 0 else "fail"
