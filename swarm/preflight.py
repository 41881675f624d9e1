"""What is checked before anything starts: models, disk, and the verification on the untouched base."""

import shutil
from pathlib import Path

from ..core.chat import Role
from ..core.errors import ErrorKind, OpenDevError
from ..core.ticket import SwarmPlan
from ..store.atomic import write_atomic
from .ports import RunSettings
from .verify import Verification


def check_models(plan: SwarmPlan, settings: RunSettings) -> None:
    """Raise ``OpenDevError`` (config, exit 2) when a ticket needs a model and none is configured."""
    if settings.models.get(Role.ACTION):
        return
    needy = [t.id for t in plan.task if not (t.recipe or t.model) or t.review]
    if needy:
        shown = ", ".join(needy[:10]) + (f" and {len(needy) - 10} more" if len(needy) > 10 else "")
        raise OpenDevError(
            ErrorKind.CONFIG,
            f"These tickets need a model and none is configured: {shown}.",
            "Set OPENDEV_MODEL=provider/NAME and that provider's key, or give --model; a ticket with a `recipe` needs none.",
        )


def check_disk(folder: Path, floor_bytes: int) -> None:
    """Raise ``OpenDevError`` (infra) when ``folder`` cannot be written or too little space is free."""
    write_atomic(folder / ".probe", b"x")
    (folder / ".probe").unlink()
    free = shutil.disk_usage(folder).free
    if free < floor_bytes:
        raise OpenDevError(
            ErrorKind.INFRA,
            f"Only {free // 1_000_000} MB are free under {folder}; a run starts with at least {floor_bytes // 1_000_000} MB.",
            "Free some space (`opendev worktrees prune`), or lower `swarm.disk_floor_mb`.",
        )


def check_baseline(found: Verification, base: str) -> str:
    """A warning when the base is red, else empty. Raises ``OpenDevError`` (infra) when the command cannot judge anything (T-17)."""
    if found.passed:
        return ""
    if found.outcome.outcome != "fail" or found.outcome.exit_code in (126, 127):
        raise OpenDevError(
            ErrorKind.INFRA,
            f"The verification cannot be judged on the untouched base {base[:12]}: {found.sentence()}",
            "A fresh checkout has no ignored or untracked files; make what is missing with `setup` or `copy`.",
        )
    return (
        f"The base {base[:12]} is red before any change: `{found.outcome.command}` ends with exit code"
        f" {found.outcome.exit_code}; only new failures count."
    )
