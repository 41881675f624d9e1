"""The console script: answers --version before anything heavy is imported, and is the last border for errors."""

import sys


def main() -> None:
    """Run ``opendev``; exit codes as in the command line's documentation."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from .. import __version__

        print(f"opendev {__version__}")
        return
    from .main import run

    sys.exit(run(sys.argv[1:]))
