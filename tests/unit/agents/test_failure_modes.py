"""The seven ways in which coding agents fail, each met by the harness (BLG-15), and the small habits around them (BLG-04, 07, 09, 13, 14)."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opendev.agents.specs import builtin_specs
from opendev.context.composer import create_agent_composer, create_default_composer
from opendev.context.sections import PromptContext
from opendev.core.agent import AgentStatus, Budget
from opendev.core.chat import ModelRequest, ToolMessage
from opendev.core.model import Frozen
from opendev.core.scope import Scope
from opendev.core.tool import ToolContext, ToolResult
from opendev.tools import search
from opendev.tools.catalog import BUILTIN
from opendev.tools.registry import CORE, ToolRegistry
from opendev.tools.shell.process import ProcessShell
from support.agents import Bench
from support.scripted_model import Step, call, calls, says

RIGHT, WRONG = "def half(x):\n    return x / 2\n", "def half(x):\n    return x // 2\n"

MEND = call("edit_file", "m", file_path="half.py", old_content="x // 2", new_content="x / 2")

MEND_IMPORT = call("edit_file", "i", file_path="half.py", old_content="math.halve(x)", new_content="x / 2")
UNDO = call("edit_file", "u", file_path="half.py", old_content="x / 2", new_content="x // 2")
AGAIN = call("edit_file", "a", file_path="half.py", old_content="x // 2", new_content="x / 2")


def real(tmp_path: Path, *steps: Step, **files: str) -> Bench:
    """A bench that runs its commands; ``files`` are modules of the project."""
    bench = Bench(tmp_path, *steps)
    bench.shell = ProcessShell(log_dir=tmp_path / "logs", marker={})
    for name, content in files.items():
        (bench.root / f"{name}.py").write_text(content)
    return bench


def write(name: str, content: str) -> Any:
    return call("write_file", f"w{name}{len(content)}", file_path=f"{name}.py", content=content)


def results(request: ModelRequest) -> list[ToolMessage]:
    return [message for message in request.messages if isinstance(message, ToolMessage)]


def texts(request: ModelRequest) -> str:
    return "\n".join(str(message) for message in request.messages)


@pytest.mark.req("BLG-15")
async def test_an_endless_loop_ends_and_says_so(tmp_path: Path) -> None:
    same = [calls(call("run_command", f"r{n}", command="true")) for n in range(50)]
    bench = real(tmp_path, *same)
    report = await bench.run()
    assert report.status is AgentStatus.UNANSWERED
    assert report.error is not None
    assert "keeps repeating `run_command`" in report.error.message
    assert report.turns < 12
    assert "[SYSTEM WARNING]" in texts(bench.model.requests[-1])


@pytest.mark.req("BLG-15")
async def test_over_engineering_stays_outside_of_the_task(tmp_path: Path) -> None:
    extra = [write(name, "class Abstract: ...\n") for name in ("factory", "registry")]
    bench = real(tmp_path, calls(MEND, *extra), says("failure accepted: not needed"), half=WRONG)
    report = await bench.run(scope=Scope(may=("half.py",)))
    assert report.files_changed == ("half.py",)
    assert sorted(path.name for path in bench.root.iterdir()) == ["half.py"]
    assert [result.is_error for result in results(bench.model.requests[1])] == [False, True, True]


@pytest.mark.req("BLG-15")
async def test_an_invented_api_is_found_by_running_it_and_is_no_success(tmp_path: Path) -> None:
    invented = "import math\n\n\ndef half(x):\n    return math.halve(x)\n"
    claim = says("Done.")
    bench = real(tmp_path, calls(write("half", invented)), claim, calls(MEND_IMPORT), says("Mended."))
    report = await bench.run(verify="python3 -B -c 'from half import half; assert half(3) == 1.5'")
    assert (report.status, report.text) == (AgentStatus.DONE, "Mended.")
    assert "has no attribute" in texts(bench.model.requests[2])


@pytest.mark.req("BLG-15")
async def test_a_late_undo_of_an_early_correct_change_is_refused_as_done(tmp_path: Path) -> None:
    """Context collapse: many turns after the mend the model puts the old text back."""
    looks = [calls(call("search", f"s{n}", pattern="x" * (n + 1))) for n in range(6)]
    bench = real(
        tmp_path, calls(MEND), *looks, calls(UNDO), says("All done."), calls(AGAIN), says("Put back."), half=WRONG,
    )  # fmt: skip
    report = await bench.run(verify="python3 -B -c 'from half import half; assert half(3) == 1.5'")
    assert (report.status, report.text) == (AgentStatus.DONE, "Put back.")
    assert (bench.root / "half.py").read_text() == RIGHT
    assert "AssertionError" in texts(bench.model.requests[9])  # the claim after the undo was not believed


@pytest.mark.req("BLG-15")
async def test_the_wrong_file_is_not_edited(tmp_path: Path) -> None:
    """A look-alike without the text, and a file that is not the task's."""
    edits = [
        call("edit_file", f"e{n}", file_path=f"{name}.py", old_content="x // 2", new_content="x / 2")
        for n, name in enumerate(("halves", "vendored", "half"))
    ]
    bench = real(tmp_path, calls(*edits), says("Done."), half=WRONG, halves="X = 1\n", vendored=WRONG)
    report = await bench.run(scope=Scope(avoid=("vendored.py",)))
    assert report.files_changed == ("half.py",)
    first, second, third = results(bench.model.requests[1])
    assert (first.is_error, second.is_error, third.is_error) == (True, True, False)
    assert "halves.py" in first.content
    assert "outside of what this task may change" in second.content
    assert (bench.root / "vendored.py").read_text() == WRONG


