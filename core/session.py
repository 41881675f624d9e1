"""A session as data: its record, its line in the project's index, its costs (SES-01, SES-06; names of upstream §6.8 and §6.10)."""

from typing import Any, cast

from pydantic import ConfigDict, Field

from .chat import Usage
from .model import Frozen, JsonObject, dump_line

SCHEMA = 1
CHILDREN = 1000  # links kept; the oldest go first, a child still names its parent
SNAPSHOTS = 200  # tree hashes kept, newest last
TITLE = 50  # characters of a session's title (SES-07)
SUMMARY = 200


class Spent(Frozen):
    """What a session has cost over all its runs: the block ``cost_tracking`` (MOD-07)."""

    total_cost_usd: float = 0.0
    total_input_tokens: int = 0
    total_output_tokens: int = 0
    total_cached_tokens: int = 0
    api_call_count: int = 0

    @classmethod
    def of(cls, usage: Usage, calls: int) -> "Spent":
        """Usage and calls as a ledger counts them."""
        return cls(
            total_cost_usd=usage.cost_usd,
            total_input_tokens=usage.input,
            total_output_tokens=usage.output,
            total_cached_tokens=usage.cached,
            api_call_count=calls,
        )

    @classmethod
    def read(cls, block: object) -> "Spent":
        """The block as it stands in a record, lenient: what is no number counts as nothing."""
        found = cast("JsonObject", block) if isinstance(block, dict) else {}
        cost = found.get("total_cost_usd")
        counts = {name: found.get(name) for name in cls.model_fields if name != "total_cost_usd"}
        return cls(
            total_cost_usd=float(cost) if isinstance(cost, int | float) else 0.0,
            **{name: value for name, value in counts.items() if isinstance(value, int)},
        )

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(**{name: getattr(self, name) + getattr(other, name) for name in Spent.model_fields})


class SessionMeta(Frozen):
    """One agent's session: no messages, those are in the transcript. Times are ISO 8601.

    ``subagent_sessions`` maps the id of a spawn call to the child's. Keys this version does not know are kept when the record
    is written again; a record with a higher ``schema`` is only read. ``metadata`` holds ``title``, ``summary``, ``status``,
    ``cost_tracking``, ``message_count``, ``mode``, ``todos``, ``activated``, ``skills``, ``view`` (what compaction shows),
    ``snapshots`` (SES-11) and ``subagent_type``.
    """

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)

    schema_version: int = Field(default=SCHEMA, alias="schema")
    id: str
    created_at: str = ""
    updated_at: str = ""
    working_directory: str = ""
    parent_id: str = ""
    subagent_sessions: dict[str, str] = {}
    metadata: JsonObject = Field(default_factory=dict)

    @property
    def title(self) -> str:
        """On one line; empty when it has none."""
        return self._text("title")

    @property
    def summary(self) -> str:
        """The beginning of the last answer."""
        return self._text("summary")

    @property
    def mode(self) -> str:
        """``normal`` or ``plan``, as the last run ended; empty when it is not known."""
        return self._text("mode")

    @property
    def spent(self) -> Spent:
        """Over all runs."""
        return Spent.read(self.metadata.get("cost_tracking"))

    @property
    def messages(self) -> int:
        """How many the transcript holds, system prompts not counted."""
        count = self.metadata.get("message_count")
        return count if isinstance(count, int) else 0

    @property
    def snapshots(self) -> tuple[JsonObject, ...]:
        """Trees of the project, oldest first: ``{"tree": hash, "at": time, …}`` (SES-11, UND-06)."""
        return tuple(row for row in self._rows("snapshots") if isinstance(row.get("tree"), str))

    @property
    def todos(self) -> tuple[JsonObject, ...]:
        """The todo list as the last run left it (TSK-09)."""
        return self._rows("todos")

    def with_metadata(self, **values: Any) -> "SessionMeta":
        """This session with some keys of ``metadata`` set."""
        return self.model_copy(update={"metadata": {**self.metadata, **values}})

    def with_child(self, call_id: str, child: str) -> "SessionMeta":
        """This session with one more sub-agent."""
        links = {**self.subagent_sessions, call_id: child}
        return self.model_copy(update={"subagent_sessions": dict(list(links.items())[-CHILDREN:])})

    def with_snapshot(self, tree: str, at: str, **more: Any) -> "SessionMeta":
        """This session with one more tree hash; the oldest go beyond 200."""
        return self.with_metadata(snapshots=[*self.snapshots, {"tree": tree, "at": at, **more}][-SNAPSHOTS:])

    def ended(self, at: str, status: str, usage: Usage, calls: int) -> "SessionMeta":
        """This session after a run of its agent; what earlier runs cost is added up."""
        spent = self.spent + Spent.of(usage, calls)
        done = self.with_metadata(status=status, cost_tracking=spent.model_dump())
        return done.model_copy(update={"updated_at": at})

    def to_json(self) -> str:
        """One line; any text can be written (D03)."""
        return dump_line(self)

    def _text(self, key: str) -> str:
        value = self.metadata.get(key)
        return value if isinstance(value, str) else ""

    def _rows(self, key: str) -> tuple[JsonObject, ...]:
        found = self.metadata.get(key)
        rows = cast("list[object]", found) if isinstance(found, list) else []
        return tuple(cast("JsonObject", row) for row in rows if isinstance(row, dict))


class SessionEntry(Frozen):
    """One session in ``sessions-index.json``, about 200 bytes; names as upstream's. Keys of other versions are dropped."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    sessionId: str
    title: str = ""
    messageCount: int = 0
    created: str = ""
    modified: str = ""


def title_of(prompt: str, subagent: str = "", length: int = 80) -> str:
    """The first characters of a task on one line; of a sub-agent with its type."""
    title = " ".join(prompt.split())[:length]
    return f"{title} (@{subagent})" if subagent else title
