"""A user with keys, a state folder, a repository with a linked worktree, and a place outside of everything: what a sandbox stands between."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from opendev.configs.environment import Environment
from opendev.configs.load import load_config
from opendev.configs.schema import SandboxSettings
from opendev.core.ports import CommandResult
from opendev.tools.shell import places
from opendev.tools.shell.process import ProcessShell
from opendev.tools.shell.sandbox import Sandbox, Work, bubblewrap_fault, landlock_fault

from .repos import git, make_repo

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----"
KINDS = ("bubblewrap", "landlock")


def skip_without(kind: str) -> None:
    """Skip when this machine cannot confine by ``kind``, with its reason."""
    fault = (bubblewrap_fault if kind == "bubblewrap" else landlock_fault)("allow")
    if fault:
        pytest.skip(fault)


@dataclass
class Walls:
    """``base`` holds all of it; ``temp`` is the only temporary folder."""

    base: Path
    kind: str
    marker: dict[str, str]
    env: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def repo(self) -> Path:
        return self.base / "repo"

    @property
    def state(self) -> Path:
        return self.base / "state"

    @property
    def work(self) -> Path:
        return self.state / "worktrees" / "w1"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def home(self) -> Path:
        return self.base / "user"

    def settings(self, **changes: object) -> SandboxSettings:
        """The default settings of a user who lives here."""
        loaded = load_config(project=self.repo, environment=Environment(self.env))
        return loaded.config.sandbox.model_copy(update={"mode": self.kind, **changes})

    def sandbox(self, root: Path | None = None, *, alone: bool = False, **changes: object) -> Sandbox:
        work = Work(roots=(root or self.work,), alone=alone)
        return Sandbox(self.settings(**changes), work, env=self.env, home=self.state)

    async def run(
        self, command: str, sandbox: Sandbox | None = None, *, cwd: Path | None = None, total_s: float = 20
    ) -> CommandResult:
        shell = ProcessShell(
            log_dir=self.state / "logs", marker=self.marker, sandbox=sandbox or self.sandbox(), grace_s=0.2
        )
        return await shell.run(command, cwd=cwd or self.work, env=self.env, idle_s=20, total_s=total_s)

    def protected(self) -> Mapping[str, object]:
        """Everything that no command may change: contents, links and modes."""
        found: dict[str, object] = {}
        for top in (self.outside, self.home / ".ssh", self.repo, self.state / "config"):
            for path in sorted(top.rglob("*")):
                inside = path.relative_to(self.base).as_posix()
                if "/.git/objects/" in inside or "/worktrees/" in inside or "/opendev/" in inside:
                    continue  # what git in the worktree has to write
                status = path.lstat()
                found[inside] = (status.st_mode, path.read_bytes() if path.is_file() else None)
        return found


def make_walls(base: Path, kind: str, marker: dict[str, str], patch: pytest.MonkeyPatch) -> Walls:
    """All of it, in ``base``, with the temporary folder in there as well, so that the rest of ``base`` is none."""
    found = Walls(base, kind, marker)
    for folder in ("outside", "user/.ssh", "user/.cache", "state/config", "state/worktrees", "temp"):
        (base / folder).mkdir(parents=True)
    (found.home / ".ssh/id_ed25519").write_text(KEY)
    (found.home / ".netrc").write_text(KEY)
    (found.state / "config/secret").write_text(KEY)
    (found.outside / "file").write_text("as it was\n")
    patch.setattr(places, "_TEMP", (str(base / "temp"),))
    make_repo(found.repo, {"a.py": "x = 1\n"})
    git(found.repo, "worktree", "add", "-q", "-b", "opendev/r/t-1", str(found.work))
    path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"))
    found.env |= {"HOME": str(found.home), "PATH": path, "TMPDIR": str(base / "temp")}
    identity = {"NAME": "A", "EMAIL": "a@localhost"}
    found.env |= {
        f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in identity.items()
    }
    return found
