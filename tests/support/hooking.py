"""Hooks for tests: settings in few words, and hook programs in shell and in Python."""

import json
import shlex
import sys
from typing import Any

from opendev.core.hooks import Hooks


def hooks(*groups: tuple[str, str] | tuple[str, str, str], timeout: float = 60.0) -> Hooks:
    """``(event, command)`` or ``(event, matcher, command)``, in order."""
    made: dict[str, list[Any]] = {}
    for event, *matcher, command in groups:
        group = {"matcher": "".join(matcher), "hooks": [{"command": command, "timeout": timeout}]}
        made.setdefault(event, []).append(group)
    return Hooks.model_validate(made)


def python(code: str) -> str:
    """A hook written in Python; ``letter`` is what it got."""
    whole = f"import json, sys\nletter = json.load(sys.stdin)\n{code}"
    return f"{shlex.quote(sys.executable)} -S -E -c {shlex.quote(whole)}"


def says(answer: Any, code: int = 0) -> str:
    """A hook in shell that answers with JSON and an exit code."""
    return f"echo {shlex.quote(json.dumps(answer))}; exit {code}"
