"""A terminal that a test types into and reads as a person does: tmux, on a server of its own."""

import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self
from uuid import uuid4

import pytest

from .waiting import until

TMUX = shutil.which("tmux")
needs_tmux = pytest.mark.skipif(TMUX is None, reason="tmux is not installed")
PROMPT = "ready$ "


class Tmux:
    """A shell in a terminal of this size, in ``folder``, with exactly this environment."""

    def __init__(self, folder: Path, env: Mapping[str, str], *, columns: int = 80, rows: int = 24) -> None:
        self._socket = f"opendev-test-{uuid4().hex[:8]}"
        self._size = ("-x", str(columns), "-y", str(rows))
        assigned = " ".join(shlex.quote(f"{name}={value}") for name, value in env.items())
        self._command = (
            f"cd {shlex.quote(str(folder))} && exec env -i TERM=screen-256color LANG=C.UTF-8 {assigned} "
            f"PS1={shlex.quote(PROMPT)} sh -i"
        )

    def __enter__(self) -> Self:
        self._tmux("-f", "/dev/null", "new-session", "-d", "-s", "t", *self._size, self._command)
        self._tmux("set-option", "-g", "escape-time", "10")
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server")

    def type(self, text: str, *, enter: bool = True) -> None:
        """Type the text as it is."""
        self._tmux("send-keys", "-t", "t", "-l", text)
        if enter:
            self.key("Enter")

    def key(self, *names: str) -> None:
        """Press keys, by tmux's names for them."""
        self._tmux("send-keys", "-t", "t", *names)

    def resize(self, columns: int, rows: int) -> None:
        """Another size."""
        self._tmux("resize-window", "-t", "t", "-x", str(columns), "-y", str(rows))

    def screen(self) -> str:
        """What is on the screen now."""
        return self._tmux("capture-pane", "-p", "-t", "t")

    def everything(self) -> str:
        """The screen and what has scrolled away."""
        return self._tmux("capture-pane", "-p", "-J", "-t", "t", "-S", "-2000")

    async def sees(self, text: str) -> None:
        """Wait until ``text`` is on the screen."""
        await self.waits(lambda: text in self.screen(), f"{text!r} did not appear")

    async def rests(self) -> None:
        """Wait until the shell's own prompt is the last line again."""
        await self.waits(lambda: self.screen().rstrip().endswith(PROMPT.strip()), "it did not end")

    async def waits(self, condition: Callable[[], bool], otherwise: str) -> None:
        """Wait for it; where it does not come the test fails and shows the terminal."""
        try:
            await until(condition, 40)
        except TimeoutError:
            pytest.fail(f"{otherwise}:\n{self.everything()}")

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            [TMUX or "tmux", "-L", self._socket, *arguments], capture_output=True, text=True, check=False
        )
        return done.stdout
