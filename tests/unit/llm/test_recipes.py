"""The built-in model: what it says, step by step, and how it ends (MOD-11, cli.md)."""

from typing import Any

import pytest
from opendev.core.chat import (
    AssistantMessage,
    FinishReason,
    Message,
    ModelFailed,
    ModelReply,
    SystemMessage,
    ToolMessage,
    ToolSchema,
    Usage,
    UserMessage,
)
from opendev.core.errors import ErrorKind
from opendev.core.ports import SymbolPlace
from opendev.core.ticket import Delete, Insert, Move, RecipeStep, RenameSymbol, Replace, Rewrite, Run, Write
from opendev.llm.recipes import MODEL, RecipeModel, fence
from opendev.tools.find_symbol import describe
from support.model_requests import READ, make_request


class Dialogue:
    """Plays the loop's part: hands results in, takes calls out."""

    def __init__(self, *steps: RecipeStep, tools: tuple[ToolSchema, ...] = ()) -> None:
        first = UserMessage(content=f"Do the task.\n\n{fence(steps)}\n\nThen stop.")
        self.messages: list[Message] = [SystemMessage(stable="s"), first]
        self.tools = tools

    async def ask(self) -> AssistantMessage:
        request = make_request(MODEL, *self.messages, tools=self.tools)
        answer = await RecipeModel().complete(request)
        assert isinstance(answer, ModelReply)
        assert answer == await RecipeModel().complete(request)
        assert answer.usage == Usage()
        assert answer.finish is (FinishReason.TOOL_CALLS if answer.message.tool_calls else FinishReason.STOP)
        return answer.message

    async def turn(self, result: str = "ok", *, is_error: bool = False) -> tuple[str, dict[str, Any]]:
        """The next call; its result goes into the history."""
        message = await self.ask()
        (call,) = message.tool_calls
        done = ToolMessage(call_id=call.id, name=call.name, content=result, is_error=is_error)
        self.messages += [message, done]
        return call.name, call.arguments


STEPS: list[tuple[RecipeStep, str, dict[str, Any]]] = [
    (
        RenameSymbol(symbol="A", to="B", path="a.py"),
        "rename_symbol",
        {"symbol_name": "A", "file_path": "a.py", "new_name": "B"},
    ),
    (
        Replace.model_validate({"pattern": "a", "with": "b", "glob": "**/*.py", "regex": True}),
        "replace_text",
        {"pattern": "a", "replacement": "b", "glob": "**/*.py", "regex": True},
    ),
    (
        Rewrite(lang="python", pattern="f($A)", rewrite="g($A)"),
        "rewrite_code",
        {"lang": "python", "pattern": "f($A)", "rewrite": "g($A)", "glob": ""},
    ),
    (
        Write(path="d/n.py", content="x\n"),
        "write_file",
        {"file_path": "d/n.py", "content": "x\n", "create_dirs": True},
    ),
    (
        Insert(path="a.py", after="x\n", content="y\n"),
        "edit_file",
        {"file_path": "a.py", "old_content": "x\n", "new_content": "x\ny\n"},
    ),
    (
        Insert(path="a.py", before="x\n", content="y\n"),
        "edit_file",
        {"file_path": "a.py", "old_content": "x\n", "new_content": "y\nx\n"},
    ),
    (Delete(path="a.py"), "delete_file", {"file_path": "a.py"}),
    (Move.model_validate({"from": "a", "to": "b"}), "move_file", {"source": "a", "destination": "b"}),
    (Run(command="make"), "run_command", {"command": "make"}),
]


async def test_every_step_becomes_its_call_one_a_turn_and_the_end_is_declared() -> None:
    dialogue = Dialogue(*(step for step, _, _ in STEPS))
    for _, name, arguments in STEPS:
        assert await dialogue.turn("(no output)") == (name, arguments)
    name, arguments = await dialogue.turn()
    assert name == "task_complete"
    assert arguments["status"] == "success"
    assert arguments["summary"].startswith("All 9 steps")
    ids = [call.id for m in dialogue.messages if isinstance(m, AssistantMessage) for call in m.tool_calls]
    assert len(set(ids)) == len(ids)


async def test_a_file_is_read_before_text_is_inserted_when_the_agent_can_read() -> None:
    dialogue = Dialogue(Insert(path="a.py", after="x", content="y"), tools=(READ,))
    assert await dialogue.turn("x") == ("read_file", {"file_path": "a.py"})
    assert (await dialogue.turn())[0] == "edit_file"


