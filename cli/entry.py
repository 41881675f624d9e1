"""The console script: answers --version before anything heavy is imported, and is the last border for errors."""

import gc
import os
import sys


def main() -> None:
    """Run ``opendev``; exit codes as in the command line's documentation."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from .. import __version__

        print(f"opendev {__version__}")
        return
    # Imports make hundreds of thousands of objects that all stay: 5 % of a short run. The model service ends this pause.
    gc.set_threshold(1_000_000, 20, 20)
    from .main import end_of_output, run
    from .stdio import murmur

    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the caller closed it
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - open until the end
        elif name == "stderr":
            sys.stderr = murmur(sys.stderr, 2)
    # A check mark must not end a run where the locale has none.
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="backslashreplace")
    code = end_of_output(run(sys.argv[1:]))
    gc.freeze()  # the interpreter would search every module for garbage before it ends: 0.2 s and more
    sys.exit(code)
