"""The user's repository: found, inspected before any work, and read; nothing here writes to its files, index, HEAD or config."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from . import names
from .git import MIN_VERSION, Git, carried, user_config, version

Identity = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as OpenDev sees it. ``common`` is the dir that all its worktrees share; ``git_dir`` the one of ``toplevel``."""

    toplevel: Path
    git_dir: Path
    common: Path
    head: str
    branch: str  # short name of the branch that is checked out; empty when HEAD is detached
    committer: Identity
    warnings: tuple[str, ...]
    admin: Git  # administration: refs, objects, worktrees; it has no working tree

    @property
    def key(self) -> str:
        """Its key on this machine."""
        return names.repo_key(self.common)

    def user_tree(self) -> Git:
        """git on the user's own checkout, for reading."""
        return replace(self.admin, folder=self.toplevel, git_dir=self.git_dir, work_tree=self.toplevel)

    def identity(self, now: float) -> dict[str, str]:
        """The variables that sign a commit: OpenDev is the author, the user the committer where known."""
        stamp = f"@{int(now)} +0000"
        name, email = self.committer
        return {
            "GIT_AUTHOR_NAME": names.AUTHOR[0],
            "GIT_AUTHOR_EMAIL": names.AUTHOR[1],
            "GIT_AUTHOR_DATE": stamp,
            "GIT_COMMITTER_NAME": name,
            "GIT_COMMITTER_EMAIL": email,
            "GIT_COMMITTER_DATE": stamp,
        }

    def checked_out(self) -> dict[str, str]:
        """Branch (short name) -> folder, for every worktree of the repository, the user's own included."""
        found: dict[str, str] = {}
        place = ""
        for field in self.admin.run("worktree", "list", "--porcelain", "-z").fields:
            key, _, value = field.partition(" ")
            if key == "worktree":
                place = value
            elif key == "branch":
                found[value.removeprefix("refs/heads/")] = place
        return found


def open_repository(repo: Path, env: Mapping[str, str]) -> Repository:
    """Find the repository that holds ``repo``, from a linked worktree too. Raises ``OpenDevError`` when it cannot be worked on."""
    found = version(env)
    if found < MIN_VERSION:
        spelled = ".".join(map(str, found))
        raise OpenDevError(
            ErrorKind.INFRA, f"git {spelled} is too old for OpenDev.", "Install git 2.38 or newer."
        )
    settings = user_config(env)
    git = Git(repo.resolve(), env, config=carried(settings))
    toplevel, git_dir, common = _places(git)
    admin = replace(git, folder=common, git_dir=common)
    tree = replace(git, folder=toplevel, git_dir=git_dir, work_tree=toplevel)
    head = tree.resolve("HEAD")
    if not head:
        raise OpenDevError(
            ErrorKind.GIT,
            f"The repository {toplevel} has no commit yet, so there is nothing to start from.",
            "Make a first commit.",
        )
    if admin.run("rev-parse", "--verify", "--quiet", "refs/heads/opendev", ok=(0, 1)).code == 0:
        raise OpenDevError(
            ErrorKind.GIT,
            f"The repository {toplevel} has a branch `opendev`, so no branch `opendev/…` can be made.",
            "Rename it: git branch -m opendev opendev-old",
        )
    branch = tree.run("symbolic-ref", "--quiet", "--short", "HEAD", ok=(0, 1)).text
    return Repository(
        toplevel, git_dir, common, head, branch, _committer(tree, settings), _warnings(tree, common), admin
    )


def _places(git: Git) -> tuple[Path, Path, Path]:
    if len(str(git.folder).splitlines()) > 1:
        raise OpenDevError(
            ErrorKind.GIT,
            f"The path {str(git.folder)!r} holds a line break, which git's own files for worktrees cannot.",
            "Rename the folder, or clone the repository to another.",
        )
    reply = git.run("rev-parse", "--is-bare-repository", "--is-inside-work-tree", ok=(0, 128))
    if reply.code or reply.text.split() != ["false", "true"]:
        raise OpenDevError(
            ErrorKind.GIT,
            f"The folder {git.folder} is not inside the working tree of a git repository (a bare repository does not count): "
            f"{reply.err.strip().splitlines()[0] if reply.err.strip() else reply.text.split()}.",
            "Name a checkout with --repo, or run `git init` and make a first commit.",
        )
    shown = git.run(
        "rev-parse", "--path-format=absolute", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"
    )
    toplevel, git_dir, common = (
        Path(line).resolve() for line in shown.out.decode(errors="surrogateescape").splitlines()
    )
    if not git.folder.is_relative_to(toplevel):
        raise OpenDevError(
            ErrorKind.GIT,
            f"The repository of {git.folder} says that its files are in {toplevel} (core.worktree), which does not hold that folder.",
            "Correct `core.worktree` in its configuration.",
        )
    return toplevel, git_dir, common


def _committer(git: Git, settings: Mapping[str, tuple[str, ...]]) -> Identity:
    own = (git.run("config", "--get", f"user.{key}", ok=(0, 1)).text for key in ("name", "email"))
    fallback = (settings.get(f"user.{key}", ("",))[-1] for key in ("name", "email"))
    name, email = (mine or theirs for mine, theirs in zip(own, fallback, strict=True))
    return (name, email) if name and email else names.AUTHOR


def _warnings(git: Git, common: Path) -> tuple[str, ...]:
    """What a worktree of this repository will not have, in sentences (T-17)."""
    found: list[str] = []
    if (common / "shallow").exists():
        found.append("The repository is a shallow clone: history before its cut cannot be compared.")
    if git.run("config", "--get-regexp", r"^remote\..*\.promisor$", ok=(0, 1)).code == 0:
        found.append(
            "The repository is a partial clone: objects that are not on this machine are not fetched."
        )
    entries = git.run("ls-files", "-s", "-z").fields
    if any(entry.startswith("160000 ") for entry in entries):
        found.append("The repository has submodules: they are not initialised in the worktrees of agents.")
    if git.run("config", "--get", "core.sparseCheckout", ok=(0, 1)).text == "true":
        found.append("The checkout is sparse: worktrees of agents get the same cone.")
    if filters := [name.removeprefix("filter.") for name in git.drivers() if name.startswith("filter.")]:
        found.append(
            f"The repository configures the filters {', '.join(filters)}: OpenDev does not run them; files under them stay as stored."
        )
    elif git.run("grep", "-qE", "filter=", "HEAD", "--", ":(glob)**/.gitattributes", ok=(0, 1)).code == 0:
        found.append(
            "Some files are under a filter (for example LFS): worktrees of agents hold them as stored."
        )
    return tuple(found)
