"""Everything that grows with the length of a session, its bound, and the test that overfills it (ARC-05).

``GROWING`` is the literal list. A new deque, queue, ordered map or log must be put into it with a bound and a test: an
unlisted one fails here, and so does an entry whose container or test is gone.
"""

# pyright: reportPrivateUsage=false
import ast
import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opendev.actors.eventlog import EventLog, LineWriter
from opendev.actors.main import Mailbox
from opendev.actors.outbox import Outbox
from opendev.actors.state import board
from opendev.agents.doomloop import WINDOW, DoomLoop
from opendev.agents.recovery import Recovery
from opendev.agents.transcript import Transcript
from opendev.context.artifacts import MAX_ARTIFACTS, artifact_index
from opendev.context.pressure import Stage, Trend
from opendev.context.reminders import Reminders
from opendev.core.chat import AssistantMessage, ToolMessage
from opendev.core.clock import SystemClock
from opendev.core.errors import ErrorInfo, ErrorKind, OpenDevError
from opendev.core.events import Event, Notice, TextDelta
from opendev.core.mail import Progress
from opendev.llm.budget import Estimate, Ledger
from opendev.llm.catalog import Price
from opendev.store.session_files import SessionFiles
from opendev.tools.catalog import BUILTIN
from opendev.tools.lsp.pool import MAX_CRASHED, ServerPool
from opendev.tools.registry import ToolRegistry
from support.scripted_model import call

ROOT = Path(__file__).resolve().parents[2]
HERE = "house/test_bounds.py::"


class Bound(NamedTuple):
    """What limits it, and the test that overfills it (below ``tests/``)."""

    limit: str
    test: str


