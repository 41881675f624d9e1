"""Looks for what changed in a project since its last snapshot, and sorts what a snapshot covers from what it leaves out."""

import os
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .git import Git

MAX_WALK = 2_000  # entries looked at to see whether a folder is empty
MOST_PATHS = 500  # named on one command line


@dataclass(frozen=True, slots=True)
class Rules:
    """What a snapshot covers; a file larger than ``max_file`` bytes is left out, more than the others allow is refused."""

    ignored: Literal["skip", "cover"] = "skip"
    max_files: int = 100_000
    max_file: int = 10_000_000
    max_new: int = 200_000_000


@dataclass(slots=True)
class Scan:
    """What differs from the index of the store, and what is left out of it."""

    add: list[str] = field(default_factory=list[str])
    remove: list[str] = field(default_factory=list[str])
    nested: list[str] = field(default_factory=list[str])
    huge: list[str] = field(default_factory=list[str])
    odd: list[str] = field(default_factory=list[str])
    empty: list[str] = field(default_factory=list[str])
    perms: dict[str, int] = field(default_factory=dict[str, int])
    links: dict[str, bool] = field(default_factory=dict[str, bool])  # folders that lie behind a link
    new_bytes: int = 0


class Scanner:
    """``prefix`` is the project's place below ``top``; ``never`` are patterns of what is OpenDev's own. Blocking; raises ``OpenDevError``."""

    def __init__(self, git: Git, top: Path, prefix: str, rules: Rules, never: tuple[str, ...]) -> None:
        self._git, self._top, self._prefix, self._rules, self._never = git, top, prefix, rules, never

    def scan(self) -> Scan:
        """Look at every file."""
        with ThreadPoolExecutor(1) as beside:
            where = ("--", f":(top,literal){self._prefix}") if self._prefix else ()
            wait = beside.submit(
                self._git.run,
                "diff-files",
                "--name-status",
                "-z",
                "--no-renames",
                "--ignore-submodules=all",
                *where,
            )
            others = self._listed("--directory")
            changed = wait.result().fields
        scan = Scan()
        names = [*self._untracked(others, changed[1::2], scan), *changed[1::2]]
        known = set(changed[1::2])
        for path in dict.fromkeys(names):
            self._sort(path, scan, known=path in known)
        return scan

    def _listed(self, *args: str, only: Sequence[str] = ()) -> tuple[str, ...]:
        if self._rules.ignored == "skip":
            rules = ("--exclude-standard",)
        else:
            rules = tuple(f"--exclude={name}" for name in self._never)
        where = [f":(top,literal){path}" for path in only or ([self._prefix] if self._prefix else [])]
        return self._git.run("ls-files", "--others", "-z", *rules, *args, "--", *where).fields

    def _untracked(self, others: Sequence[str], changed: Sequence[str], scan: Scan) -> list[str]:
        """The files among ``others``, also those in its folders; nested repositories and empty folders are noted."""
        names: list[str] = []
        deeper: list[str] = []
        for path in others:
            if not path.endswith("/"):
                names.append(path)
            elif os.path.lexists(self._top / path / ".git"):
                scan.nested.append(path)
            elif _empty(self._top / path, scan.empty, self._top):
                continue
            else:
                deeper.append(path.rstrip("/"))
        gone = [
            path for path in changed if (self._top / path).is_dir() and not (self._top / path).is_symlink()
        ]
        deeper += gone  # a folder in the place of a file: git does not list it by itself
        if deeper:
            whole = self._listed(only=deeper) if len(deeper) < MOST_PATHS else self._listed()
            scan.nested += [path for path in whole if path.endswith("/") and path not in scan.nested]
            names += [path for path in whole if not path.endswith("/")]
        return names

    def _sort(self, path: str, scan: Scan, *, known: bool) -> None:
        """Where a new or changed path belongs."""
        place = f"{self._top}/{path}"
        try:
            status = os.lstat(place)
        except OSError:
            if known:  # git sees for itself that it is gone, but refuses to look behind a link
                behind = self._beyond_a_link(path.rpartition("/")[0], scan)
                (scan.remove if behind else scan.add).append(path)
            return
        link = stat.S_ISLNK(status.st_mode)
        if self._beyond_a_link(path.rpartition("/")[0], scan):
            pass
        elif not link and not (stat.S_ISREG(status.st_mode) and os.access(place, os.R_OK)):
            if not stat.S_ISDIR(status.st_mode):
                scan.odd.append(path)
        elif status.st_size > self._rules.max_file:
            scan.huge.append(path)
        else:
            scan.add.append(path)
            scan.new_bytes += status.st_size
            if not link:
                scan.perms[path] = stat.S_IMODE(status.st_mode)
            return
        if known:
            scan.remove.append(path)

    def _beyond_a_link(self, folder: str, scan: Scan) -> bool:
        """Whether a folder on the way has become a link: what lies behind it is not ours."""
        if not folder:
            return False
        if folder not in scan.links:
            above = folder.rpartition("/")[0]
            scan.links[folder] = self._beyond_a_link(above, scan) or os.path.islink(f"{self._top}/{folder}")  # noqa: PTH114
        return scan.links[folder]


def _empty(folder: Path, found: list[str], top: Path) -> bool:
    """Whether nothing but folders is in it; then the innermost ones are noted."""
    looked = 0
    inner: list[str] = []
    for place, folders, files in os.walk(folder):
        looked += len(folders) + len(files) + 1
        if files or looked > MAX_WALK or any((Path(place) / name).is_symlink() for name in folders):
            return False
        if not folders:
            inner.append(Path(place).relative_to(top).as_posix())
    found += inner
    return True
