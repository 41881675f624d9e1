"""The content of a working folder as a tree or a commit, made with an index of its own: the folder's index stays byte-identical."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from ..core.ids import new_id
from . import names
from .git import Git, show
from .repository import Repository

MAX_UNTRACKED_BYTES = 500_000_000
GITLINK = "160000"
KEPT = 50  # snapshots held by a ref


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree object and the nested repositories that it leaves out (their content is nowhere in it)."""

    id: str
    nested: tuple[str, ...]


def untracked(git: Git) -> tuple[str, ...]:
    """Untracked, not ignored files; a nested repository shows as one entry that ends with ``/``."""
    return git.run("ls-files", "--others", "--exclude-standard", "-z").fields


def write_tree(git: Git, scratch: Path, head: str) -> Tree:
    """Everything in the folder but ignored files and nested repositories, as a tree. ``head`` is the commit it grew from.

    Raises ``OpenDevError`` (git) when one file cannot be added: a snapshot counts only when it is whole (D15).
    """
    if git.git_dir is None or git.work_tree is None:
        raise OpenDevError(ErrorKind.INTERNAL, "A snapshot needs an explicit git dir and work tree.")
    scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
    index = scratch / f"index-{new_id()}"
    source = git.index or git.git_dir / "index"
    own = replace(git, folder=git.work_tree, index=index)
    try:
        if source.exists():
            _copy_index(source, index)
        _clear_hiding(own)
        new = untracked(own)
        nested = tuple(path for path in new if path.endswith("/"))
        _check_size(git.work_tree, new)
        own.run("add", "-A", "--sparse", "--", ".", *(f":(exclude,top,literal){path}" for path in nested))
        staged = _unknown_gitlinks(own, head)
        if staged:  # the agent staged a nested repository by hand: a link to commits that nobody else has
            own.run("update-index", "-z", "--force-remove", "--stdin", stdin=_listed(staged))
        return Tree(
            own.line("write-tree"), (*(show(path) for path in nested), *(f"{show(p)}/" for p in staged))
        )
    finally:
        for leftover in (index, index.with_name(f"{index.name}.lock")):
            leftover.unlink(missing_ok=True)


def _copy_index(source: Path, target: Path) -> None:
    """Copy an index with its time: git re-reads a file that is as young as the index, else an edit in the same second is missed."""
    with source.open("rb") as old, target.open("xb") as new:
        times = os.fstat(old.fileno())
        shutil.copyfileobj(old, new)
    os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))


def _clear_hiding(git: Git) -> None:
    """Undo, in this index only, the bits that hide a changed file from git (assume-unchanged; skip-worktree of a present file)."""
    entries = [(field[0], field[2:]) for field in git.run("ls-files", "-v", "-z").fields]
    assumed = [path for tag, path in entries if tag.islower()]
    skipped = [path for tag, path in entries if tag in "Ss" and os.path.lexists(git.folder / path)]
    for flag, paths in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)):
        if paths:
            git.run("update-index", flag, "-z", "--stdin", stdin=_listed(paths))


def _listed(paths: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _unknown_gitlinks(git: Git, head: str) -> tuple[str, ...]:
    """Paths staged as submodules that neither ``head`` nor a ``.gitmodules`` entry knows."""
    staged = {e.partition("\t")[2] for e in git.run("ls-files", "-s", "-z").fields if e.startswith(GITLINK)}
    if not staged:
        return ()
    known = {
        e.partition("\t")[2] for e in git.run("ls-tree", "-r", "-z", head).fields if e.startswith(GITLINK)
    }
    listed = git.run(
        "config", "--blob", ":.gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$", ok=(0, 1, 128)
    )
    declared = {field.partition("\n")[2] for field in listed.fields}
    return tuple(sorted(staged - known - declared))


def _check_size(folder: Path, paths: tuple[str, ...]) -> None:
    total = 0
    for path in paths:
        file = folder / path
        total += file.lstat().st_size if not path.endswith("/") and file.is_file() else 0
    if total > MAX_UNTRACKED_BYTES:
        raise OpenDevError(
            ErrorKind.GIT,
            f"The untracked files in {folder} hold {total // 1_000_000} MB, more than OpenDev commits ({MAX_UNTRACKED_BYTES // 1_000_000} MB).",
            "Add build output and data to .gitignore.",
        )


def write_commit(
    git: Git, tree: str, parents: tuple[str, ...], message: str, signature: dict[str, str]
) -> str:
    """A commit object; no hook, no signature program, no ref moves."""
    flags = [flag for parent in parents for flag in ("-p", parent)]
    reply = git.run(
        "commit-tree", tree, *flags, "-F", "-", stdin=message.encode(errors="replace"), env=signature
    )
    return reply.text


def dirty_paths(repo: Repository) -> tuple[str, ...]:
    """Paths of the user's checkout that differ from HEAD: staged, unstaged, untracked; ignored ones do not count."""
    return status_paths(repo.user_tree())


def status_paths(git: Git) -> tuple[str, ...]:
    """Paths that ``git status`` names, renames as their new name."""
    fields = git.run(
        "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=dirty"
    ).fields
    return tuple(show(field[3:]) for field in fields)


def snapshot(repo: Repository, git: Git, scratch: Path, now: float) -> str:
    """A folder's present files (staged, unstaged and untracked) as a commit on its HEAD, kept by a ref; HEAD itself when clean.

    ``git`` is the folder's own. Its files, index and HEAD are not touched. Raises ``OpenDevError`` when the tree has
    unresolved conflicts.
    """
    head = git.resolve("HEAD")
    if unmerged := git.run("ls-files", "-u", "-z").fields:
        path = show(unmerged[0].partition("\t")[2])
        raise OpenDevError(
            ErrorKind.GIT,
            f"{git.work_tree} has unresolved conflicts ({path}), so it cannot be snapshot.",
            "Resolve or abort the merge.",
        )
    tree = write_tree(git, scratch, head)
    if tree.nested:
        raise OpenDevError(
            ErrorKind.GIT,
            f"{git.work_tree} holds nested repositories that a snapshot cannot cover: {', '.join(tree.nested)}.",
            "Add them to .gitignore, or run with --dirty ignore.",
        )
    if tree.id == git.line("rev-parse", f"{head}^{{tree}}"):
        return head
    commit = write_commit(
        repo.admin, tree.id, (head,), "Uncommitted state of the working folder\n", repo.identity(now)
    )
    repo.admin.run("update-ref", f"{names.SNAPSHOT}{commit}", commit)
    _forget_old(repo.admin)
    return commit


def _forget_old(admin: Git) -> None:
    """Keep the newest refs only: what was built on an older snapshot holds it by a branch of its own."""
    shown = admin.run(
        "for-each-ref", "--sort=-creatordate", "--format=%(refname)", names.SNAPSHOT.rstrip("/")
    )
    for ref in shown.text.splitlines()[KEPT:]:
        admin.run("update-ref", "-d", ref)
