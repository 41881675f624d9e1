"""What a fresh worktree lacks: untracked files of the user's tree, and whatever ``setup`` makes (T-17)."""

import asyncio
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pathspec import GitIgnoreSpec

from ..core.errors import ErrorKind, OpenDevError
from ..core.ports import CommandResult, Shell

MAX_FILES = 20_000
MAX_BYTES = 2_000_000_000


class Provision:
    """Fills worktrees: copies, then ``setup``. ``clear`` takes away what is still as it was put, so that it is never committed."""

    def __init__(
        self,
        *,
        repo: Path,
        patterns: tuple[str, ...],
        setup: str,
        shell: Shell,
        env: Mapping[str, str],
        timeout_s: float,
    ) -> None:
        self._repo, self._patterns, self._setup = repo, patterns, setup
        self._shell, self._env, self._timeout_s = shell, env, timeout_s

    async def fill(self, folder: Path) -> dict[str, str]:
        """Copy and set up ``folder``; the copied paths with their hashes.

        Raises ``OpenDevError`` (setup) with the output's end when the set-up command fails or the copy is too big.
        """
        copied = await asyncio.to_thread(self._copy, folder) if self._patterns else {}
        if self._setup:
            result = await self._shell.run(
                self._setup, cwd=folder, env=self._env, idle_s=self._timeout_s, total_s=self._timeout_s
            )
            if result.exit_code != 0:
                await asyncio.to_thread(clear, folder, copied)
                raise _setup_failed(self._setup, result)
        return copied

    def _copy(self, folder: Path) -> dict[str, str]:
        copied: dict[str, str] = {}
        size = 0
        for path in self._wanted():
            source, target = self._repo / path, folder / path
            if os.path.lexists(target) or not target.parent.resolve().is_relative_to(folder.resolve()):
                continue  # tracked there already, or it would leave the worktree through a link
            size += source.stat().st_size
            if len(copied) >= MAX_FILES or size > MAX_BYTES:
                raise OpenDevError(
                    ErrorKind.SETUP,
                    f"`copy` matches more than {MAX_FILES} files or {MAX_BYTES // 1_000_000} MB in {self._repo}.",
                    "Name fewer files, or make them with `setup`.",
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
            copied[path] = _digest(target)
        return copied

    def _wanted(self) -> Iterator[str]:
        spec = GitIgnoreSpec.from_lines([p if p.startswith("/") else f"/{p}" for p in self._patterns])
        for top, folders, names in os.walk(self._repo):
            folders[:] = [name for name in folders if name != ".git"]
            for name in sorted(names):
                path = Path(top) / name
                relative = path.relative_to(self._repo).as_posix()
                if spec.match_file(relative) and path.is_file() and not path.is_symlink():
                    yield relative


def clear(folder: Path, put: Mapping[str, str]) -> None:
    """Delete the files of ``put`` that still have the content they were put with."""
    for path, digest in put.items():
        target = folder / path
        if target.is_file() and not target.is_symlink() and _digest(target) == digest:
            target.unlink()


def hashes(folder: Path, paths: Iterable[str]) -> dict[str, str]:
    """The hashes of those of ``paths`` that are regular files."""
    places = {path: folder / path for path in paths}
    return {
        path: _digest(place) for path, place in places.items() if place.is_file() and not place.is_symlink()
    }


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _setup_failed(command: str, result: CommandResult) -> OpenDevError:
    how = (
        f"exit code {result.exit_code}"
        if result.exit_code is not None
        else f"no end in time ({result.ended})"
    )
    return OpenDevError(
        ErrorKind.SETUP,
        f"The set-up command `{command}` failed with {how}:\n{result.text[-2000:]}",
        "Mend `setup` in the ticket file; it runs in a fresh worktree.",
    )