@pytest.mark.req("BLG-15")
async def test_dithering_between_tools_is_told_to_act(tmp_path: Path) -> None:
    tools = ("search", "list_files")
    looks = [
        calls(
            call(
                tools[n % 2],
                f"d{n}",
                **({"pattern": f"a{n}"} if n % 2 == 0 else {"path": ".", "max_results": n}),
            )
        )
        for n in range(5)
    ]
    bench = real(tmp_path, *looks, says("Done."))
    await bench.run()
    assert "Your last 5 answers only read." in texts(bench.model.requests[-1])


@pytest.mark.req("BLG-15")
async def test_busy_but_unfinished_is_not_done(tmp_path: Path) -> None:
    todos = call("write_todos", "t", todos=[{"title": "mend half"}, {"title": "test half"}])
    busy = [calls(call("search", f"b{n}", pattern=f"p{n}")) for n in range(3)]
    bench = real(tmp_path, calls(todos), says("Finished!"), *busy, says("So far: I only looked."))
    report = await bench.run(budget=Budget(max_iterations=5))
    assert report.status is AgentStatus.ITERATION_CAP
    assert "2 todo(s) are open" in texts(bench.model.requests[2])
    assert report.text == "So far: I only looked."


@pytest.mark.req("BLG-04")
async def test_an_edit_with_two_matches_writes_nothing(tmp_path: Path) -> None:
    twice = "a = 1\nb = 0\na = 1\n"
    edit = call("edit_file", "e", file_path="m.py", old_content="a = 1", new_content="a = 2")
    bench = real(tmp_path, calls(edit), says("failure accepted: unclear"), m=twice)
    report = await bench.run()
    assert (bench.root / "m.py").read_text() == twice
    assert report.files_changed == ()
    (told,) = results(bench.model.requests[1])
    assert told.is_error
    assert "2" in told.content


MINIMAL = ("list_files", "read_file", "edit_file", "search", "run_command")


@pytest.mark.req("BLG-07")
async def test_five_tools_are_enough_and_more_come_on_demand(tmp_path: Path) -> None:
    assert set(MINIMAL) < CORE
    assert len(CORE) < len(BUILTIN) / 2
    bench = real(
        tmp_path,
        calls(call("list_files", "1", path=".")), calls(call("search", "2", pattern="half")),
        calls(call("read_file", "3", file_path="half.py")),
        calls(call("edit_file", "4", file_path="half.py", old_content="//", new_content="/")),
        calls(call("run_command", "5", command="python3 -c 'from half import half; print(half(3))'")),
        says("half(3) is 1.5 now."), half=WRONG,
    )  # fmt: skip
    spec = builtin_specs()["Coder"].model_copy(update={"tools": MINIMAL})
    task = bench.task("Coder").model_copy(update={"spec": spec})
    report = await bench.factory().agent_for(task).run(task, bench.token)
    assert report.status is AgentStatus.DONE
    assert {tool.name for tool in bench.model.requests[0].tools} == set(MINIMAL)
    assert "1.5" in results(bench.model.requests[-1])[-1].content


@pytest.mark.req("BLG-07")
def test_the_descriptions_of_the_five_exclude_each_other() -> None:
    described = {schema.name: schema.description for schema in ToolRegistry(BUILTIN, MINIMAL).schemas()}
    assert len({text.splitlines()[0] for text in described.values()}) == len(MINIMAL)
    assert "over `cat`, `grep`, `find` and `sed`" in described["run_command"]


@pytest.mark.req("BLG-09")
async def test_independent_searches_of_one_answer_run_at_once(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    async def meeting(args: Frozen, ctx: ToolContext) -> ToolResult:
        async with asyncio.timeout(5):
            await both.wait()  # neither is done before the other has begun
        return await search.TOOL.run(args, ctx)  # type: ignore[arg-type]

    tools = (replace(search.TOOL, run=meeting),)
    bench = Bench(
        tmp_path,
        calls(call("search", "1", pattern="one"), call("search", "2", pattern="two")),
        says("Done."),
        tools=tools,
    )
    (bench.root / "a.txt").write_text("one\n\ntwo\n")
    assert (await bench.run()).status is AgentStatus.DONE
    first, second = results(bench.model.requests[1])
    assert ("one" in first.content, "two" in second.content) == (True, True)


HABITS = {
    "BLG-13": (
        "explore first",
        "smallest",
        "without new dependencies",
        "do not improve what was not asked",
        "check the result",
    ),
    "BLG-14": ("check that it can be imported",),
    "BLG-19": ("too vague to check",),
}


@pytest.mark.req("BLG-13", "BLG-14")
@pytest.mark.parametrize("row", HABITS)
def test_the_prompt_asks_for_the_habit(row: str) -> None:
    context = PromptContext(frozenset(tool.name for tool in BUILTIN), in_git_repo=True)
    prompt = " ".join(create_default_composer().compose_two_part(context)[0].lower().split())
    missing = [words for words in HABITS[row] if words not in prompt]
    assert missing == []


@pytest.mark.req("BLG-13")
def test_a_tickets_agent_is_told_to_stay_small_and_to_prove_it() -> None:
    context = PromptContext(frozenset(builtin_specs()["Coder"].tools or ()), in_git_repo=True)
    prompt = create_agent_composer("coder").compose_two_part(context)[0].lower()
    for words in ("smallest complete change", "verification command", "stay inside the scope"):
        assert words in prompt
