"""The driver's end of the janitor: start it, tell it what to remove, let it go (ray.md 15, 18)."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError

SCRIPT = Path(__file__).with_name("janitor.py")
START_S = 10.0


class Janitor:
    """Holds the write end of the janitor's pipe. When this process dies, however it dies, the pipe closes by itself.

    Blocking calls of a few milliseconds (``start``: about 30): call ``start`` before the event loop is busy, or in a thread.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, marker: Mapping[str, str], rm_prefix: Path) -> None:
        """``marker`` is the one NAME: VALUE that all children of this run carry; ``rm_prefix`` an absolute folder.

        The janitor's own environment is empty, so that no sweep, this run's or an outer one's, can find it.

        Raises:
            OpenDevError: ``INTERNAL`` for a wrong argument or a second start, ``INFRA`` when it does not start.
        """
        if len(marker) != 1 or not all(marker.values()) or not rm_prefix.is_absolute():
            raise OpenDevError(
                ErrorKind.INTERNAL, "The janitor needs exactly one marker and an absolute folder."
            )
        if self._process is not None:
            raise OpenDevError(ErrorKind.INTERNAL, "The janitor was started already.")
        ((name, value),) = marker.items()
        command = [sys.executable, "-S", "-E", str(SCRIPT), name, value, str(rm_prefix)]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
            code = process.wait(START_S)  # the first of the two forks; the janitor itself goes on
        except (OSError, subprocess.SubprocessError) as error:
            raise OpenDevError(ErrorKind.INFRA, f"The janitor did not start: {error}.") from error
        if code != 0:
            raise OpenDevError(ErrorKind.INFRA, f"The janitor did not start: exit code {code}.")
        self._process = process

    def remove_on_exit(self, path: Path) -> None:
        """Have a folder below the prefix removed should this process die without ``close(clean=True)``."""
        if "\n" in str(path) or not path.is_absolute():
            raise OpenDevError(ErrorKind.INTERNAL, f"The janitor cannot be told of the path {str(path)!r}.")
        self._tell(f"rm {path}\n")

    def close(self, *, clean: bool) -> None:
        """Let the janitor go. ``clean``: everything is tidied up; else it sweeps and removes now. Idempotent."""
        if clean:
            self._tell("done\n")
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()

    def _tell(self, line: str) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(line.encode("utf-8", "surrogateescape"))
            self._process.stdin.flush()
        except OSError as error:
            raise OpenDevError(
                ErrorKind.INFRA, f"The janitor is gone: {error}.", "Commands may outlive this run."
            ) from error