GROWING = {
    # events and mail
    "actors/eventlog.py LineWriter._queue": Bound("5,000 lines, ephemeral events go first, posts wait", HERE + "test_events_of_a_slow_disk_are_bounded"),
    "actors/eventlog.py _Subscriber.queue": Bound("1,000 events, then it reads the log", HERE + "test_a_subscriber_that_sleeps_is_bounded"),
    "actors/eventlog.py LineWriter._file": Bound("one durable line an event; events are bounded by iterations", "unit/agents/test_react.py::test_the_cap_forces_a_summary_without_tools"),
    "actors/outbox.py Outbox._waiting": Bound("2,000 letters: ephemeral ones go, senders wait", HERE + "test_an_outbox_that_is_not_fetched_is_bounded"),
    "actors/main.py Mailbox._posts": Bound("10,000 letters, then senders wait", "unit/actors/test_mail.py::test_the_mailbox_is_bounded_and_reports_askers_that_left"),
    "actors/main.py Mailbox._asks": Bound("10,000 questions, then askers wait", HERE + "test_questions_in_the_mailbox_are_bounded"),
    "actors/main.py Mailbox._gone": Bound("at most one for each question that was taken", HERE + "test_questions_in_the_mailbox_are_bounded"),
    "actors/inbox.py Inbox._filed": Bound("1,000 reports", "unit/actors/test_broker.py::test_the_inbox_survives_a_restart_and_is_bounded"),
    "actors/inbox.py Inbox._log": Bound("three lines a sub-agent, at most 200 of them in a run", "unit/actors/test_broker.py::test_endless_spawning_stops_at_the_caps_and_nobody_is_left"),
    "actors/hub.py Hub._prompts": Bound("100 prompts, then the interface waits", HERE + "test_prompts_without_an_agent_are_bounded"),
    "actors/permits.py Permits._queue": Bound("one place an agent", "unit/actors/test_broker.py::test_endless_spawning_stops_at_the_caps_and_nobody_is_left"),
    "actors/broker.py Broker._background": Bound("the cap of spawns in a run", "unit/actors/test_broker.py::test_endless_spawning_stops_at_the_caps_and_nobody_is_left"),
    "actors/state/board.py Board.claims": Bound("1,000 claims", HERE + "test_claims_are_bounded"),
    "actors/state/board.py Board.notes": Bound("200 notes", "unit/actors/test_board.py::NOTES"),
    "policy/grants.py MAX_GRANTS": Bound("1,000 answers of each kind in a session, then it is asked again", "unit/policy/test_grants.py::test_grants_are_bounded"),
    "store/history.py MAX_BYTES": Bound("two files of 2 MB", "unit/store/test_history.py::test_the_history_is_private_and_bounded"),
    "store/permissions.py MAX_RULES": Bound("1,000 rules, 1 MB a file", "unit/store/test_permissions.py::test_always_is_saved_once_beside_what_stands_there"),
    # one agent
    "agents/inbox.py Inbox._queue": Bound("10 messages, the sender is told", "unit/agents/test_factory.py::test_the_inbox_is_bounded_and_tells_the_sender"),
    "agents/doomloop.py DoomLoop._outputs": Bound("40 commands", HERE + "test_fingerprints_and_outputs_are_bounded"),
    "agents/doomloop.py DoomLoop._window": Bound("20 fingerprints", HERE + "test_fingerprints_and_outputs_are_bounded"),
    "agents/recovery.py Recovery._seen": Bound("4 failures", HERE + "test_failures_are_bounded"),
    "agents/transcript.py Transcript._waiting": Bound("the iteration cap", "unit/agents/test_react.py::test_the_cap_forces_a_summary_without_tools"),
    "agents/transcript.py Transcript._early": Bound("the calls of one batch", HERE + "test_results_on_disk_are_forgotten_when_they_are_noted"),
    "agents/iteration.py IterationContext.nudges": Bound("three of a kind", "unit/agents/test_signals.py::test_five_answers_that_only_read_are_noticed_thrice_at_most"),
    "context/pressure.py Trend._seen": Bound("20 turns", HERE + "test_the_trend_is_bounded"),
    "context/artifacts.py artifact_index": Bound("200 files", HERE + "test_the_artifact_index_is_bounded"),
    "context/playbook.py Playbook.bullets": Bound("200 bullets, 100 kB", "unit/context/test_playbook.py::MAX_BULLETS"),
    "core/session.py SessionMeta.subagent_sessions": Bound("1,000 links", "unit/store/test_sessions.py::test_links_are_bounded_and_a_call_has_one"),
    "store/oplog.py OperationLog.latest": Bound("50 operations, two files of 20 MB", "unit/agents/test_undo.py::test_the_log_is_bounded_and_a_full_disk_does_not_stop_the_work"),
    "store/oplog.py OperationLog._answer": Bound("100 MB, then that answer is not covered", "unit/agents/test_undo.py::test_writes_too_large_to_hold_are_said"),
    "store/undo_steps.py UndoSteps": Bound("50 steps of 500 answers", "unit/agents/test_undo.py::test_steps_are_bounded_and_the_oldest_lets_go"),
    "store/plans.py KEPT": Bound("500 entries", "unit/store/test_plans.py::test_names_run_out_into_numbers_and_the_index_is_bounded"),
    # tools
    "tools/hooks.py HookEngine._beside": Bound("100 events, two at once", "unit/tools/test_hooks.py::test_hooks_beside_the_work_are_bounded_and_ended"),
    "tools/dispatch.py Dispatcher.max_parallel": Bound("5 calls at once", HERE + "test_calls_at_once_are_bounded"),
    "tools/files.py SeenHashes._seen": Bound("10,000 files", "unit/tools/test_files.py::test_seen_files_are_bounded"),
    "tools/shell/process.py ProcessShell._logs": Bound("LOGS_KEPT files of 20 MB", "unit/tools/test_shell.py::LOGS_KEPT"),
    "tools/shell/process.py ProcessShell._pumps": Bound("PUMPS_KEPT", "unit/tools/test_shell.py::PUMPS_KEPT"),
    "tools/shell/background.py BackgroundTasks._tasks": Bound("16 at once, 50 known", "unit/tools/test_background.py::test_the_number_of_tasks_is_bounded"),
    "tools/shell/rolling.py RollingFile": Bound("5 MB a file, 100 files", "unit/tools/test_background.py::test_the_output_file_is_bounded_and_keeps_its_end"),
    "tools/offload.py Offloader": Bound("8,000 characters in a result, files of one folder", "unit/tools/test_offload.py::test_files_and_folder_are_bounded"),
    "tools/todo_list.py MAX_TODOS": Bound("100 items", "unit/tools/test_todos.py::test_the_list_is_bounded"),
    "tools/lsp/pool.py ServerPool._entries": Bound("3 servers", "unit/tools/test_symbols.py::test_a_crashed_server_is_started_anew_and_servers_are_bounded"),
    "tools/lsp/pool.py ServerPool._crashes": Bound("50 folders", HERE + "test_remembered_crashes_are_bounded"),
    "tools/lsp/server.py LanguageServer._open": Bound("1,000 files", HERE + "test_open_files_of_a_server_are_bounded"),
    "tools/lsp/server.py LanguageServer._published": Bound("1,000 files", HERE + "test_diagnostics_are_bounded"),
    "tools/lsp/cache.py SymbolCache": Bound("4,000 files a level", "unit/tools/test_lsp_lifecycle.py::test_the_cache_is_bounded"),
    "tools/list_files.py deque": Bound("200,000 entries looked at", "unit/tools/test_list_files.py::test_caps"),
    "tools/web/crawl.py Frontier": Bound("50 pages", "unit/tools/test_crawl.py::test_caps_on_pages_depth_and_characters"),
    # models and runs
    "llm/prefix.py PrefixWarmer._known": Bound("256 prefixes", "unit/llm/test_prefix.py::test_prefixes_are_bounded"),
    "llm/budget.py Ledger._unwritten": Bound("1,000 rows the disk refused", HERE + "test_rows_a_full_disk_refuses_are_bounded"),
    "swarm/books.py Books.notes": Bound("300 notes", "unit/swarm/test_report.py::test_notes_are_bounded"),
    "cli/repl/fan.py _Reader.queue": Bound("5,000 events, ephemeral ones go first, then the oldest; it is told", "unit/cli/repl/test_events.py::test_a_screen_that_sleeps_is_bounded_and_told"),
    "cli/repl/turns.py Turns._waiting": Bound("100 messages with those below, then the user is told", "unit/cli/repl/test_events.py::test_waiting_messages_are_bounded_and_the_user_is_told"),
    "cli/repl/turns.py Turns._typed": Bound("100 messages with those above", "unit/cli/repl/test_events.py::test_waiting_messages_are_bounded_and_the_user_is_told"),
    "store/typed.py KEPT": Bound("1,000 entries", "unit/store/test_typed.py::test_the_history_is_private_bounded_and_lenient"),
    "ui/repl/screen.py Screen.lines": Bound("100 lines, then Enter leaves them in the input", "unit/ui/repl/test_screen.py::test_lines_that_wait_are_bounded"),
    "ui/repl/printer.py BLOCKS_MAX": Bound("2,000 blocks that wait for the terminal", "unit/ui/repl/test_screen.py::test_lines_that_wait_are_bounded"),
    "ui/repl/feed.py Feed.calls": Bound("200 calls, 1,000 agents, 500 questions", "unit/ui/repl/test_feed.py::test_what_the_feed_keeps_is_bounded"),
    "ui/repl/stream.py MAX_OPEN": Bound("20,000 characters", "unit/ui/repl/test_feed.py::test_an_endless_block_is_bounded"),
    "ui/repl/dialogs.py WAITING_MAX": Bound("200 questions", "unit/ui/repl/test_dialogs.py::test_the_line_is_bounded"),
    "ui/board.py Board": Bound("4 notices, 2,000 agents", "unit/ui/test_ui.py::test_the_board_is_bounded"),
    "actors/janitor.py paths": Bound("1,000 folders", HERE + "test_the_janitor_keeps_a_bounded_number_of_folders"),
}  # fmt: skip


