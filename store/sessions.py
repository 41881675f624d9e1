"""The record beside a transcript: whose it is, its title, its parent and its sub-agents' sessions, what it cost (SUB-09, MOD-07)."""

from pathlib import Path

from pydantic import Field, ValidationError

from ..core.chat import Usage
from ..core.model import JsonObject, Persisted
from .atomic import write_atomic

TITLE = 80  # characters
CHILDREN = 1000  # links kept; the oldest go first, a child still names its parent


class SessionMeta(Persisted):
    """One agent's session. ``subagent_sessions`` maps the id of a spawn call to the child's; times are ISO 8601."""

    id: str
    created_at: str
    updated_at: str
    working_directory: str
    parent_id: str = ""
    subagent_sessions: dict[str, str] = {}
    metadata: JsonObject = Field(default_factory=dict)

    def with_child(self, call_id: str, child: str) -> "SessionMeta":
        """This session with one more sub-agent."""
        links = {**self.subagent_sessions, call_id: child}
        kept = dict(list(links.items())[-CHILDREN:])
        return self.model_copy(update={"subagent_sessions": kept})

    def ended(self, at: str, status: str, usage: Usage, calls: int) -> "SessionMeta":
        """This session after a run of its agent; what earlier runs cost is added up."""
        before: JsonObject = self.metadata.get("cost_tracking") or {}
        spent = {
            "total_cost_usd": usage.cost_usd + before.get("total_cost_usd", 0.0),
            "total_input_tokens": usage.input + before.get("total_input_tokens", 0),
            "total_output_tokens": usage.output + before.get("total_output_tokens", 0),
            "api_call_count": calls + before.get("api_call_count", 0),
        }
        metadata: JsonObject = {**self.metadata, "status": status, "cost_tracking": spent}
        return self.model_copy(update={"updated_at": at, "metadata": metadata})


def title_of(prompt: str, subagent: str = "") -> str:
    """The first 80 characters of a task on one line; of a sub-agent with its type."""
    title = " ".join(prompt.split())[:TITLE]
    return f"{title} (@{subagent})" if subagent else title


def read_meta(path: Path) -> SessionMeta | None:
    """The record in a file; None when there is none or it cannot be read: the transcript stands by itself. Blocking."""
    try:
        return SessionMeta.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def write_meta(path: Path, meta: SessionMeta) -> None:
    """Replace the record. Blocking; raises ``OpenDevError`` (infra)."""
    write_atomic(path, meta.to_json().encode())
