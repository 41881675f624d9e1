"""Whether a repository's own git configuration names programs, which a plain `git status` or `git diff` would run (T08, T10)."""

import os
import re
from itertools import islice
from pathlib import Path

from ..core.approval import ApprovalLevel
from .shell import parse
from .unwrap import layers
from .verdict import Verdict, allow, ask

MAX_BYTES = 1_000_000
MAX_COMMANDS = 2_000
_SECTION = re.compile(r'^\s*\[\s*([\w.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]\s*(.*)$')
_SETTING = re.compile(r"^\s*([A-Za-z][\w-]*)\s*(?:=\s*(.*?))?\s*$")
# What only reading commands run, or what leads them to another configuration; hooks run only where something is changed.
_PROGRAMS = re.compile(
    r"core\.(?:fsmonitor|sshcommand|worktree|alternaterefscommand|gitproxy)|diff\.external|diff\..*\.(?:command|textconv)"
    r"|filter\..*\.(?:clean|smudge|process)|gpg\.(?:.*\.)?program|include(?:if\..*)?\.path|extensions\.worktreeconfig"
)
_INDEX_HOOK = "post-index-change"
# Switches, and well-known programs found on PATH, with plain words.
_HARMLESS = re.compile(
    r"(?i)true|false|yes|no|on|off|0|1|"
    r"|(?:git-lfs|git-crypt|nbstripout|gpg2?|exiftool|pdftotext|xxd|hexdump|strings)(?: [\w%./=-]+)*"
)


def judge_git(command: str, level: ApprovalLevel, root: Path) -> Verdict:
    """Ask about a command line with git in it, when the repository would have git run a program of its choice.

    At the level auto it passes, as the project's own tests do.
    """
    if level is ApprovalLevel.AUTO or "git" not in command:
        return allow("repository")
    if all(item.name != "git" for item, _ in islice(layers(parse(command)), MAX_COMMANDS)):
        return allow("repository")
    key = names_programs(root)
    why = f"The configuration of this repository names a program that git would run ({key})."
    return ask("repository", why) if key else allow("repository")


def names_programs(root: Path) -> str:
    """The first such setting of the repository that ``root`` is a checkout of; empty when there is none. Blocking, reads only.

    A configuration that cannot be read counts as one.
    """
    folder = next((place for place in (root, *root.parents) if (place / ".git").exists()), None)
    if folder is None:
        return ""
    try:
        text = (_common(folder / ".git") / "config").read_bytes()[:MAX_BYTES].decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        return str(error)
    settings = _settings(text)
    found = (key for key, value in settings if _PROGRAMS.fullmatch(key) and not _HARMLESS.fullmatch(value))
    return next(found, "") or _index_hook(folder, settings)


def _index_hook(folder: Path, settings: list[tuple[str, str]]) -> str:
    """The only hook that a reading command runs: `git status` writes the index anew."""
    if any(key.startswith("hook.") and value == _INDEX_HOOK for key, value in settings):
        return _INDEX_HOOK
    own = next((value for key, value in reversed(settings) if key == "core.hookspath"), "")
    place = folder / Path(own).expanduser() if own else _common(folder / ".git") / "hooks"
    return _INDEX_HOOK if os.access(place / _INDEX_HOOK, os.X_OK) else ""


def _common(dot: Path) -> Path:
    if dot.is_dir():
        return dot
    admin = dot.parent / dot.read_text("utf-8", "surrogateescape").removeprefix("gitdir:").strip()
    pointer = admin / "commondir"
    return admin / pointer.read_text("utf-8", "surrogateescape").strip() if pointer.is_file() else admin


def _settings(text: str) -> list[tuple[str, str]]:
    """Keys in lower case (the middle part too: it only matters that it is there), values without quotes."""
    found: list[tuple[str, str]] = []
    section = ""
    for line in re.sub(r"\\\r?\n", "", text).splitlines():
        head = _SECTION.match(line)
        if head:
            section = ".".join(part for part in (head[1], head[2]) if part).casefold()
            line = head[3]
        setting = _SETTING.match(line)
        if setting:
            found.append(
                (f"{section}.{setting[1].casefold()}", (setting[2] or "true").replace('"', "").strip())
            )
    return found
