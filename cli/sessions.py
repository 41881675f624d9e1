"""`opendev sessions list|show|export|delete`."""

import contextlib
import json
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.chat import AssistantMessage, MessageClass, SystemMessage, Usage, UserMessage
from ..core.errors import ErrorKind, OpenDevError
from ..core.session import SessionEntry, SessionMeta, Spent
from ..policy.visible import visible
from ..store.atomic import JsonlLog, write_atomic
from ..store.layout import Layout
from ..store.session_files import SessionFiles
from ..store.sessions import SessionStore, every_store
from .project import Project, open_project
from .stdio import say

app = typer.Typer(help="Conversations that were kept. Example: opendev sessions list", no_args_is_help=True)
AsJson = Annotated[bool, typer.Option("--json", help="print JSON")]
Id = Annotated[str, typer.Argument(help="a session, a run or an agent, as `list` and `show` name them")]
_LAST = 6
_CHARS = 2_000


class Format(StrEnum):
    """What `export` writes."""

    JSON = "json"
    MARKDOWN = "md"
    HTML = "html"


@dataclass(frozen=True)
class _Found:
    """What an id stands for: a session of a project, a run (of a swarm) or one agent of either."""

    kind: str
    id: str
    files: SessionFiles | None
    meta: SessionMeta

    def spent(self, layout: Layout) -> Spent:
        """By the run's ledger, which holds the calls of every agent, retries and compaction; without one, by the record."""
        from ..llm.budget import Ledger  # a list needs none of it

        ledger = layout.ledger(self.id)
        if self.kind == "agent" or not ledger.exists():
            return self.meta.spent
        totals = Ledger(JsonlLog(ledger)).totals()
        carried = Spent.read(self.meta.metadata.get("cost_carried"))
        return carried + Spent.of(Usage.model_validate(totals["usage"]), int(totals["calls"]))


