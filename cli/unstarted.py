"""What a command that could not even start prints where JSON was asked for: standard output is JSON whatever happens (cli.md)."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..core.errors import ErrorInfo

_JSON = ("json", "stream-json")
_NO_TOKENS = {"input": 0, "output": 0, "cached": 0}


def unstarted(arguments: Sequence[str], info: ErrorInfo, code: int) -> str:
    """One line with the fields of a result, as far as there are any; empty when the arguments ask for no JSON."""
    words = [
        piece for word in arguments for piece in (word.split("=", 1) if word.startswith("--") else [word])
    ]
    form = next((value for name, value in pairwise(words) if name == "--output" and value in _JSON), "")
    if not form:
        return ""
    whole: dict[str, Any] = {"schema": 1}
    whole |= _batch() if "swarm" in words else _prompt()
    whole |= {"exit_code": code, "error": info.model_dump(mode="json")}
    if form == "stream-json":
        whole = {"seq": 1, "at": "", "run": "", "agent": "", "kind": "report", **whole}
    return json.dumps(whole) + "\n"


def _prompt() -> dict[str, Any]:
    counts = {
        "turns": 0,
        "tool_calls": 0,
        "model_calls": 0,
        "tokens": _NO_TOKENS,
        "cost_usd": 0.0,
        "wall_s": 0.0,
    }
    return {"session_id": "", "status": "failed", "exit_code": 0, "text": "", **counts, "files_changed": []}


def _batch() -> dict[str, Any]:
    from ..core.ticket import RunReport  # a wrong word on the command line need not wait for it

    report = RunReport(run_id="", status="failed", exit_code=0, repo="", base="", into="", head="")
    return json.loads(report.to_json())
