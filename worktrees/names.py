"""Names of branches, refs and folders: legal in git, on disk and on a command line, and never two for one thing."""

import hashlib
import re
from pathlib import Path

BRANCHES = "refs/heads/opendev/"
RESCUE = "refs/opendev/rescue/"
SNAPSHOT = "refs/opendev/snapshot/"
AGENTS = "refs/opendev/agents/"
SOURCE_TRAILER = "OpenDev-Source"  # in a landed commit: the task's commit that it squashes
AUTHOR = ("OpenDev", "opendev@localhost")
_MAX = 60


def slug(text: str, fallback: str = "agent") -> str:
    """``text`` as one part of a ref or file name: letters, digits, ``-``, ``_`` and inner dots; at most 60 characters."""
    kept = re.sub(r"[^A-Za-z0-9_.-]+", "-", text)
    kept = re.sub(r"\.{2,}", ".", kept).strip("-.")[:_MAX].strip("-.")
    kept = re.sub(r"(\.lock)+$", "", kept).strip("-.")
    return kept or fallback


def branch_name(run_id: str, task: str, attempt: int) -> str:
    """``opendev/<run>/<task>-<attempt>``."""
    return f"opendev/{slug(run_id, 'run')}/{slug(task)}-{attempt}"


def repo_key(common: Path) -> str:
    """One repository's key on this machine, made of its git *common* dir: linked worktrees share it."""
    digest = hashlib.sha256(str(common).encode(errors="surrogateescape")).hexdigest()[:12]
    place = common.parent if common.name == ".git" else common
    return f"{slug(place.name, 'repo')[:30]}-{digest}"
