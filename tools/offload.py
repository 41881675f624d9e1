"""Long results go to a file in the scratch folder and leave a preview and the way back to them (TOR-05, TOR-06, C-16, C-17)."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.model import Frozen
from ..core.tool import Effect, Limits, Tool
from .failing_part import failing_part

FILE_BYTES = 5_000_000  # of one offloaded file; head and tail are kept
FILES = 500  # in one scratch folder; the oldest go first
_WINDOW = frozenset({"offset", "max_lines"})


@dataclass(frozen=True, slots=True)
class Offloader:
    """Writes to one agent's scratch folder. ``tools`` are the names the agent has: no advice names another (TOR-06)."""

    scratch: Path
    limits: Limits
    tools: frozenset[str]

    def shorten(self, tool: Tool[Any], args: Frozen, call_id: str, text: str, *, failed: bool = False) -> str:
        """``text`` itself up to the limit; else it is written to a file and a preview that names the file is returned.

        The limit is 8,000 characters; a window of ``read_file`` that was asked for by ``offset`` or ``max_lines`` may
        have 30,000. Of a failed command the failing part is kept too (TOR-09). Blocking; raises ``OSError`` when the
        scratch folder cannot be written.
        """
        window = tool.name == "read_file" and _WINDOW & args.model_fields_set
        whole = window or tool.name == "batch_tool"  # the results in a batch were shortened one by one
        limit = self.limits.result_chars if whole else self.limits.offload_chars
        if len(text) <= limit:
            return text
        shown = self.write(tool.name, call_id, text)
        failing = failing_part(text) if failed and Effect.EXEC in tool.effects else ""
        return (
            f"{shown}\n[Why it failed, its last lines without what passed:]\n{failing}" if failing else shown
        )

    def write(self, name: str, call_id: str, text: str) -> str:
        """Save ``text`` and return its preview."""
        path = self.save(name, call_id, text)
        lines = text.count("\n") + (not text.endswith("\n"))
        return (
            f"{text[: self.limits.preview_chars]}\n"
            f"[Output offloaded: {lines:,} lines, {len(text):,} chars → {path}]\n{self._advice()}"
        )

    def save(self, name: str, call_id: str, text: str) -> Path:
        """Write ``text`` (mode 0600, at most 5 MB, head and tail kept) to a new file."""
        self.scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = self.scratch / "results"
        folder.mkdir(exist_ok=True, mode=0o700)
        path = _fresh(folder, f"{_safe(name)}-{_safe(call_id)}")
        data = text.encode("utf-8", "replace")
        if len(data) > FILE_BYTES:
            half = FILE_BYTES // 2
            left_out = len(data) - 2 * half
            data = data[:half] + f"\n[… {left_out:,} bytes left out …]\n".encode() + data[-half:]
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        _prune(folder)
        return path

    def _advice(self) -> str:
        advice: list[str] = []
        if "read_file" in self.tools:
            advice.append("Read parts of it by read_file with offset and max_lines")
        if "search" in self.tools:
            advice.append("find the lines you need by search with its path")
        if "spawn_subagent" in self.tools:
            advice.append("or let a Code-Explorer sub-agent look through it")
        return f"{', '.join(advice)}." if advice else "Ask for less: a narrower call gives a shorter result."


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)[:60] or "call"


def _fresh(folder: Path, stem: str) -> Path:
    """A name that is not taken: providers repeat call ids."""
    for number in range(FILES * 2):
        path = folder / (f"{stem}.txt" if number == 0 else f"{stem}-{number}.txt")
        if not path.is_symlink() and not path.exists():
            return path
    raise OSError(f"no free name for {stem} in {folder}")


def _prune(folder: Path) -> None:
    """Keep the newest files only."""
    files = sorted(folder.iterdir(), key=lambda item: item.lstat().st_mtime_ns)
    for old in files[:-FILES]:
        old.unlink(missing_ok=True)
