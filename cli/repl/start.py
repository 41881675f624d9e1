"""`opendev` and `opendev --plain`: the conversation on a terminal, from the first prompt to a clean end (CLI-01)."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Coroutine, Generator, Mapping
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
        with contextlib.suppress(OpenDevError):  # the terminal is gone: nobody reads it
            say(f"To go on: opendev --resume {again}\n")
    return int(code)


async def _talk(
    working_dir: Path | None, overrides: Mapping[str, Any], options: PromptOptions, stdio: Stdio
) -> tuple[Exit, str]:
    from ...ui.repl.screen import talk

    with _signals() as stop:
        async with converse(working_dir, overrides, options) as conversation:
            layout, project = conversation.sessions.layout, conversation.config.project
            with stdio.diverted(layout.run(conversation.sessions.held.id) / "runtime.log"):
                history = layout.project(project.path) / "history"
                code = await stop.unless(talk(conversation, history=history, out=stdio.out))
                await (
                    conversation.close()
                )  # before the terminal is its own again: Ray's last words go into the log
            held = conversation.sessions.held
    return code, held.id if held.files.transcript.exists() else ""


class _Stop:
    """A signal ends the screen, or keeps it from coming up; what runs is then ended as when the user leaves, undisturbed."""

    def __init__(self) -> None:
        self._screen: asyncio.Task[None] | None = None
        self._wanted = False

    def __call__(self) -> None:
        self._wanted = True
        if self._screen is not None:
            self._screen.cancel()

    async def unless(self, screen: Coroutine[Any, Any, None]) -> Exit:
        """Show the screen to its end; the exit code. Raises what it raises."""
        self._screen = asyncio.create_task(screen)
        if self._wanted:
            self._screen.cancel()
        await asyncio.wait({self._screen})
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self)  # the screen had it, or its keys
        if self._screen.cancelled():
            return Exit.INTERRUPTED
        self._screen.result()
        return Exit.DONE


@contextlib.contextmanager
def _signals() -> Generator[_Stop]:
    loop, stop = asyncio.get_running_loop(), _Stop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop)
    try:
        yield stop
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            loop.remove_signal_handler(number)
