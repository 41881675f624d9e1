"""Background tasks as a front end sees them: by the agent's events, their output files and their processes (SHL-12..14)."""

from pathlib import Path

from ...actors.worker import RUN_MARK
from ...core.events import ProcessChanged
from ...tools.shell.background import BASE, GRACE_S
from ...tools.shell.output import clean
from ...tools.shell.reap import end, family
from ...tools.shell.rolling import TAIL, task_folders


def last_lines(root: Path, id: str, lines: int) -> str:
    """What the task wrote last, as it would stand on a screen. Blocking; empty when there is no file of it."""
    for folder in task_folders(BASE, root):
        path = folder / f"{id}.output"
        if path.is_file():
            with path.open("rb") as file:
                file.seek(max(path.stat().st_size - TAIL, 0))
                return "\n".join(clean(file.read().decode("utf-8", "replace")).splitlines()[-lines:])
    return ""


async def end_task(task: ProcessChanged, run_id: str) -> None:
    """SIGTERM to its group, 5 s, SIGKILL. Raises ``OpenDevError`` (infra) when it does not die."""
    await end(lambda: tuple(one for one in family(group=task.pid) if one in _of_run(run_id)), GRACE_S)


def _of_run(run_id: str) -> frozenset[object]:
    """The number of a group may be another one's by now: only what bears the run's mark is ended."""
    return frozenset(family(marker={RUN_MARK: run_id}))
