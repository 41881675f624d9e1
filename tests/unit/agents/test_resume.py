"""A session that goes on: its messages, todos, mode, activated tools, skills and its last summary come back (SES-08, TSK-09, SKL-04)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from opendev.core.agent import AgentStatus
from opendev.core.chat import AssistantMessage, ModelRequest, UserMessage
from opendev.core.session import SessionMeta
from opendev.core.tool import TodoState
from opendev.store.layout import Layout
from opendev.store.session_files import SessionFiles
from opendev.store.sessions import SessionStore
from support.agents import Bench
from support.conversations import Summariser
from support.scripted_model import call, calls, says

ID = "Session1"


def where(bench: Bench) -> SessionFiles:
    return SessionStore(Layout(bench.home), bench.root).files(ID)


def record(bench: Bench) -> SessionMeta:
    found = where(bench).meta()
    assert found is not None
    return found


async def go_on(bench: Bench, prompt: str, **fields: Any) -> None:
    history = await asyncio.to_thread(where(bench).history)
    report = await bench.run(prompt=prompt, session=ID, run_id=ID, history=history, **fields)
    assert report.status is AgentStatus.DONE, report


def shown(request: ModelRequest) -> str:
    return "\n".join(getattr(message, "content", "") for message in request.messages)


@pytest.mark.req("TSK-09", "SES-01", "SES-04")
async def test_todos_and_messages_come_back_and_the_record_counts_them(tmp_path: Path) -> None:
    todos = call("write_todos", "t", todos=[{"title": "one"}, {"title": "two"}])
    bench = Bench(tmp_path, calls(todos), *[says("Begun.")] * 3)
    await go_on(bench, "Begin.")
    assert [row["text"] for row in record(bench).todos] == ["one", "two"]
    count = record(bench).messages
    assert count == len(where(bench).history())
    again = Bench(
        tmp_path,
        calls(call("complete_todo", "c", id="1")),
        calls(call("complete_todo", "d", id="2")),
        says("End."),
    )
    await go_on(again, "Go on.")
    assert {row["state"] for row in record(again).todos} == {TodoState.DONE.value}
    first = again.model.requests[0]
    assert shown(first).count("Begin.") == shown(first).count("Go on.") == 1
    assert record(again).messages == len(where(again).history()) > count
    assert (record(again).title, record(again).summary) == ("Begin.", "End.")
    assert record(again).created_at < record(again).updated_at
    raw = where(again).transcript.read_text()
    assert sum(json.loads(line)["role"] == "system" for line in raw.splitlines()) == 1


async def test_without_a_history_nothing_of_an_earlier_run_comes_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(call("write_todos", "t", todos=[{"title": "one"}])), *[says("Begun.")] * 3)
    await bench.run()
    again = Bench(tmp_path, says("End."))
    report = await again.run()
    assert (report.status, len(again.model.requests)) == (AgentStatus.DONE, 1)


@pytest.mark.req("SKL-04", "MCP-02")
async def test_what_was_activated_and_loaded_is_kept_and_damage_is_passed_over(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("Begun."))
    await go_on(bench, "Begin.")
    where(bench).update(
        lambda meta: (meta or SessionMeta(id=ID)).with_metadata(
            activated=["web_search"], skills=["review"], todos=["torn", {"id": 5}], view={"upto": "x"}
        )
    )
    again = Bench(tmp_path, says("End."))
    await go_on(again, "Go on.")
    kept = record(again).metadata
    assert (kept["activated"], kept["skills"], kept["todos"]) == (["web_search"], ["review"], [])


@pytest.mark.req("SES-01", "CMP-07")
async def test_a_summary_stands_for_the_same_messages_after_a_resume(tmp_path: Path) -> None:
    steps = [
        calls(call("list_files", f"l{n}", path=".", max_results=n + 1), text=f"Step {n}.") for n in range(12)
    ]
    bench = Bench(tmp_path, *steps, says("First end."))
    bench.compact = Summariser()
    inject = bench.model.complete

    async def complete(request: ModelRequest, on_delta: Any = None) -> Any:
        if len(bench.model.requests) == 10:
            assert bench.agent is not None
            bench.agent.inject("/compact")
        return await inject(request, on_delta)

    bench.model.complete = complete
    await go_on(bench, "THE TASK")
    view = record(bench).metadata["view"]
    assert view["upto"] > 5
    again = Bench(tmp_path, says("Second end."))
    again.compact = Summariser()
    await go_on(again, "Go on.")
    request = again.model.requests[0]
    said = [message.content for message in request.messages if isinstance(message, AssistantMessage)]
    assert "Step 0." not in said
    assert "Step 11." in said
    assert "THE TASK" in shown(request)
    assert any(isinstance(m, UserMessage) and m.content == view["summary"] for m in request.messages)
    kept = [
        line.message.content for line in where(again).read() if isinstance(line.message, AssistantMessage)
    ]
    assert "Step 0." in kept  # the transcript keeps every original


@pytest.mark.req("SES-04")
@pytest.mark.parametrize(("interval", "writes"), [(5, 2), (1, 10)])
async def test_the_record_is_written_every_few_turns_and_at_the_end(
    tmp_path: Path, interval: int, writes: int
) -> None:
    steps = [calls(call("list_files", f"l{n}", path=".", max_results=n + 1)) for n in range(9)]
    bench = Bench(tmp_path, *steps, says("End."))
    bench.settings = bench.settings.model_copy(update={"auto_save_interval": interval})
    counts: list[int] = []
    inner = bench.model.complete

    async def complete(request: ModelRequest, on_delta: Any = None) -> Any:
        counts.append(record(bench).messages)
        return await inner(request, on_delta)

    bench.model.complete = complete
    await go_on(bench, "Begin.")
    assert len(set(counts)) == writes
    assert record(bench).messages == len(where(bench).history())
    assert record(bench).metadata["status"] == "done"
