"""What `opendev config check` looks at: settings, rules, hooks, MCP servers, agent types and skills, all of it at once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..agents.custom import load_custom
from ..configs.check import check_settings
from ..configs.load import Files
from ..configs.problem import Problem
from ..core.errors import OpenDevError
from ..core.hooks import Hooks
from ..store.permissions import load_permissions, read_rules
from ..tools.hook_trust import admit
from ..tools.mcp.config import load_mcp, usable
from ..tools.skills import discover
from .project import Place


@dataclass
class Findings:
    """Sentences: what is wrong, and what is only worth knowing (a file that waits for consent, a value left out)."""

    faults: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def of(self, read: Callable[..., Any], *args: Any) -> Any:
        """What ``read`` returns; None when it fails, which is a fault."""
        try:
            return read(*args)
        except OpenDevError as error:
            self.faults.append(error.info.sentence())


def check_all(place: Place, files: Files) -> Findings:
    """Look at every file of the user and of the project. Starts nothing. Blocking."""
    settings = check_settings(files, place.environment)
    found = Findings([told(problem) for problem in settings.problems], [*settings.warnings])
    home, project = place.layout.home, place.path.resolve()
    _rules(found, home, project)
    custom = load_custom(home, project)
    skills = discover(home, project)
    waiting = [path for path, _ in skills.untrusted.values()]
    found.faults += [
        *custom.refused,
        *(text for text in skills.refused if not any(p in text for p in waiting)),
    ]
    found.notes += [*custom.notes, *(text for text in skills.refused if any(p in text for p in waiting))]
    servers = load_mcp(home, project, settings.config.mcp_servers if settings.config else None)
    _, notes = usable(servers, dict(place.environment.items()))
    found.faults += servers.refused
    found.notes += [text for text in notes if text not in servers.refused]
    own = settings.config.hooks if settings.config else Hooks()
    found.notes += admit(own, settings.projects_hooks, project, home)[1]
    return found


def told(problem: Problem) -> str:
    """On one line, with what to do."""
    return f"{problem.sentence()} {problem.hint}".rstrip()


def _rules(found: Findings, home: Path, project: Path) -> None:
    """Both files of rules: each is a fault of its own, and none of the notes is lost."""
    paths = (home / "permissions.json", project / ".opendev" / "permissions.json")
    before = len(found.faults)
    for path in paths:
        found.of(read_rules, path)
    if len(found.faults) == before:
        found.notes += load_permissions(home, project).notes
