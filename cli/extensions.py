"""What the user and, after consent, the project add to every agent: MCP servers and skills."""

from dataclasses import dataclass

from ..core.tool import Skill
from ..tools.mcp.config import McpServer, load_mcp, usable
from ..tools.skills import discover
from .project import Project


@dataclass(frozen=True, slots=True)
class Extensions:
    """What is used, and a sentence for each that is not."""

    mcp: tuple[McpServer, ...] = ()
    skills: tuple[Skill, ...] = ()
    notes: tuple[str, ...] = ()


def load_extensions(project: Project) -> Extensions:
    """From the files of the state root and of the project. Blocking."""
    home = project.layout.home
    servers, notes = usable(load_mcp(home, project.path), dict(project.environment.items()))
    found = discover(home, project.path)
    return Extensions(servers, found.skills, (*notes, *found.refused))
