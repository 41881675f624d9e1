"""Chooses how commands are confined (bubblewrap, Landlock or not at all) and writes the command line that does it (SAF-08)."""

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...configs.schema import SandboxSettings
from ...core.errors import ErrorKind, OpenDevError
from . import landlock
from .places import GitPlaces, Places, expand, git_places, resolvers, temporary

Kind = Literal["bubblewrap", "landlock", "none"]
_PLACES_OF_BWRAP = (
    "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"  # never PATH: a project may lead it
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm")  # noqa: S108  # fmt: skip
_GPUS = ("/dev/dri", "/dev/kvm", "/dev/kfd", "/dev/nvidia*")
# What root keeps (Docker's set without raw sockets, devices and chroot): files of other owners stay usable.
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "NET_BIND_SERVICE")  # fmt: skip
_REFUSED = re.compile(
    r"Read-only file system|Permission denied|Operation not permitted|Network is unreachable|name resolution|resolve host|E(ROFS|ACCES)\b"
    r"|Docker daemon|gh auth login|Host key verification"
)
_OF_GIT = re.compile(r"cannot lock ref|\.git/")
_PROBE_S = 10


@dataclass(frozen=True, slots=True)
class Choice:
    """What confines commands on this machine, and why, in a sentence."""

    kind: Kind
    why: str


def choose(settings: SandboxSettings) -> Choice:
    """The first that works, or exactly the one that was asked for. Blocking (some ms, the first time in a process).

    Raises ``OpenDevError`` (config) when what was asked for by name does not work here.
    """
    if settings.mode == "off":
        return Choice("none", "Commands run without a sandbox: sandbox.mode is off.")
    faults: list[str] = []
    if settings.mode in ("auto", "bubblewrap"):
        if not (fault := bubblewrap_fault(settings.network)):
            return Choice("bubblewrap", "Commands run under bubblewrap.")
        faults.append(fault)
    if settings.mode in ("auto", "landlock"):
        if not (fault := landlock_fault(settings.network)):
            return Choice("landlock", "Commands run under Landlock.")
        faults.append(fault)
    if settings.mode != "auto":
        raise OpenDevError(
            ErrorKind.CONFIG,
            f"sandbox.mode is {settings.mode}, but {faults[0]}. Nothing was started.",
            "Mend it (`opendev doctor` looks again), or set sandbox.mode to auto.",
        )
    return Choice("none", f"Commands run without a sandbox: {'; '.join(faults)}.")


def bubblewrap_fault(network: str) -> str:
    """Why bubblewrap cannot be used; empty when it can."""
    return _bubblewrap(alone=False, network=network)