@app.command(name="list")
def list_sessions(
    context: typer.Context,
    everywhere: Annotated[bool, typer.Option("--all", help="of every project")] = False,
    limit: Annotated[int, typer.Option(min=1, help="show at most so many of a project, the newest")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the sessions of this project, newest first. Example: opendev sessions list --limit 5"""
    project = open_project(context.obj)
    stores = every_store(project.layout) if everywhere else (SessionStore(project.layout, project.path),)
    found = {store.folder.name: store.entries()[:limit] for store in stores}
    if as_json:
        rows = [{**_row(entry), "project": name} for name, entries in found.items() for entry in entries]
        say(json.dumps({"schema": 1, "sessions": rows}) + "\n")
        return
    for name, entries in found.items():
        if everywhere and entries:
            say(f"{visible(name)}\n")
        for entry in entries:
            changed = entry.modified[:16].replace("T", " ")
            say(f"{entry.sessionId:10}{changed:18}{entry.messageCount:>5}  {visible(entry.title)}\n")
    if not any(found.values()):
        say('No sessions yet. Start one: opendev -p "…".\n')


@app.command()
def show(
    context: typer.Context,
    id: Id,
    last: Annotated[int, typer.Option(min=0, help="messages shown, the newest")] = _LAST,
    as_json: AsJson = False,
) -> None:
    """Show what a session, a run or an agent was about and what it cost. Example: opendev sessions show a1B2c3D4"""
    project = open_project(context.obj)
    found = _find(project, id)
    whole = _report(project.layout, found)
    if as_json:
        say(json.dumps(whole) + "\n")
        return
    tokens = whole["tokens"]
    say(f"{found.id}  {visible(found.meta.title)}\n")
    for name in ("kind", "status", "created", "modified", "working_directory", "parent"):
        if whole[name]:
            say(f"  {name.replace('_', ' ')}: {visible(str(whole[name]))}\n")
    say(
        f"  cost: ${whole['cost_usd']:.4f} in {whole['model_calls']} model calls, "
        f"{tokens['input']} tokens in ({tokens['cached']} cached), {tokens['output']} out\n"
    )
    for agent in whole["agents"]:
        say(f"  agent {agent['id']} {agent['agent']}: {visible(agent['title'])} ({agent['status']})\n")
    _say_last(found, last)


@app.command()
def export(
    context: typer.Context,
    id: Id,
    kind: Annotated[Format, typer.Option("--format", help="json, md or html")] = Format.MARKDOWN,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="the file; standard output by default")
    ] = None,
) -> None:
    """Write a session to a file, secrets removed. Example: opendev sessions export a1B2c3D4 --format html -o session.html"""
    from ..ui.session_export import export as exported

    project = open_project(context.obj)
    found = _find(project, id)
    if found.files is None:
        raise OpenDevError(
            ErrorKind.USAGE, f"{id} is a run of several agents.", f"Export one: opendev sessions show {id}."
        )
    spent = found.spent(project.layout).model_dump()
    text = exported(
        found.meta.with_metadata(cost_tracking=spent),
        found.files.read(),
        kind.value,
        project.environment.secret_values(),
    )
    if out is None:
        say(text)
    else:
        write_atomic(out.absolute(), text.encode("utf-8", "replace"))


@app.command()
def delete(
    context: typer.Context,
    ids: Annotated[list[str], typer.Argument(help="sessions")],
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
) -> None:
    """Delete sessions with everything kept for them. Example: opendev sessions delete a1B2c3D4 --yes"""
    project = open_project(context.obj)
    stores = [_owner(project, id) for id in ids]
    if not yes:
        if not sys.stdin.isatty():
            raise OpenDevError(
                ErrorKind.UNANSWERED, "Deleting needs a yes, and nobody is there to ask.", "Give --yes."
            )
        typer.confirm(f"Delete {len(ids)} session(s) for good?", abort=True)
    for id, store in zip(ids, stores, strict=True):
        store.delete(id)
        say(f"Deleted {id}.\n")


def _row(entry: SessionEntry) -> dict[str, Any]:
    return {
        "id": entry.sessionId,
        "title": entry.title,
        "messages": entry.messageCount,
        "created": entry.created,
        "modified": entry.modified,
    }


def _report(layout: Layout, found: _Found) -> dict[str, Any]:
    meta, agents = found.meta, list[dict[str, Any]]()
    if found.kind != "agent":
        for path in sorted(layout.transcripts(found.id).glob("*.json")):
            if (child := SessionFiles(path.parent, path.stem).meta()) is not None:
                agents.append(_agent(child))
    return {
        "schema": 1,
        "id": found.id,
        "kind": found.kind,
        "title": meta.title,
        "summary": meta.summary,
        "status": meta.metadata.get("status") or "",
        "created": meta.created_at,
        "modified": meta.updated_at,
        "working_directory": meta.working_directory,
        "parent": meta.parent_id,
        "messages": meta.messages or (len(found.files.history()) if found.files else 0),
        **_cost(found.spent(layout)),
        "agents": agents,
    }


def _agent(meta: SessionMeta) -> dict[str, Any]:
    kind = meta.metadata.get("agent") or meta.metadata.get("subagent_type") or ""
    status = meta.metadata.get("status") or ""
    head = {"id": meta.id, "agent": kind, "title": meta.title, "status": status, "parent": meta.parent_id}
    return {**head, **_cost(meta.spent)}


def _cost(spent: Spent) -> dict[str, Any]:
    return {
        "model_calls": spent.api_call_count,
        "tokens": {
            "input": spent.total_input_tokens,
            "output": spent.total_output_tokens,
            "cached": spent.total_cached_tokens,
        },
        "cost_usd": spent.total_cost_usd,
    }


def _say_last(found: _Found, last: int) -> None:
    if found.files is None or not last:
        return
    for message in found.files.history()[-last:]:
        if isinstance(message, UserMessage) and message.msg_class is not MessageClass.USER:
            continue
        if isinstance(message, SystemMessage):
            continue
        calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
        text = message.content.strip() or ", ".join(call.name for call in calls)
        say(f"\n[{message.role}] {visible(text[:_CHARS])}{'…' if len(text) > _CHARS else ''}\n")


def _owner(project: Project, id: str) -> SessionStore:
    """The store that holds a session: this project's first. Raises ``OpenDevError`` (usage)."""
    own = SessionStore(project.layout, project.path)
    for store in (own, *every_store(project.layout)):
        with contextlib.suppress(OpenDevError):
            store.find(id)
            return store
    own.find(id)
    return own


def _find(project: Project, id: str) -> _Found:
    """A session, else a run, else an agent. Raises ``OpenDevError`` (usage)."""
    layout = project.layout
    try:
        files = _owner(project, id).find(id)
    except OpenDevError:
        if "/" in id or id.startswith("."):
            raise
        if layout.ledger(id).exists() or layout.transcripts(id).is_dir():
            return _Found("run", id, None, SessionMeta(id=id))
        agents = (SessionFiles(folder, id) for folder in layout.transcripts("").glob("*"))
        files = next((files for files in agents if files.transcript.exists()), None)
        if files is None:
            raise
        return _Found("agent", id, files, files.meta() or SessionMeta(id=id))
    return _Found("session", id, files, files.meta() or SessionMeta(id=id))
