"""Runs verification commands in clean checkouts of a commit; pass, fail, timeout and infra are kept apart (SWM-06)."""

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..core.errors import OpenDevError
from ..core.ports import CommandResult
from ..core.ticket import VerifyOutcome
from ..store.atomic import write_atomic
from .ports import RunSettings, SwarmPorts
from .provision import Provision

Where = Literal["base", "task", "composed"]
FEEDBACK_CHARS = 6_000
SHOWN_IDS = 10
# pytest: `FAILED tests/a.py::test_x - …`; unittest: `FAIL: test_x (mod.Case.test_x)`
_PYTEST = re.compile(r"^(?:FAILED|ERROR) (\S+?)(?: - .*)?$", re.MULTILINE)
_UNITTEST = re.compile(r"^(?:FAIL|ERROR): (\S+ \([^)]*\).*)$", re.MULTILINE)
_NO_COMMAND = {126: "cannot be executed", 127: "was not found"}


@dataclass(frozen=True, slots=True)
class Verification:
    """One verdict, the end of the output for a person or the next attempt, and what is worth a note in the report."""

    outcome: VerifyOutcome
    text: str = ""
    failing: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the work may go on."""
        return self.outcome.outcome == "pass"

    def sentence(self) -> str:
        """What happened, in words."""
        command = self.outcome.command
        match self.outcome.outcome:
            case "pass":
                return f"`{command}` passed."
            case "timeout":
                return f"`{command}` did not end within its time limit."
            case "infra" | "not_run":
                return f"`{command}` could not be judged: {self.text}"
            case "fail":
                why = _NO_COMMAND.get(self.outcome.exit_code or 0)
                what = (
                    f"{why} (exit code {self.outcome.exit_code})"
                    if why
                    else f"failed with exit code {self.outcome.exit_code}"
                )
                return f"`{command}` {what}:\n{self.text}"


class Verifier:
    """Runs commands and remembers the baseline. Every run has its own log in ``log_dir``."""

    def __init__(self, ports: SwarmPorts, settings: RunSettings, provision: Provision) -> None:
        self._train, self._shell, self._clock = ports.train, ports.shell, ports.clock
        self._provision, self._env = provision, settings.env
        self._log_dir, self._timeout_s = settings.run_dir / "verify", settings.verify_timeout_s
        self._baseline: dict[str, Verification] = {}
        self._logs = 0

    async def at_commit(self, command: str, *, commit: str, task: str, where: Where) -> Verification:
        """Run ``command`` in a fresh checkout of ``commit``, filled like a worktree (`copy`, `setup`)."""
        try:
            folder = await self._train.checkout(commit)
        except OpenDevError as error:
            return _infra(command, error.info.sentence())
        try:
            return await self.in_folder((command,), folder=folder, task=task, where=where)
        finally:
            await asyncio.shield(self._train.drop(folder))

    async def in_folder(
        self, commands: tuple[str, ...], *, folder: Path, task: str, where: Where
    ) -> Verification:
        """Run the commands one after the other in a checkout that is already there; the first that does not pass decides."""
        try:
            await self._provision.fill(folder)
        except OpenDevError as error:
            return _infra(commands[0], error.info.sentence())
        notes: list[str] = []
        last = Verification(VerifyOutcome(command="", outcome="pass"))
        for command in commands:
            last = await self._judge(command, folder, task, where)
            notes += last.notes
            if not last.passed:
                break
        return Verification(last.outcome, last.text, last.failing, tuple(notes))

    def baseline(self, command: str) -> Verification | None:
        """What ``command`` said on the untouched base, if it was asked."""
        return self._baseline.get(command)

    def keep_baseline(self, verification: Verification) -> None:
        """From now on, failures of this command that the base has as well do not count."""
        self._baseline[verification.outcome.command] = verification

    async def _judge(self, command: str, folder: Path, task: str, where: Where) -> Verification:
        first = await self._once(command, folder, task, where)
        if first.outcome.outcome != "fail" or first.outcome.exit_code in _NO_COMMAND:
            return first
        if where != "base" and (excused := self._excuse(first)) is not None:
            return excused
        again = await self._once(command, folder, task, where)
        if again.passed or (where != "base" and self._excuse(again) is not None):
            note = (
                f"`{command}` failed once and passed when run again ({where}, {task or 'base'}): it is flaky."
            )
            outcome = again.outcome.model_copy(update={"outcome": "pass"})
            return Verification(outcome, again.text, again.failing, (note,))
        return first

    def _excuse(self, found: Verification) -> Verification | None:
        """A pass in place of a failure that the base shows as well; None when there is something new."""
        base = self._baseline.get(found.outcome.command)
        if (
            base is None
            or base.outcome.outcome != "fail"
            or base.outcome.exit_code != found.outcome.exit_code
        ):
            return None
        if base.failing and found.failing:
            if found.failing - base.failing:
                return None
            note = f"`{found.outcome.command}` fails only where the base failed already ({len(found.failing)} tests)."
        elif not base.failing and not found.failing:
            note = (
                f"`{found.outcome.command}` ends with exit code {found.outcome.exit_code}, as it does on the base; its"
                " output names no tests, so a new failure could hide behind the old one."
            )
        else:
            return None
        return Verification(
            found.outcome.model_copy(update={"outcome": "pass"}), found.text, found.failing, (note,)
        )

    async def _once(self, command: str, folder: Path, task: str, where: Where) -> Verification:
        began = self._clock.monotonic()
        try:
            result = await self._shell.run(
                command, cwd=folder, env=self._env, idle_s=self._timeout_s, total_s=self._timeout_s
            )
        except (OpenDevError, OSError) as error:
            return _infra(command, str(error))
        wall = round(self._clock.monotonic() - began, 3)
        self._logs += 1
        log = self._log_dir / f"{self._logs:04d}-{task or 'run'}-{where}.log"
        head = f"$ {command}\n# in {folder} ({where}), {_how(result)}, {wall} s\n"
        more = f"\n# the whole output: {result.log}" if result.log else ""
        await asyncio.to_thread(
            write_atomic, log, (head + result.text + more + "\n").encode(errors="replace")
        )
        kind: Literal["pass", "fail", "timeout"] = "timeout"
        if result.ended == "exit":
            kind = "pass" if result.exit_code == 0 else "fail"
        outcome = VerifyOutcome(
            command=command, exit_code=result.exit_code, wall_s=wall, log=str(log), outcome=kind
        )
        if result.ended == "cancelled":
            return _infra(command, "it was interrupted.")
        whole = await asyncio.to_thread(_whole_output, result) if kind == "fail" else ""
        failing = frozenset(_PYTEST.findall(whole)) | frozenset(_UNITTEST.findall(whole))
        return Verification(outcome, result.text[-FEEDBACK_CHARS:], failing)


def new_failures(found: Verification, base: Verification | None) -> str:
    """The failing tests that the base does not have, as a list for people; empty when none are named."""
    new = sorted(found.failing - (base.failing if base else frozenset()))
    more = f" and {len(new) - SHOWN_IDS} more" if len(new) > SHOWN_IDS else ""
    return ", ".join(new[:SHOWN_IDS]) + more


def _whole_output(result: CommandResult) -> str:
    """The full log where the shell kept one (bounded there): a long run names its failures beyond the kept head and tail."""
    try:
        return Path(result.log).read_text(errors="replace") if result.log else result.text
    except OSError:
        return result.text


def _how(result: CommandResult) -> str:
    return f"exit code {result.exit_code}" if result.ended == "exit" else f"ended by {result.ended}"


def _infra(command: str, why: str) -> Verification:
    return Verification(VerifyOutcome(command=command, outcome="infra"), why)