async def test_a_rename_without_a_path_looks_the_symbol_up() -> None:
    dialogue = Dialogue(RenameSymbol(symbol="Client.get", to="fetch"))
    listing = "src/net/my file.py:3:7  method  Client/get\nsrc/x.py:9:1  function  get\n"
    assert await dialogue.turn(listing) == ("find_symbol", {"symbol_name": "Client.get"})
    name, arguments = await dialogue.turn()
    assert name == "rename_symbol"
    assert arguments == {
        "symbol_name": "Client.get",
        "file_path": "src/net/my file.py",
        "new_name": "fetch",
    }


@pytest.mark.parametrize(
    ("listing", "words"),
    [
        ("a.py:1:7  class  Client\nb.py:2:7  class  Client\n", ("2 times", "a.py", "b.py", "`path`")),
        ("(no output)", ("No definition", "Client")),
        ("a.py:1:7  class  OtherClient\n", ("No definition", "Client")),
    ],
)
async def test_an_ambiguous_or_missing_symbol_ends_as_a_failure(listing: str, words: tuple[str, ...]) -> None:
    dialogue = Dialogue(RenameSymbol(symbol="Client", to="X"))
    await dialogue.turn(listing)
    name, arguments = await dialogue.turn()
    assert (name, arguments["status"]) == ("task_complete", "failure")
    assert all(word in arguments["summary"] for word in words)


async def test_what_the_real_tool_writes_is_understood() -> None:
    places = [
        SymbolPlace(
            name="get",
            name_path=path,
            kind="method",
            path=file,
            line=3,
            column=5,
            body="def get():\n  x at b:1:2",
        )
        for path, file in (("Client.get", "src/my file.py"), ("Other.get", "src/o.py"))
    ]
    dialogue = Dialogue(RenameSymbol(symbol="Client.get", to="fetch"))
    await dialogue.turn("\n\n".join(["2 definitions of Client.get:", *map(describe, places)]))
    assert (await dialogue.turn())[1]["file_path"] == "src/my file.py"


async def test_the_same_place_listed_twice_is_no_ambiguity() -> None:
    dialogue = Dialogue(RenameSymbol(symbol="Client", to="X"))
    await dialogue.turn("a.py:1:7  class  Client\na.py:9:7  class  Client\na.py:2:1  method  Inner/Client\n")
    assert (await dialogue.turn())[1]["file_path"] == "a.py"


async def test_a_failed_step_ends_with_which_and_why() -> None:
    dialogue = Dialogue(Run(command="true"), Run(command="make lint"), Run(command="never"))
    await dialogue.turn()
    await dialogue.turn("exit code 2: unused import", is_error=True)
    name, arguments = await dialogue.turn()
    assert name == "task_complete"
    assert arguments["status"] == "failure"
    for words in ("Step 2 of 3", "make lint", "exit code 2: unused import"):
        assert words in arguments["summary"]


async def test_a_refused_completion_ends_as_a_failure_then_in_words() -> None:
    dialogue = Dialogue(Run(command="true"))
    await dialogue.turn()
    assert (await dialogue.turn("the verification failed: 1 test red", is_error=True))[1][
        "status"
    ] == "success"
    name, arguments = await dialogue.turn("still red", is_error=True)
    assert (name, arguments["status"]) == ("task_complete", "failure")
    assert "1 test red" in arguments["summary"]
    last = await dialogue.ask()
    assert last.tool_calls == ()
    assert "still red" in last.content


async def test_nudges_and_strange_results_do_not_change_the_plan() -> None:
    dialogue = Dialogue(Run(command="a"), Run(command="b"))
    await dialogue.turn()
    dialogue.messages.append(UserMessage(content="Go on."))
    assert await dialogue.turn() == ("run_command", {"command": "b"})


@pytest.mark.parametrize("content", ["no plan", '```recipe\n[{"step": "fly"}]\n```', "```recipe\n[\n```"])
async def test_without_a_readable_recipe_the_answer_says_how_to_configure_a_model(content: str) -> None:
    answer = await RecipeModel().complete(make_request(MODEL, UserMessage(content=content)))
    assert isinstance(answer, ModelFailed)
    assert answer.error.kind is ErrorKind.USAGE
    assert "recipe" in answer.error.sentence()
