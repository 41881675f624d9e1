"""A private Ray that is kept warm between runs: who keeps it, how a run finds it, and its end when nobody uses it any more.

``warm_keeper`` is the process that owns it. Its record, ``runtime.json`` in the state root, names that
process by pid and start time, so that a stale one is never believed; a run holds ``runtime.lock`` shared as long as it uses it.
"""

import contextlib
import fcntl
import os
from collections.abc import Generator
from pathlib import Path

from pydantic import ValidationError

from .. import __version__
from ..core.model import Frozen
from ..store.atomic import make_private
from . import ray_session

KEEPER = f"{__name__}_keeper"  # the module that a keeper runs


class Warm(Frozen):
    """The record of a Ray that is kept warm. ``started`` is the keeper's start in clock ticks, ``idle_s`` what it waits unused."""

    pid: int
    started: int
    address: str
    token: str
    version: str
    idle_s: float

    @property
    def alive(self) -> bool:
        """Whether exactly this keeper lives."""
        return bool(self.started) and ray_session.started(self.pid) == self.started


def find(home: Path) -> Warm | None:
    """The Ray that is kept warm, by this version or another; None when there is none. Blocking."""
    try:
        found = Warm.model_validate_json(record_path(home).read_bytes())
    except (OSError, ValidationError):
        return None
    return found if found.alive else None


def in_use(home: Path) -> bool:
    """Whether a run holds it. Blocking."""
    with _locked(home, fcntl.LOCK_EX) as free:
        return not free


def borrow(home: Path, stack: contextlib.ExitStack) -> Warm | None:
    """The one that a run may use until ``stack`` is closed; None where there is none, or it is of another version, ends at this
    moment, or has another token than this process already showed to Ray. Blocking."""
    found = find(home)
    if found is None or found.version != __version__ or not stack.enter_context(held(home)):
        return None
    try:
        token = Path(found.token).read_text("ascii")
    except OSError:
        return None
    return found if ray_session.TOKEN.adopt(token) else None


@contextlib.contextmanager
def held(home: Path) -> Generator[bool]:
    """Keep it from ending for want of use; whether that worked (it may just be ending)."""
    with _locked(home, fcntl.LOCK_SH) as ours:
        yield ours


@contextlib.contextmanager
def _locked(home: Path, kind: int) -> Generator[bool]:
    make_private(home)
    handle = os.open(home / "runtime.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(handle)


def record_path(home: Path) -> Path:
    """Where the record is."""
    return home / "runtime.json"
