"""Where confined commands may write, what they may only read, and what they do not see (SAF-04, SAF-08, T-16)."""

import glob
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_TEMP = ("/tmp", "/var/tmp")  # noqa: S108 - what programs write to by name
_RESOLVERS = ("/run/systemd/resolve", "/run/nscd")  # name look-ups by a socket file leave the machine too


@dataclass(frozen=True, slots=True)
class Places:
    """Existing, real paths. Of two that contain each other the deeper one counts; everything unnamed may be read."""

    shared: tuple[Path, ...]  # written to by everybody: temporary folders, caches
    work: tuple[Path, ...]  # written to for this work
    fixed: tuple[Path, ...]  # only read, also where they lie inside the first two
    hidden: tuple[Path, ...]


def expand(patterns: Iterable[str], env: Mapping[str, str]) -> tuple[Path, ...]:
    """The existing places that ``~/…``, ``$NAME/…`` and globs stand for, links resolved; a variable that is not set stands for none."""
    found: dict[Path, None] = {}
    for pattern in patterns:
        head, slash, rest = pattern.partition("/")
        if head == "~" or head.startswith("$"):
            head = glob.escape(env.get("HOME" if head == "~" else head[1:], ""))
        text = head + slash + rest
        if text.startswith("/") and text.strip("/"):
            found.update((path.resolve(), None) for path in Path("/").glob(text.strip("/")) if path.exists())
    return tuple(found)


def temporary(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Temporary folders."""
    return expand((*_TEMP, "$TMPDIR"), env)


def resolvers() -> tuple[Path, ...]:
    """Sockets of name services."""
    return expand(_RESOLVERS, {})


def installs(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Where a set-up command installs to: the prefixes of the first Python and Node on its path."""
    programs = (
        shutil.which(name, path=env.get("PATH", os.defpath)) for name in ("python3", "python", "node")
    )
    prefixes = {Path(program).parent.parent for program in programs if program}
    return tuple(sorted(prefix.resolve() for prefix in prefixes if prefix != Path("/")))


@dataclass(frozen=True, slots=True)
class GitPlaces:
    """What git in a working folder has to write, and what nobody may change there."""

    write: tuple[Path, ...] = ()
    fixed: tuple[Path, ...] = ()


def git_places(root: Path) -> GitPlaces:
    """The git folders that belong to ``root``: looked up once, before any command could have changed what is there.

    In a linked worktree: its own administration, the object store without its packs, the folder of its branch. In a
    main checkout: ``.git`` but for configuration, hooks and what belongs to others.
    """
    pointer = next((one / ".git" for one in (root, *root.parents) if os.path.lexists(one / ".git")), None)
    if pointer is None or pointer.is_symlink():
        return GitPlaces()
    if not pointer.is_dir():
        return _linked(pointer)
    (pointer / "hooks").mkdir(exist_ok=True)  # one that is missing cannot be protected
    names = ("config", "config.worktree", "hooks", "info", "modules", "worktrees", "commondir")
    return GitPlaces((pointer,), _existing(pointer / name for name in names))


def _linked(pointer: Path) -> GitPlaces:
    """Only what git itself would have made is believed: a forged pointer must not open another repository."""
    admin = Path(_line(pointer).removeprefix("gitdir:").strip())
    common = admin.parent.parent
    sound = (
        admin.is_absolute()
        and admin.parent.name == "worktrees"
        and _line(admin / "commondir") == "../.."
        and _line(admin / "gitdir") == str(pointer)
        and admin.resolve() == admin
    )
    if not sound:
        return GitPlaces((), (pointer,))
    top = common.parent if common.name == ".git" else common
    write = [admin, common / "objects", common / "reftable"]
    branch = _line(admin / "HEAD").removeprefix("ref: ")
    if branch.startswith("refs/heads/") and ".." not in branch:
        for folder in (common / branch, common / "logs" / branch):
            folder.parent.mkdir(parents=True, exist_ok=True)
            write.append(folder.parent)
    own = (admin / name for name in ("commondir", "gitdir", "config.worktree"))
    packs = (common / "objects" / name for name in ("pack", "info"))
    return GitPlaces(_existing(write), _existing((pointer, top, *own, *packs)))


def _existing(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(path for path in paths if path.exists() and path.resolve() == path)


def _line(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape").strip()
    except OSError:
        return ""