@functools.cache
def _bubblewrap(*, alone: bool, network: str) -> str:
    program = find_bubblewrap()
    if not program:
        return "bubblewrap is not installed"
    try:
        ran = subprocess.run(
            [program, *_frame(alone=alone, network=network), "--", shutil.which("true") or "/bin/true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start ({error})"
    said = ran.stderr.decode(errors="replace").strip().removeprefix("bwrap: ").splitlines()
    return (
        "" if ran.returncode == 0 else f"bubblewrap is refused here ({said[0] if said else ran.returncode})"
    )


def find_bubblewrap() -> str:
    """The program, or an empty text."""
    return shutil.which("bwrap", path=_PLACES_OF_BWRAP) or ""


def landlock_fault(network: str) -> str:
    """Why Landlock cannot be used; empty when it can."""
    version = landlock.abi() if sys.platform == "linux" else 0
    if version < landlock.MIN_ABI:
        return f"the kernel offers no Landlock of ABI {landlock.MIN_ABI} (Linux 6.2)"
    if network == "deny" and os.uname().machine not in landlock.MACHINES:
        return "Landlock cannot deny the network on this machine"
    return ""


@dataclass(frozen=True, slots=True)
class Work:
    """What commands are run for. Without ``roots`` the working folder of a command is all it may write, and git is for reading only."""

    roots: tuple[Path, ...] = ()
    fixed: tuple[Path, ...] = ()  # only read, also inside a temporary folder or the hidden state folder
    installs: tuple[Path, ...] = ()
    alone: bool = False  # sees and signals no process but its own, which end with it


@dataclass(frozen=True, slots=True)
class _Ground:
    """What is the same for every command of one kind of work; looked up before the first of them could change anything."""

    choice: Choice
    shared: tuple[Path, ...]
    hidden: tuple[Path, ...]
    roots: tuple[Path, ...]
    git: GitPlaces


class Sandbox:
    """Confines the commands of one kind of work: they write there, in temporary folders and caches; keys and OpenDev's state are hidden.

    Nothing is looked up before the first command: most agents run none.
    """

    def __init__(self, settings: SandboxSettings, work: Work, *, env: Mapping[str, str], home: Path) -> None:
        self._settings, self._work, self._env, self._home = settings, work, dict(env), home.resolve()

    def argv(self, argv: Sequence[str], cwd: Path) -> list[str]:
        """The command line that runs ``argv`` confined; ``argv`` itself when there is no sandbox. Blocking.

        Raises ``OpenDevError`` (config), see ``choose``.
        """
        kind = self._ground.choice.kind
        if kind == "none":
            return list(argv)
        places = self._places(cwd)
        return (self._under_bubblewrap if kind == "bubblewrap" else self._under_landlock)(argv, places)

    def hint(self, text: str) -> str:
        """A sentence for the output of a failed command that looks as if the sandbox refused something; else empty."""
        kind = self._ground.choice.kind
        if kind == "none" or not _REFUSED.search(text):
            return ""
        net = ", and without the network" if self._settings.network == "deny" else ""
        git = (
            " What git may not change here belongs to the user: leave its configuration and hooks alone, in a worktree"
            " also branches, tags and the stash."
        )
        return (
            f"\n[Commands run in a sandbox ({kind}): they write in the working folder, temporary folders and caches only{net}."
            f" Keys are hidden. The user's settings sandbox.write and sandbox.hide change that.{git if _OF_GIT.search(text) else ''}]"
        )

    @functools.cached_property
    def _ground(self) -> _Ground:
        settings, roots = self._settings, tuple(root.resolve() for root in self._work.roots)
        choice = choose(settings)
        denied = resolvers() if settings.network == "deny" else ()
        return _Ground(
            choice=choice,
            shared=(*temporary(self._env), *expand(settings.write, self._env)),
            hidden=(*expand(settings.hide, self._env), *denied, *_there((self._home,))),
            roots=roots,
            git=git_places(roots[0]) if roots and choice.kind != "none" else GitPlaces(),
        )

    def _places(self, cwd: Path) -> Places:
        work, ground, pointer = self._work, self._ground, cwd / ".git"
        fixed = ground.git.fixed if ground.roots else _there((pointer,))
        return Places(
            shared=ground.shared,
            work=(*_there(ground.roots or (cwd,)), *ground.git.write, *_there(work.installs)),
            fixed=(*fixed, *_there(work.fixed)),
            hidden=ground.hidden,
        )

    def _under_bubblewrap(self, argv: Sequence[str], places: Places) -> list[str]:
        # In some containers a process list of one's own is refused; the rest of the sandbox holds without.
        alone = self._work.alone and not _bubblewrap(alone=True, network=self._settings.network)
        mounts: dict[Path, tuple[str, ...]] = {path: ("--bind", str(path)) for path in places.shared}
        mounts |= {
            path: ("--tmpfs",) if path.is_dir() else ("--ro-bind", "/dev/null") for path in places.hidden
        }
        mounts |= {path: ("--bind", str(path)) for path in places.work}
        mounts |= {path: ("--ro-bind", str(path)) for path in places.fixed}
        ordered = sorted(mounts.items(), key=lambda item: len(item[0].parts))
        options = [word for path, mount in ordered for word in (*mount, str(path))]
        # Only now, when the folders for the mounts inside are made: what is written there would be lost unseen.
        options += [
            word for path, (kind, *_) in ordered if kind == "--tmpfs" for word in ("--remount-ro", str(path))
        ]
        return [
            find_bubblewrap(),
            *_frame(alone=alone, network=self._settings.network),
            *options,
            "--",
            *argv,
        ]

    def _under_landlock(self, argv: Sequence[str], places: Places) -> list[str]:
        # It cannot take back a part of what it allows. A cache is then left out; a temporary folder has to work, whatever lies in it.
        guarded, needed = (*places.fixed, self._home), temporary(self._env)
        shared = [
            path
            for path in places.shared
            if path in needed or not any(one.is_relative_to(path) for one in guarded)
        ]
        options = [word for path in places.hidden for word in ("--hide", str(path))]
        options += [word for path in places.fixed for word in ("--read", str(path))]
        options += [word for path in (*_DEVICES, *shared, *places.work) for word in ("--write", str(path))]
        options += ["--alone"] if self._work.alone else []
        options += ["--no-net"] if self._settings.network == "deny" else []
        return [sys.executable, "-I", "-S", landlock.__file__, *options, "--", *argv]


@functools.cache
def _frame(*, alone: bool, network: str) -> tuple[str, ...]:
    """What every sandbox of bubblewrap has. ``--die-with-parent`` is bound to the thread that starts it, so it is for verification
    only, which the event loop starts; what others leave when a run is killed, the janitor ends."""
    root = os.geteuid() == 0
    rights = [word for name in _CAPABILITIES for word in ("--cap-add", f"CAP_{name}")] if root else []
    gpus = [word for path in expand(_GPUS, {}) for word in ("--dev-bind", str(path), str(path))]
    return (
        *(["--cap-drop", "ALL", *rights] if root else ["--unshare-user"]),
        *(["--unshare-net"] if network == "deny" else []),
        *("--ro-bind", "/", "/", "--dev", "/dev"),
        *gpus,
        *(["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--proc", "/proc"] if alone else []),
    )


def _there(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(path.resolve() for path in paths if path.exists())