def _found() -> set[str]:
    """Files that make a deque without a length, a queue or an ordered map."""
    found: set[str] = set()
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT)
        if name.parts[0] in ("tests", "bench", "docs", "scripts", "build") or name.parts[0].startswith("."):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            made = ast.unparse(node.func).rsplit(".", 1)[-1].split("[")[0]
            bounded = made == "deque" and (
                any(k.arg == "maxlen" for k in node.keywords) or not _in_class(path, node)
            )
            if made in ("deque", "Queue", "OrderedDict", "SimpleQueue") and not bounded:
                found.add(name.as_posix())
    return found


def _in_class(path: Path, node: ast.Call) -> bool:
    """Whether the container is kept by an object; one of a function ends with the call."""
    line = path.read_text().splitlines()[node.lineno - 1]
    return "self." in line or "field(" in line or line.startswith(" " * 4 + "_")


LOCAL_ONLY = {"llm/replay.py"}  # the answers of one recording, read once; they only get fewer


@pytest.mark.req("ARC-05")
def test_every_growing_container_is_in_the_list() -> None:
    listed = {entry.split()[0] for entry in GROWING}
    assert _found() - listed - LOCAL_ONLY == set()


@pytest.mark.req("ARC-05")
@pytest.mark.parametrize("entry", sorted(GROWING))
def test_the_list_is_true(entry: str) -> None:
    """The container is there, and so is the test of its bound."""
    file, what = entry.split(" ", 1)
    source = (ROOT / file).read_text()
    assert all(part in source for part in what.split(".")), entry
    held, name = GROWING[entry].test.split("::")
    assert name in (ROOT / "tests" / held).read_text(), GROWING[entry]


