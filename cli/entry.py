"""The console script: answers --version before anything heavy is imported, and is the last border for errors."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper


def main() -> None:
    """Run ``opendev``; exit codes as in the command line's documentation."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from .. import __version__

        print(f"opendev {__version__}")
        return
    from .main import run

    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(
            errors="backslashreplace"
        )  # a check mark must not end a run where the locale has none
    code = run(sys.argv[1:])
    _flush()
    sys.exit(code)


def _flush() -> None:
    """Write the rest out. When the reader has gone, what is left goes nowhere, so that the exit code stays the command's."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
