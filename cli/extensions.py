"""What the user and, after consent, the project add to every agent: MCP servers, skills, hooks and rules on calls."""

from dataclasses import dataclass, field

from ..core.hooks import HookSet
from ..core.permissions import Permissions
from ..core.tool import Skill
from ..store.permissions import load_permissions
from ..tools.hook_trust import admit
from ..tools.mcp.config import McpServer, load_mcp, usable
from ..tools.skills import discover
from .project import Project


@dataclass(frozen=True, slots=True)
class Extensions:
    """What is used, and a sentence for each that is not."""

    mcp: tuple[McpServer, ...] = ()
    skills: tuple[Skill, ...] = ()
    hooks: HookSet = field(default_factory=HookSet)
    permissions: Permissions = field(default_factory=Permissions)
    notes: tuple[str, ...] = ()


def load_extensions(project: Project) -> Extensions:
    """From the files of the state root and of the project. Blocking."""
    home = project.layout.home
    servers, notes = usable(
        load_mcp(home, project.path, project.config.mcp_servers), dict(project.environment.items())
    )
    found = discover(home, project.path)
    hooks, left_out = load_hooks(project)
    rules = load_permissions(home, project.path)
    notes = (*notes, *found.refused, *left_out, *rules.notes)
    return Extensions(servers, found.skills, hooks, rules.permissions, notes)


def load_hooks(project: Project) -> tuple[HookSet, tuple[str, ...]]:
    """The user's hooks and, after consent, the project's; and a sentence when they are left out. Blocking."""
    loaded = project.loaded
    return admit(loaded.config.hooks, loaded.projects_hooks, project.path, project.layout.home)
