"""One working folder: made, checked against tampering, inspected for work that is nowhere else, removed."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from .git import Git, show
from .repository import Repository
from .snapshot import GITLINK, Tree, write_tree


@dataclass(frozen=True, slots=True)
class Checkout:
    """A linked worktree at ``path``. Its admin dir is found by that path, never by what the folder itself claims."""

    repo: Repository
    path: Path
    scratch: Path

    def admin_dir(self) -> Path | None:
        """``<common>/worktrees/<name>`` of this folder, or None when git does not know it."""
        for gitdir in sorted((self.repo.common / "worktrees").glob("*/gitdir")):
            if _read(gitdir) == f"{self.path}/.git":
                return gitdir.parent
        return None

    def git(self) -> Git:
        """git in this folder, told where everything is. Raises ``OpenDevError`` when the folder is not registered."""
        admin = self.admin_dir()
        if admin is None or not self.path.is_dir():
            raise OpenDevError(
                ErrorKind.GIT, f"The folder {self.path} is no registered worktree of {self.repo.common}."
            )
        return replace(self.repo.admin, folder=self.path, git_dir=admin, work_tree=self.path)

    def add(self, commit: str, branch: str, reason: str) -> None:
        """Register the folder at ``branch`` (empty: detached at ``commit``), locked, with no file in it yet."""
        what = [str(self.path), branch] if branch else ["--detach", str(self.path), commit]
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.repo.admin.run(
            "worktree", "add", "--quiet", "--no-checkout", "--lock", "--reason", reason, *what
        )

    def populate(self, commit: str) -> None:
        """Write the files of ``commit`` and prove that the folder is what it should be; a sparse cone is inherited."""
        git = self.git()
        git.run("reset", "--hard", "--quiet")
        self.assert_pointer()
        if (head := git.resolve("HEAD")) != commit:
            raise OpenDevError(
                ErrorKind.GIT,
                f"The new worktree {self.path} is at {head or 'no commit'} instead of {commit}.",
            )

    def assert_pointer(self) -> None:
        """Raise ``OpenDevError`` unless the folder's ``.git`` file points to its own admin dir of this repository (T11)."""
        admin = self.admin_dir()
        pointer = self.path / ".git"
        if admin is None:
            problem = "git no longer knows it"
        elif pointer.is_symlink() or not pointer.is_file():
            problem = "its .git file is gone or was replaced"
        elif _read(pointer) != f"gitdir: {admin}":
            problem = "its .git file points elsewhere"
        elif (admin / (_read(admin / "commondir") or "?")).resolve() != self.repo.common:
            problem = "its admin folder points to another repository"
        else:
            top = replace(self.repo.admin, folder=self.path, git_dir=None).line(
                "rev-parse", "--show-toplevel"
            )
            if Path(top) == self.path:
                return
            problem = f"git takes {top} for its root"
        raise OpenDevError(
            ErrorKind.GIT,
            f"The worktree {self.path} cannot be trusted: {problem}. Nothing was written or removed.",
            "Look at the folder by hand; `opendev worktrees doctor` lists it.",
        )

    def branch(self) -> str:
        """The full ref that HEAD names, or an empty text when it is detached."""
        return self.git().run("symbolic-ref", "--quiet", "HEAD", ok=(0, 1)).text

    def tree(self) -> Tree:
        """The folder's present content."""
        git = self.git()
        return write_tree(git, self.scratch, self.head())

    def head(self) -> str:
        """The commit of the folder's HEAD. Raises ``OpenDevError`` when there is none."""
        if commit := self.git().resolve("HEAD"):
            return commit
        raise OpenDevError(ErrorKind.GIT, f"HEAD of the worktree {self.path} names no commit.")

    def at_risk(self) -> tuple[str, ...]:
        """Why removing the folder could lose work, in sentences; empty = proven safe. Raises ``OpenDevError`` when unknown (W01)."""
        self.assert_pointer()
        git, head, tree = self.git(), self.head(), self.tree()
        found: list[str] = []
        if changed := git.diff_names(head, tree.id, "--name-only"):
            found.append(f"{len(changed)} uncommitted files ({', '.join(map(show, changed[:5]))})")
        elif not git.test("diff-index", "--cached", "--quiet", "--ignore-submodules=dirty", "HEAD", "--"):
            found.append("staged changes that are not committed")
        if tree.nested:
            found.append(f"nested repositories that no commit covers ({', '.join(tree.nested)})")
        if not reachable(self.repo.admin, head):
            found.append(f"commit {head[:12]} that no ref holds")
        return (*found, *self.submodules_at_risk(tree.id))

    def submodules_at_risk(self, tree: str) -> tuple[str, ...]:
        """Submodules with changes, or commits that none of their remotes has (gsd#2137)."""
        found: list[str] = []
        for path in self._submodules(tree):
            git = replace(self.repo.admin, folder=self.path / path, git_dir=None)
            if git.run("status", "--porcelain", "--untracked-files=all").text:
                found.append(f"uncommitted changes in submodule {show(path)}")
            if git.run("rev-list", "--max-count=1", "--all", "HEAD", "--not", "--remotes").text:
                found.append(f"commits in submodule {show(path)} that none of its remotes has")
        return tuple(found)

    def _submodules(self, tree: str) -> tuple[str, ...]:
        entries = self.repo.admin.run("ls-tree", "-r", "-z", tree).fields
        paths = (entry.partition("\t")[2] for entry in entries if entry.startswith(GITLINK))
        return tuple(path for path in paths if (self.path / path / ".git").exists())

    def repair_pointer(self) -> bool:
        """Write the ``.git`` file anew, so that git can remove the folder. False when a repository stands in its place."""
        pointer, admin = self.path / ".git", self.admin_dir()
        if admin is None or (pointer.is_dir() and not pointer.is_symlink()):
            return False
        pointer.unlink(missing_ok=True)
        pointer.write_text(f"gitdir: {admin}\n")
        return True

    def remove(self, *, force: bool, disposable: bool = False) -> None:
        """Take the folder away, and prove that it is gone. ``force`` only after a proof. Raises ``OpenDevError``.

        ``disposable``: nothing in it counts as work, so what a late writer put there while git removed it goes too.
        """
        admin = self.admin_dir()
        if admin is not None and (admin / "locked").exists():
            self.repo.admin.run("worktree", "unlock", str(self.path))
        removed = self.repo.admin.run(
            "worktree", "remove", *(["--force"] if force else []), str(self.path), ok=(0, 1, 128, 255)
        )
        if disposable and self.admin_dir() is None:
            shutil.rmtree(self.path, ignore_errors=True)
        if self.path.exists() or self.admin_dir() is not None:
            raise OpenDevError(
                ErrorKind.GIT, f"The worktree {self.path} could not be removed: {removed.err.strip()}"
            )


def reachable(git: Git, commit: str, *, without: str = "") -> bool:
    """Whether a ref other than ``without`` holds ``commit``."""
    refs = git.run("for-each-ref", "--contains", commit, "--format=%(refname)").text.split()
    return any(ref != without for ref in refs)


def _read(path: Path) -> str:
    """The first line of a small file, or an empty text."""
    try:
        return path.read_text(errors="surrogateescape").strip()
    except OSError:
        return ""