@pytest.mark.req("ARC-05")
def test_no_cache_of_a_function_is_without_a_bound() -> None:
    few = {
        "agents/stages/thinking.py": "_system",  # two roles
        "context/outline.py": "_tools",  # the languages there are
        "context/reminders.py": "_sections",  # files of the package
    }
    loose = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).parts[0] not in ("tests", "bench", ".venv", "scripts")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.args
        for mark in node.decorator_list
        if ast.unparse(mark) in ("cache", "functools.cache", "lru_cache(maxsize=None)", "lru_cache(None)")
        if few.get(path.relative_to(ROOT).as_posix()) != node.name
    ]
    assert loose == []


def delta(text: str = "x") -> TextDelta:
    return TextDelta(text=text)


@pytest.mark.req("ARC-05")
async def test_events_of_a_slow_disk_are_bounded(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl", run_id="r", clock=SystemClock())
    writer: LineWriter = log._writer
    for number in range(20_000):  # nothing is written before the loop runs again
        log.emit(delta())
        if number % 10 == 0:
            log.emit(Notice(level="info", text=str(number)))
    assert (
        len(writer._queue) <= 5_000 + 2_000
    )  # the bound, and the durable ones: whoever posts them waits in ``room``
    await writer.room()
    assert not writer._queue
    await log.close()
    stored = [event async for event in log.subscribe()]
    assert len(stored) == 2_000  # none of them lost


@pytest.mark.req("ARC-05")
async def test_a_subscriber_that_sleeps_is_bounded(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.jsonl", run_id="r", clock=SystemClock(), queue_limit=50)
    await log.start()
    stream = log.subscribe()
    log.emit(Notice(level="info", text="first"))
    await log.flush()
    got: list[Event] = [await anext(stream)]
    (reader,) = log._subscribers
    for number in range(500):
        log.emit(Notice(level="info", text=str(number)))
        log.emit(delta())
    await log.flush()
    assert len(reader.queue) <= 50
    await log.close()
    got += [event async for event in stream]
    assert sum(isinstance(event, Notice) for event in got) == 501


class Deaf:
    """A post office that never answers."""

    name = "post"

    async def ask(self, method: str, *args: Any) -> Any:
        await asyncio.Event().wait()

    def stream(self, method: str, *args: Any) -> Any:
        raise NotImplementedError


@pytest.mark.req("ARC-05")
async def test_an_outbox_that_is_not_fetched_is_bounded() -> None:
    outbox = Outbox(post=Deaf(), sender="a#1", session="s", clock=SystemClock(), window_s=0.0, limit=20)
    for number in range(500):
        outbox.put(Progress(event=TextDelta(agent=str(number), text="x")))
    assert len(outbox._waiting) == 20
    assert outbox.dropped == 480
    await asyncio.sleep(0.01)  # one batch is in the air now, and stays there
    for number in range(500):
        outbox.put(Progress(event=TextDelta(agent=str(number), text="x")))
    assert len(outbox._waiting) == 20
    waits = asyncio.create_task(outbox.room())
    await asyncio.sleep(0.01)
    assert not waits.done()
    for task in (waits, outbox._pump):
        assert task is not None
        task.cancel()


@pytest.mark.req("ARC-05")
async def test_questions_in_the_mailbox_are_bounded() -> None:
    box = Mailbox(limit=3)
    asks = [asyncio.create_task(box.ask(str(number))) for number in range(50)]
    await asyncio.sleep(0.01)
    assert len(box._asks) == 3
    for one in asks:
        one.cancel()
    await asyncio.gather(*asks, return_exceptions=True)
    assert len(box._gone) <= 3
    assert box._parked == {}
    batch = await box.drain(0.0, 1.0)
    assert (len(batch["asks"]), len(batch["gone"])) == (3, 3)
    late = asyncio.create_task(box.ask("late"))
    await asyncio.sleep(0.01)
    ((key, letter),) = (await box.drain(0.0, 1.0))["asks"]
    await box.answer([(key, f"answer to {letter}")])
    assert await late == "answer to late"


@pytest.mark.req("ARC-05")
async def test_prompts_without_an_agent_are_bounded(tmp_path: Path) -> None:
    from opendev.actors.hub import PROMPTS
    from opendev.actors.local_runtime import LocalRuntime
    from opendev.core.ops import Prompt
    from support.runtimes import hub_on

    async with hub_on(LocalRuntime(), tmp_path) as hub:
        for number in range(PROMPTS):
            await hub.submit(Prompt(text=str(number)))
        over = asyncio.create_task(hub.submit(Prompt(text="one more")))
        await asyncio.sleep(0.02)
        assert not over.done()
        assert await hub.next_prompt() == "0"
        await over


@pytest.mark.req("ARC-05")
def test_claims_are_bounded() -> None:
    state = board.Board()
    for number in range(board.CLAIMS + 50):
        state, _ = board.step(state, board.Take(f"k{number}", "a", 0.0, 1_000.0))
    assert len(state.claims) == board.CLAIMS


@pytest.mark.req("ARC-05")
def test_fingerprints_and_outputs_are_bounded() -> None:
    doom = DoomLoop(ToolRegistry(BUILTIN))
    for number in range(300):
        one = call("run_command", f"c{number}", command=f"echo {number}")
        doom.check([one])
        doom.note(one, ToolMessage(call_id=one.id, name=one.name, content=str(number)))
    assert len(doom._window) == WINDOW
    assert len(doom._outputs) == 2 * WINDOW
    assert doom._warned <= set(doom._window)


@pytest.mark.req("ARC-05")
def test_failures_are_bounded() -> None:
    recovery = Recovery(can_complete=True, reminders=Reminders())
    for number in range(300):
        name = "".join(chr(97 + int(digit)) for digit in str(number))
        result = ToolMessage(call_id="c", name="run_command", content=f"Error: no {name}", is_error=True)
        recovery.note([result], ErrorInfo(kind=ErrorKind.TOOL, message=result.content))
    assert len(recovery._seen) == 4


@pytest.mark.req("ARC-05", "ARC-02")
async def test_results_on_disk_are_forgotten_when_they_are_noted(tmp_path: Path) -> None:
    transcript = Transcript(SessionFiles(tmp_path, "a"), SystemClock(), 5)
    for number in range(100):
        result = ToolMessage(call_id=str(number), name="read_file", content="x")
        await transcript.result(result)
        transcript.note(result)
    await transcript.flush()
    assert transcript._early == {}
    assert len(await asyncio.to_thread(lambda: transcript.path.read_text().splitlines())) == 100


@pytest.mark.req("ARC-05")
def test_the_trend_is_bounded() -> None:
    trend = Trend()
    for number in range(1_000):
        trend.note(number * 10, Stage.WARN)
    assert len(trend._seen) == 20
    assert trend.per_turn() == 10


@pytest.mark.req("ARC-05")
def test_the_artifact_index_is_bounded() -> None:
    said: list[AssistantMessage | ToolMessage] = []
    for number in range(MAX_ARTIFACTS + 100):
        one = call("read_file", f"c{number}", file_path=f"f{number}.py")
        said += [AssistantMessage(tool_calls=(one,)), ToolMessage(call_id=one.id, name=one.name, content="x")]
    lines = artifact_index(said).splitlines()
    assert (len(lines), lines[-1]) == (MAX_ARTIFACTS, f"f{MAX_ARTIFACTS + 99}.py: read")


@pytest.mark.req("ARC-05")
def test_remembered_crashes_are_bounded(tmp_path: Path) -> None:
    pool = ServerPool(env={}, folder=tmp_path, path="", clock=SystemClock())
    for number in range(MAX_CRASHED + 30):
        pool._note_crash((tmp_path / str(number), "python"), lived=0.0)
    assert len(pool._crashes) == MAX_CRASHED
    assert (tmp_path / str(MAX_CRASHED + 29), "python") in pool._crashes


@pytest.mark.req("ARC-05")
def test_diagnostics_are_bounded(tmp_path: Path) -> None:
    from opendev.tools.lsp.server import MAX_OPEN, LanguageServer
    from opendev.tools.lsp.servers import SERVERS

    server = LanguageServer(tmp_path, SERVERS[0])
    for number in range(MAX_OPEN + 200):
        uri = (tmp_path / f"f{number}.py").as_uri()
        server._told("textDocument/publishDiagnostics", {"uri": uri, "diagnostics": [], "version": 1})
    assert len(server._published) == MAX_OPEN
    for number in range(MAX_OPEN + 200):
        server._on_progress(str(number), "begin")
    assert len(server._progress) == MAX_OPEN


@pytest.mark.req("ARC-05")
async def test_open_files_of_a_server_are_bounded(tmp_path: Path) -> None:
    from opendev.tools.lsp.server import MAX_OPEN, LanguageServer
    from opendev.tools.lsp.servers import SERVERS

    told: list[str] = []

    class Client:
        async def notify(self, method: str, params: Any) -> None:
            told.append(method)

    server = LanguageServer(tmp_path, SERVERS[0])
    opened: Any = server._open
    server.client = Client()  # pyright: ignore[reportAttributeAccessIssue]
    for number in range(MAX_OPEN + 200):
        opened[f"f{number}.py"] = (1, "digest", number)
    await server.close_some()
    assert len(server._open) == MAX_OPEN
    assert told.count("textDocument/didClose") == 200
    assert "f0.py" not in server._open


@pytest.mark.req("ARC-05")
async def test_calls_at_once_are_bounded(tmp_path: Path) -> None:
    from opendev.core.model import Frozen
    from opendev.core.tool import Effect, Tool, ToolContext, ToolResult
    from support.agents import Bench
    from support.scripted_model import calls, says

    class Number(Frozen):
        n: int

    now, peak = 0, 0

    async def run(args: Frozen, ctx: ToolContext) -> ToolResult:
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        await asyncio.sleep(0.01)
        now -= 1
        return ToolResult(ok=True, text="looked")

    look = Tool(
        name="look", category="read", description="d", args=Number, effects=frozenset({Effect.READ}), run=run
    )
    bench = Bench(
        tmp_path, calls(*(call("look", f"c{n}", n=n) for n in range(30))), says("Seen."), tools=(look,)
    )
    report = await bench.run()
    assert (report.tool_calls, peak) == (30, 5)


class FullDisk:
    """A journal that takes nothing."""

    def append(self, line: str) -> None:
        raise OpenDevError(ErrorKind.INFRA, "The disk is full.")

    def read(self) -> tuple[str, ...]:
        return ()


@pytest.mark.req("ARC-05")
async def test_rows_a_full_disk_refuses_are_bounded() -> None:
    ledger = Ledger(FullDisk())
    for number in range(1_500):
        with pytest.raises(OpenDevError):
            await ledger.open_scope("task:a", None, number)
    assert len(ledger._unwritten) <= 1_001
    with pytest.raises(OpenDevError):
        await ledger.reserve(("task:a",), Estimate(prompt=1, output=1, price=Price(input=1, output=1)))
    assert not any(account.open for account in ledger._accounts.values())


@pytest.mark.req("ARC-05", "ACT-09")
def test_the_janitor_keeps_a_bounded_number_of_folders(tmp_path: Path) -> None:
    """In a process of its own, with a marker that nothing has; the folders above the bound stay."""
    import os
    import subprocess
    import sys
    import threading

    from opendev.actors.janitor import PATHS_KEPT
    from opendev.actors.janitor_pipe import SCRIPT

    folders = [tmp_path / f"d{number}" for number in range(PATHS_KEPT + 5)]
    for folder in folders:
        folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-S", "-E", str(SCRIPT), "OPENDEV_NOBODY", f"bounds-{os.getpid()}", str(tmp_path)],
        input="".join(f"rm {folder}\n" for folder in folders).encode(), check=True, timeout=30,
    )  # fmt: skip
    assert done.returncode == 0
    for _ in range(200):
        left = [folder for folder in folders if folder.exists()]
        if len(left) <= 5:
            break
        threading.Event().wait(0.05)
    threading.Event().wait(0.2)  # were there no bound, the rest would go now
    assert [folder for folder in folders if folder.exists()] == folders[PATHS_KEPT:]
