"""A session of 200 turns with 20 kB of output each: inside the window, nothing of the user lost, stable prefixes (CMP-01..16)."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from opendev.agents.settings import AgentSettings
from opendev.context.pressure import estimate
from opendev.core.agent import AgentReport, AgentStatus
from opendev.core.chat import ModelFailed, ModelReply, ModelRequest, Role, ToolMessage, UserMessage
from opendev.core.errors import ErrorInfo, ErrorKind
from opendev.core.events import Compacted
from opendev.core.ports import CommandResult
from opendev.core.tool import Limits
from support.agents import Bench
from support.conversations import Summariser
from support.scripted_model import call, calls, done, failed, pairs_are_whole, says

WINDOW = 128_000
RESERVE = 8_192


class Loud:
    """A shell whose every command prints 20 kB."""

    def __init__(self, chars: int = 20_000) -> None:
        self.chars = chars

    async def run(
        self,
        command: str,
        *,
        cwd: Path,
        env: Mapping[str, str],
        idle_s: float,
        total_s: float,
        on_output: Callable[[str], None] | None = None,
    ) -> CommandResult:
        text = "\n".join(
            f"{command} line {n}: all is well and nothing of note happened here" for n in range(300)
        )
        return CommandResult(exit_code=0, text=text[: self.chars], ended="exit", wall_s=0.1)


class Worker:
    """A model that works for ``turns`` turns; it counts tokens like a provider whose tokens are smaller than we estimate."""

    def __init__(self, bench: Bench, turns: int, rules: Mapping[int, str]) -> None:
        self.bench, self.turns, self.rules = bench, turns, rules
        self.requests: list[tuple[int, ModelRequest]] = []
        self.sizes: list[int] = []

    async def complete(
        self, request: ModelRequest, on_delta: Callable[[str], None] | None = None
    ) -> ModelReply | ModelFailed:
        turn = len(self.requests)
        stages = [e for e in self.bench.events if isinstance(e, Compacted) and e.stage != "warn"]
        self.requests.append((len(stages), request))
        tokens = int(1.15 * estimate(request.messages, request.tools))
        self.sizes.append(tokens)
        if rule := self.rules.get(turn):
            assert self.bench.agent is not None
            assert self.bench.agent.inject(rule)
        if turn == 0:
            todos = [{"title": f"TODO-{n}", "status": "todo"} for n in range(5)]
            return calls(call("write_todos", "todos", todos=todos), tokens=tokens)
        if turn < self.turns:
            return calls(
                call("run_command", f"c{turn}", command=f"echo {turn}"), text=f"Step {turn}.", tokens=tokens
            )
        if turn == self.turns:
            left = tuple(call("complete_todo", f"t{n}", id=str(n + 1)) for n in range(5))
            return calls(*left, tokens=tokens)
        return done("All done.")


async def session(
    tmp_path: Path,
    turns: int,
    rules: Mapping[int, str],
    kind: type[Worker] = Worker,
    changes: Mapping[str, object] = MappingProxyType({}),
) -> tuple[Worker, Bench, AgentReport]:
    bench = Bench(tmp_path)
    bench.shell = Loud()
    bench.compact = Summariser("## Goal\nKeep going.\n## State\nAll well.")
    bench.settings = AgentSettings(
        models={Role.ACTION: "test/model"},
        fallback_window=WINDOW,
        max_tokens=RESERVE,
        max_iterations=turns + 20,
        limits=Limits(offload_chars=30_000),
    ).model_copy(update=changes)
    model = kind(bench, turns, rules)
    bench.client = model
    report = await bench.run(prompt="THE GREAT TASK")
    return model, bench, report


def users(request: ModelRequest) -> str:
    return "\n".join(m.content for m in request.messages if isinstance(m, UserMessage))


def everything(request: ModelRequest) -> str:
    return "\n".join(m.model_dump_json() for m in request.messages)


@pytest.mark.slow
@pytest.mark.req("CMP-01", "CMP-02", "CMP-08", "CMP-13", "C-39")
async def test_200_turns_of_20_kb_stay_inside_the_window_and_lose_nothing(tmp_path: Path) -> None:
    rules = {turn: f"RULE-{turn}: never touch file {turn}" for turn in (3, 40, 77, 120, 121, 180)}
    model, bench, report = await session(tmp_path, 200, rules)
    assert (report.status, report.text) == (AgentStatus.DONE, "All done.")
    assert len(model.requests) >= 202
    assert max(model.sizes) + RESERVE <= WINDOW
    stages = [event.stage for event in bench.events if isinstance(event, Compacted)]
    assert {"warn", "mask"} <= set(stages)
    for number, (_, request) in enumerate(model.requests):
        said = users(request)
        assert "THE GREAT TASK" in said
        assert [rule for turn, rule in rules.items() if turn < number - 1 and rule not in said] == []
        if number > 1:
            whole = everything(request)
            assert [n for n in range(5) if f"TODO-{n}" not in whole] == []
    assert pairs_are_whole([request for _, request in model.requests]) == []
    assert broken_prefixes(model.requests) == []
    assert len({json.dumps([t.model_dump() for t in r.tools]) for _, r in model.requests}) == 1
    raw = await asyncio.to_thread(Path(report.transcript).read_text)
    lines = [json.loads(line) for line in raw.splitlines()]
    results = [m for m in lines if m["role"] == "tool" and m["name"] == "run_command"]
    assert len(results) == 199
    assert all(
        "line 200: all is well" in m["content"] for m in results
    )  # the transcript keeps every original


@pytest.mark.slow
@pytest.mark.req("RET-09")
async def test_a_small_window_is_not_summarised_loses_nothing_and_keeps_its_prefixes(tmp_path: Path) -> None:
    rules = {3: "RULE-3: never touch file 3", 30: "RULE-30: never touch file 30"}
    small: dict[str, object] = {
        "fallback_window": 32_000,
        "max_tokens": 4_096,
        "limits": Limits(offload_chars=6_000),
    }
    model, bench, report = await session(tmp_path, 60, rules, Brief, small)
    assert report.status is AgentStatus.DONE
    stages = [event.stage for event in bench.events if isinstance(event, Compacted)]
    assert set(stages) <= {"warn", "mask"}
    assert 5 < stages.count("mask") < 20
    assert max(model.sizes) < 0.8 * 32_000
    assert broken_prefixes(model.requests) == []
    last = everything(model.requests[-2][1])
    assert [word for word in ("THE GREAT TASK", *rules.values(), "TODO-4") if word not in last] == []


@pytest.mark.slow
@pytest.mark.req("CMP-07")
async def test_a_session_of_long_answers_is_summarised_and_goes_on(tmp_path: Path) -> None:
    rules = {2: "RULE-2: no new files", 60: "RULE-60: stop at B"}
    model, bench, report = await session(tmp_path, 80, rules, Talkative)
    assert report.status is AgentStatus.DONE
    stages = [event.stage for event in bench.events if isinstance(event, Compacted)]
    assert "summarise" in stages
    assert max(model.sizes) + RESERVE <= 1.02 * WINDOW
    last = users(model.requests[-1][1])
    assert "RULE-2: no new files" in last
    assert "RULE-60: stop at B" in last
    assert "TODO-3" in everything(model.requests[-2][1])
    assert pairs_are_whole([request for _, request in model.requests]) == []


class Brief(Worker):
    """Works with commands that print 5 kB."""

    def __init__(self, bench: Bench, turns: int, rules: Mapping[int, str]) -> None:
        super().__init__(bench, turns, rules)
        bench.shell = Loud(5_000)


class Talkative(Worker):
    """Says 8 kB in every turn: text that no stage but the last can shorten."""

    async def complete(
        self, request: ModelRequest, on_delta: Callable[[str], None] | None = None
    ) -> ModelReply | ModelFailed:
        reply = await super().complete(request, on_delta)
        assert isinstance(reply, ModelReply)
        if not reply.message.tool_calls or reply.message.tool_calls[0].name != "run_command":
            return reply
        return reply.model_copy(
            update={"message": reply.message.model_copy(update={"content": "thought " * 1_000})}
        )


def broken_prefixes(requests: list[tuple[int, ModelRequest]]) -> list[int]:
    """The requests that do not begin with the one before although no stage ran in between."""
    broken: list[int] = []
    for number in range(1, len(requests)):
        (before_stage, before), (stage, request) = requests[number - 1], requests[number]
        if stage == before_stage and request.messages[: len(before.messages)] != before.messages:
            broken.append(number)
    return broken


@pytest.mark.req("CMP-16")
async def test_a_stage_is_an_event_with_tokens_before_and_after(tmp_path: Path) -> None:
    _, bench, _ = await session(tmp_path, 24, {})
    masks = [event for event in bench.events if isinstance(event, Compacted) and event.stage == "mask"]
    assert masks
    assert all(0 < event.after < event.before for event in masks)
    notices = [event.text for event in bench.events if event.kind == "notice"]
    assert any("older output will soon be left out" in text for text in notices)
    assert any("tokens a turn" in text for text in notices)


@pytest.mark.req("CMP-15")
async def test_the_user_can_ask_for_a_compaction(tmp_path: Path) -> None:
    _, bench, report = await session(tmp_path, 12, {6: " /compact "})
    assert report.status is AgentStatus.DONE
    stages = [event.stage for event in bench.events if isinstance(event, Compacted)]
    assert stages == ["summarise"]
    raw = await asyncio.to_thread(Path(report.transcript).read_text)
    assert "/compact" not in raw


@pytest.mark.req("CMP-11")
async def test_the_summary_names_an_archive_the_agent_can_read(tmp_path: Path) -> None:
    model, _, _ = await session(tmp_path, 20, {6: "/compact"})
    summary = next(
        m.content
        for _, r in model.requests
        for m in r.messages
        if isinstance(m, UserMessage) and "archive" in m.content
    )
    path = next(word for word in summary.split() if word.rstrip(".;,").endswith(".md")).rstrip(".;,")
    assert "read that file" in summary
    bench = Bench(tmp_path, calls(call("read_file", "r", file_path=path)), says("Read."))
    await bench.run(prompt="look it up")
    result = bench.model.requests[1].messages[-1]
    assert isinstance(result, ToolMessage)
    assert "THE GREAT TASK" in result.content


async def test_an_overflow_gets_one_emergency_compaction_each_and_then_an_honest_end(tmp_path: Path) -> None:
    listing = [calls(call("list_files", f"c{n}", path=".", max_results=n + 1)) for n in range(4)]
    too_long = failed("prompt is too long", ErrorKind.CONTEXT)
    bench = Bench(tmp_path, listing[0], too_long, listing[1], too_long, listing[2], says("ok"))
    assert (await bench.run()).status is AgentStatus.DONE
    assert bench.kinds().count("compacted") >= 2
    bench = Bench(tmp_path, listing[0], too_long, too_long)
    report = await bench.run(id="a2")
    assert report.status is AgentStatus.INFRA
    assert report.error is not None
    assert report.error.kind is ErrorKind.CONTEXT
    assert len(bench.model.requests) == 3


async def test_without_reported_tokens_the_estimate_decides(tmp_path: Path) -> None:  # M27
    bench = Bench(tmp_path)
    bench.shell = Loud()
    bench.compact = Summariser(ErrorInfo(kind=ErrorKind.INFRA, message="gone"))
    bench.settings = AgentSettings(
        models={Role.ACTION: "test/model"},
        fallback_window=30_000,
        max_tokens=1_000,
        limits=Limits(offload_chars=30_000),
    )
    bench.model.add(
        *[calls(call("run_command", f"c{n}", command=f"echo {n}"), tokens=0) for n in range(12)],
        says("ok", tokens=0),
    )
    assert (await bench.run()).status is AgentStatus.DONE
    assert any(isinstance(event, Compacted) for event in bench.events)
    assert max(estimate(r.messages, r.tools) for r in bench.model.requests) < 30_000


async def test_the_rules_of_the_project_are_in_every_request(tmp_path: Path) -> None:  # C05, C17
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "AGENTS.md").write_text("MARKER_RULE\n" + "long " * 100_000)
    model, bench, _ = await session(tmp_path, 30, {8: "/compact"})
    assert any(isinstance(event, Compacted) for event in bench.events)
    for _, request in model.requests:
        system = request.messages[0].model_dump_json()
        assert "MARKER_RULE" in system
        assert len(system) < 60_000
        assert system.count("long ") <= 16_000 // 5
