"""Work on another node that does not see this disk: commits travel as git bundles, out whole and back thin (T-15, ray.md rule 19)."""

import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from ..core.errors import ErrorKind, OpenDevError
from ..core.ids import new_id
from ..core.model import Frozen
from . import names
from .git import NO_OBJECT, Git
from .journal import repository_lock
from .repository import Repository

_TIP = "refs/opendev/tip"
_FILES_ALLOWED = (("protocol.file.allow", "always"), ("fetch.fsckObjects", "true"))


class Parcel(Frozen):
    """A bundle: ``data`` holds the commits of ``tip`` that ``have`` (may be empty) does not reach. ``key`` names the repository."""

    key: str
    tip: str
    have: str = ""
    data: bytes


def pack(git: Git, key: str, tip: str, have: str = "") -> Parcel:
    """Bundle ``have..tip``; empty ``data`` when there is nothing between them. ``git`` has an explicit git dir.

    Raises ``OpenDevError`` (git), for a shallow repository too: its bundle could not be unpacked.
    """
    if git.line("rev-parse", "--is-shallow-repository") == "true" and not have:
        raise OpenDevError(
            ErrorKind.GIT,
            "A shallow clone cannot be sent to another node.",
            "Fetch its history: git fetch --unshallow",
        )
    if have and not git.run("rev-list", "--max-count=1", f"{have}..{tip}").text:
        return Parcel(key=key, tip=tip, have=have, data=b"")
    # A bundle holds refs, not bare commits; this one has a name of its own, so that packers do not meet.
    ref = f"refs/opendev/outgoing/{new_id()}"
    git.run("update-ref", ref, tip, NO_OBJECT)
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "parcel.bundle"
            git.run("bundle", "create", "--quiet", str(file), ref, *([f"^{have}"] if have else []))
            return Parcel(key=key, tip=tip, have=have, data=file.read_bytes())
    finally:
        git.run("update-ref", "-d", ref, tip)


def unpack(git: Git, parcel: Parcel, ref: str) -> str:
    """Fetch a parcel into ``git``'s repository under ``ref``; the commit. Raises ``OpenDevError`` when it is not what it says."""
    if parcel.data:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "parcel.bundle"
            file.write_bytes(parcel.data)
            source = _only_ref(git, file, parcel.tip)
            fetcher = replace(git, config=(*git.config, *_FILES_ALLOWED))
            fetcher.run(
                "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", str(file), f"+{source}:{ref}"
            )
    else:
        git.run("update-ref", ref, parcel.tip)
    if (found := git.resolve(ref)) != parcel.tip:
        raise OpenDevError(
            ErrorKind.GIT, f"The bundle brought {found or 'no commit'} instead of {parcel.tip}."
        )
    return found


def _only_ref(git: Git, file: Path, tip: str) -> str:
    heads = [line.split(" ", 1) for line in git.run("bundle", "list-heads", str(file)).text.splitlines()]
    if len(heads) != 1 or heads[0][0] != tip:
        raise OpenDevError(ErrorKind.GIT, f"The bundle does not hold exactly the commit {tip}.")
    return heads[0][1]


def accept(repo: Repository, agent: str, parcel: Parcel) -> str:
    """Take an agent's thin bundle into the user's repository under ``refs/opendev/agents/<agent>``; the ref's name."""
    if parcel.key != repo.key:
        raise OpenDevError(ErrorKind.GIT, f"The bundle is of repository {parcel.key}, not of {repo.key}.")
    ref = f"{names.AGENTS}{names.slug(agent)}"
    unpack(repo.admin, parcel, ref)
    return ref


class NodeCache:
    """The bare copies of repositories on one node, under ``home/cache``; worktrees of remote agents hang on them."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        self._home = home.resolve()
        self._env = env

    def has(self, key: str, commit: str) -> bool:
        """Whether this node holds ``commit`` already, so that ``base..tip`` is enough to send."""
        return (self._bare(key) / "HEAD").is_file() and bool(self._git(key).resolve(commit))

    def receive(self, parcel: Parcel) -> Git:
        """Put a parcel into the cache; git on the bare copy. Raises ``OpenDevError``."""
        bare = self._bare(parcel.key)
        with self._lock(parcel.key):
            if not (bare / "HEAD").is_file():
                bare.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                Git(bare.parent, self._env).run("init", "--quiet", "--bare", str(bare))
            git = self._git(parcel.key)
            # Every tip stays named: a later thin parcel may build on any of them.
            unpack(git, parcel, f"{_TIP}/{parcel.tip}")
        return git

    def worktree(self, parcel: Parcel, agent: str) -> Path:
        """A folder at the parcel's tip on a branch of its own, for one agent on this node."""
        git = self.receive(parcel)
        name = f"{names.slug(agent)}-{new_id(8)}"
        path = self._home / "worktrees" / parcel.key / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._lock(parcel.key):
            git.run(
                "worktree", "add", "--quiet", "--no-track", "-b", f"opendev/{name}", str(path), parcel.tip
            )
        return path

    def drop(self, key: str, path: Path) -> None:
        """Remove an agent's folder after its commits were sent back. Its branch in the cache stays, and with it the commits."""
        if path.resolve().parent != self._home / "worktrees" / key:
            raise OpenDevError(ErrorKind.GIT, f"The folder {path} is no worktree of this node's cache.")
        with self._lock(key):
            self._git(key).run("worktree", "remove", "--force", str(path))

    def send_back(self, key: str, commit: str, base: str) -> Parcel:
        """The thin bundle of an agent's commits since ``base``."""
        return pack(self._git(key), key, commit, base)

    def _lock(self, key: str) -> AbstractContextManager[None]:
        return repository_lock(self._home / "locks" / f"cache-{key}.lock")

    def _bare(self, key: str) -> Path:
        return self._home / "cache" / f"{key}.git"

    def _git(self, key: str) -> Git:
        bare = self._bare(key)
        return Git(bare, self._env, git_dir=bare)
