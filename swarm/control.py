"""A run seen from another process: whose it is, whether it lives, and how to stop it."""

import os
import signal
from pathlib import Path

from pydantic import ValidationError

from ..core.errors import ErrorKind, OpenDevError
from ..core.lease import Owner
from ..core.model import Persisted
from ..core.ticket import RunReport
from ..store.atomic import Lock, write_atomic
from ..worktrees.journal import is_alive, this_process
from .journal import Journal
from .recover import Recovered, recover


class RunStatus(Persisted):
    """What ``opendev swarm status`` shows of one run. ``state`` "lost" = its process is gone without an end."""

    run_id: str
    state: str
    pid: int = 0
    tasks: dict[str, str] = {}


def claim(run_dir: Path) -> None:
    """Write down that this process runs it. Raises ``OpenDevError`` (usage) when another living process does."""
    with Lock(run_dir / "owner.lock"):  # of two that come at once, one is refused
        owner = _owner(run_dir)
        if owner is not None and is_alive(owner) and owner.pid != os.getpid():
            raise OpenDevError(
                ErrorKind.USAGE,
                f"The run {run_dir.name} is being run by process {owner.pid}.",
                f"Wait for it, or stop it with `opendev swarm cancel {run_dir.name}`.",
            )
        write_atomic(run_dir / "owner.json", this_process().to_json().encode())


def load_run(run_dir: Path) -> Recovered:
    """The journal of a run, folded. Raises ``OpenDevError`` (usage) when there is none."""
    return recover(Journal(run_dir / "journal.jsonl").read())


def read_report(run_dir: Path) -> RunReport:
    """The report of a run. Raises ``OpenDevError`` (usage) when it has none (yet)."""
    path = run_dir / "report.json"
    try:
        return RunReport.model_validate_json(path.read_bytes())
    except OSError as error:
        raise OpenDevError(
            ErrorKind.USAGE,
            f"The run {run_dir.name} has no report (yet).",
            f"`opendev swarm status {run_dir.name}` says where it stands; `opendev swarm resume {run_dir.name}` finishes it.",
        ) from error
    except ValidationError as error:
        raise OpenDevError(
            ErrorKind.USAGE, f"The report {path} cannot be read: {error.errors()[0]['msg']}."
        ) from error


def status_of(run_dir: Path) -> RunStatus:
    """Where a run stands, by its journal and its owner."""
    found = load_run(run_dir)
    owner = _owner(run_dir)
    living = owner is not None and is_alive(owner)
    tasks: dict[str, str] = {}
    for name, past in found.tasks.items():
        if past.final is not None:
            tasks[name] = past.final.status
        elif past.landed is not None:
            tasks[name] = "merged"
        else:
            tasks[name] = "working" if past.attempts and living else "queued" if living else "unfinished"
    state = "finished" if found.finished else "running" if living else "lost"
    return RunStatus(run_id=run_dir.name, state=state, pid=owner.pid if owner and living else 0, tasks=tasks)


def cancel_run(run_dir: Path) -> int:
    """Ask the process of a run to stop (SIGTERM); its pid. Only the proven owner is signalled, never a reused number."""
    load_run(run_dir)
    owner = _owner(run_dir)
    if owner is None or not is_alive(owner):
        raise OpenDevError(
            ErrorKind.USAGE,
            f"The run {run_dir.name} is not running.",
            f"`opendev swarm status {run_dir.name}` says how it ended.",
        )
    os.kill(owner.pid, signal.SIGTERM)
    return owner.pid


def _owner(run_dir: Path) -> Owner | None:
    try:
        return Owner.model_validate_json((run_dir / "owner.json").read_bytes())
    except (OSError, ValidationError):
        return None
