"""`opendev` and `opendev --plain`: the conversation on a terminal, from the first prompt to a clean end (CLI-01)."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from ...core.errors import ErrorKind, OpenDevError
from ...core.exits import Exit
from ..stdio import Stdio, own_stdio, say
from ..task import PromptOptions
from .controller import converse


def run_conversation(working_dir: Path | None, overrides: Mapping[str, Any], options: PromptOptions) -> int:
    """Talk until the user leaves; the exit code. Raises ``OpenDevError``: usage where there is no terminal, or the options are
    wrong."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise OpenDevError(
            ErrorKind.USAGE,
            "There is no terminal to talk on.",
            'Give one prompt with -p: opendev -p "Fix the failing test"; or see opendev --help.',
        )
    with own_stdio() as stdio:
        code, again = asyncio.run(_talk(working_dir, overrides, options, stdio))
    if again:
        say(f"To go on: opendev --resume {again}\n")
    return int(code)


async def _talk(
    working_dir: Path | None, overrides: Mapping[str, Any], options: PromptOptions, stdio: Stdio
) -> tuple[Exit, str]:
    from ...ui.repl.screen import talk

    code = Exit.DONE
    async with converse(working_dir, overrides, options) as conversation:
        layout, project = conversation.sessions.layout, conversation.config.project
        with stdio.diverted(layout.run(conversation.sessions.held.id) / "runtime.log"):
            try:
                with _ended_by_signals():
                    await talk(conversation, history=layout.project(project.path) / "history", out=stdio.out)
            except asyncio.CancelledError:
                code = Exit.INTERRUPTED
            await (
                conversation.close()
            )  # before the terminal is its own again: Ray's last words go into the log
        held = conversation.sessions.held
    return code, held.id if held.files.transcript.exists() else ""


@contextlib.contextmanager
def _ended_by_signals() -> Generator[None]:
    """SIGTERM and SIGHUP end the screen; what runs is then ended as when the user leaves."""
    loop, this = asyncio.get_running_loop(), asyncio.current_task()
    numbers = (signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, lambda: this and this.cancel())
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
