"""What a run begins with: the composed prompt of its model, rules, mentioned files, the map of the repository (RET-03, RET-07, RET-08)."""

import base64
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opendev.agents.references import read_mentions
from opendev.context.picker import ContextPicker
from opendev.context.repomap import build, load
from opendev.core.approval import ApprovalLevel, Mode
from opendev.core.chat import (
    AssistantMessage,
    Message,
    ModelFailed,
    ModelReply,
    ModelRequest,
    Role,
    SystemMessage,
    UserMessage,
)
from opendev.core.events import Notice
from opendev.core.ticket import Write
from opendev.llm.convert import to_messages
from opendev.policy.gate import Gate
from opendev.policy.verdict import Verdict, deny
from support.agents import Bench
from support.dialects import refusals
from support.scripted_model import call, calls, says
from support.tool_context import make_context
from support.waiting import until


def system_of(request: ModelRequest) -> SystemMessage:
    first = request.messages[0]
    assert isinstance(first, SystemMessage)
    return first


def users_of(request: ModelRequest) -> list[str]:
    return [message.content for message in request.messages if isinstance(message, UserMessage)]


def source_tree(root: Path) -> None:
    (root / "core.py").write_text("class Engine:\n    def start_engine(self): ...\n")
    for n in range(12):
        (root / f"user_{n}.py").write_text("from core import Engine\nEngine().start_engine()\n")


@pytest.mark.req("RET-03", "PRM-09", "PRM-08")
async def test_a_request_is_composed_of_its_sources_in_order(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("Done."))
    bench.settings = bench.settings.model_copy(update={"models": {Role.ACTION: "anthropic/claude"}})
    (bench.root / "AGENTS.md").write_text("PROJECT_RULE")
    bench.home.mkdir()
    (bench.home / "OPENDEV.md").write_text("USER_RULE")
    (bench.root / "a.py").write_text("ANSWER = 42\n")
    await bench.run(prompt="Explain @a.py", stream=True)
    (request,) = bench.model.requests
    system = system_of(request)
    assert system.stable.startswith("You are OpenDev, a senior software engineer")
    assert "tool_use blocks" in system.stable
    order = ("# Scratch folder", "# Reminders", "# Environment", "PROJECT_RULE", "USER_RULE")
    assert [system.dynamic.index(part) for part in order] == sorted(
        system.dynamic.index(part) for part in order
    )
    assert str(bench.home / "scratch" / "a1") in system.dynamic
    references, query = users_of(request)
    assert "1\tANSWER = 42" in references
    assert query == "Explain @a.py"


@pytest.mark.req("PRM-08", "PRM-09")
async def test_siblings_of_one_type_share_the_stable_part_and_each_model_has_its_own(tmp_path: Path) -> None:
    bench = Bench(tmp_path, *(says(str(n)) for n in range(4)))
    for number, model in enumerate(("openai/a", "openai/b", "fireworks_ai/c", "mistral/d")):
        await bench.run("Code-Explorer", id=f"a{number}", run_id=f"r{number}", models={Role.ACTION: model})
    one, two, three, four = (system_of(request).stable for request in bench.model.requests)
    assert one == two
    assert len({one, three, four}) == 3
    assert "function calling" in one
    assert "# Tool calls here" not in four


@pytest.mark.req("RET-07", "T-09")
async def test_mentions_keep_the_guard_and_the_limits_of_read_file(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("Done."))
    (tmp_path / "outside.txt").write_text("SECRET OUTSIDE")
    (bench.root / "link.txt").symlink_to(tmp_path / "outside.txt")
    (bench.root / "pic.png").write_bytes(b"\x89PNG\r\n")
    (bench.root / "prog").write_bytes(b"\x7fELF\0\0")
    (bench.root / "bin.dat").write_bytes(b"\0\1\2" * 50)
    (bench.root / "long.py").write_text("".join(f"line_{n} = 'padding padding'\n" for n in range(1_900)))
    (bench.root / "src").mkdir()
    (bench.root / "src" / "inner.py").write_text("x = 1\n")
    (bench.root / "key.env").write_text("OPENAI_API_KEY=sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD\n")
    prompt = (
        "See @../outside.txt @link.txt @pic.png @prog @./bin.dat @src/gone.py @long.py @long.py:7-9 @src/ @alice @/etc/passwd "
        "@./key.env"
    )
    await bench.run(prompt=prompt, stream=True)
    references, query = users_of(bench.model.requests[0])
    assert query == prompt
    assert "SECRET OUTSIDE" not in references
    assert "root:" not in references
    for named in ("../outside.txt", "link.txt", "/etc/passwd", "pic.png", "prog", "./bin.dat", "src/gone.py"):
        assert f"- @{named} is not attached: " in references, named
    assert "- @src/gone.py is not attached: there is no such file." in references
    assert "sees none. Configure a model for the role vision." in references
    assert "alice" not in references
    assert "inner.py" in references
    assert "     7\tline_6 = " in references
    assert "## long.py\n" in references
    assert "sk-abcdefghijklmnop" not in references
    assert len(references) < 45_000
    notices = [event.text for event in bench.events if isinstance(event, Notice) and event.level == "warning"]
    assert len(notices) == 7


PICTURE = b"\x89PNG\r\n\x1a\n" + b"p" * 90


@pytest.mark.req("RET-07", "RET-03")
async def test_a_picture_is_attached_for_a_model_that_sees(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("A cat."), says("Still a cat."))
    bench.settings = bench.settings.model_copy(update={"seeing": ("test/model",)})
    (bench.root / "a.png").write_bytes(PICTURE)
    (bench.root / "liar.png").write_bytes(b"no picture at all")
    (bench.root / "huge.jpg").write_bytes(b"\xff\xd8\xff" + b"j" * 5_000_000)
    (bench.root / "b.jpg").write_bytes(b"\xff\xd8\xff" + b"j" * 4_999_950)
    await bench.run(prompt="What is on @a.png @b.jpg @liar.png @huge.jpg ?", stream=True)
    request = bench.model.requests[0]
    message = next(m for m in request.messages if isinstance(m, UserMessage))
    assert [base64.b64decode(image.data) for image in message.images] == [PICTURE]
    assert "## a.png\n(picture 1 of this message)" in message.content
    assert "@b.jpg is not attached: it does not fit beside the others" in message.content
    assert "@liar.png is not attached: liar.png is no PNG" in message.content
    assert "@huge.jpg is not attached: huge.jpg is too large" in message.content
    assert refusals([request]) == []
    sent = json.dumps(to_messages(request.messages, anthropic=False))
    assert f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}" in sent
    # Another model goes on with the conversation and does not see: it is told so, and sent no picture.
    history = (*request.messages[1:], AssistantMessage(content="A cat."))
    await bench.run(id="a2", prompt="And now?", history=history, models={Role.ACTION: "test/blind"})
    later = next(m for m in bench.model.requests[1].messages if isinstance(m, UserMessage))
    assert later.images == ()
    assert "[1 picture(s), which this model cannot see]" in later.content


@pytest.mark.req("RET-07", "MOD-02")
async def test_a_model_that_sees_no_picture_is_sent_to_the_one_that_does(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("Done."))
    bench.settings = bench.settings.model_copy(
        update={"models": {Role.ACTION: "a/act", Role.VISION: "v/see"}}
    )
    (bench.root / "a.png").write_bytes(PICTURE)
    await bench.run(prompt="What is on @a.png ?", stream=True)
    references = users_of(bench.model.requests[0])[0]
    assert "a/act sees none. Ask v/see about it with the tool analyze_image." in references
    assert not any(m.images for m in bench.model.requests[0].messages if isinstance(m, UserMessage))


@pytest.mark.req("RET-07")
async def test_only_the_foreground_agent_expands_mentions(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("Done."))
    (bench.root / "a.py").write_text("ANSWER = 42\n")
    await bench.run(prompt="Explain @a.py", stream=False)
    assert users_of(bench.model.requests[0]) == ["Explain @a.py"]


@pytest.mark.req("RET-07", "RET-06")
async def test_mentions_never_take_more_than_a_quarter_of_the_window(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("Done."))
    bench.settings = bench.settings.model_copy(update={"fallback_window": 20_000})
    for name in "abc":
        (bench.root / f"{name}.py").write_text("value = 1234567890\n" * 500)
    await bench.run(prompt="@a.py @b.py @c.py", stream=True)
    references = users_of(bench.model.requests[0])[0]
    assert len(references) < 20_000 + 500
    assert "does not fit beside the others" in references


@pytest.mark.req("RET-08")
async def test_the_map_of_the_last_build_stands_in_front_of_the_query(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("Done."), says("Done."), says("Done."))
    source_tree(bench.root)
    build(bench.root, bench.home)
    await bench.run(prompt="Go.")
    await bench.run("Code-Explorer", prompt="Look.", id="a2")
    first, query = users_of(bench.model.requests[0])
    assert "Map of the repository" in first
    assert "  1: class Engine" in first
    assert query == "Go."
    assert "class Engine" in users_of(bench.model.requests[1])[0]
    bench.settings = bench.settings.model_copy(update={"repo_map_tokens": 0})
    await bench.run(prompt="Go.", id="a3")
    assert users_of(bench.model.requests[2]) == ["Go."]


@pytest.mark.req("RET-08")
async def test_a_recipe_gets_no_map_and_starts_no_build(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("Done."))
    source_tree(bench.root)
    build(bench.root, bench.home)
    await bench.run("Coder", recipe=(Write(path="x.txt", content="x"),), stream=True)
    assert "class Engine" not in "".join(users_of(bench.model.requests[0]))


class Patient:
    """A model that answers once ``condition`` holds."""

    def __init__(self, bench: Bench, condition: Callable[[], bool]) -> None:
        self._bench, self._condition = bench, condition

    async def complete(
        self, request: ModelRequest, on_delta: Callable[[str], None] | None = None
    ) -> ModelReply | ModelFailed:
        await until(self._condition, 30)
        return await self._bench.model.complete(request, on_delta)


@pytest.mark.req("RET-08")
@pytest.mark.slow
async def test_the_foreground_agent_builds_the_map_beside_its_work(tmp_path: Path) -> None:
    bench = Bench(tmp_path, calls(call("run_command", command="sleep 1")), says("Done."))
    source_tree(bench.root)
    bench.client = Patient(
        bench, lambda: load(bench.home, bench.root) is not None and not builders(bench.root)
    )
    await bench.run(prompt="Go.", stream=True)
    first, second = bench.model.requests
    assert users_of(first) == ["Go."]
    assert "class Engine" in users_of(second)[1]
    assert first.messages == second.messages[: len(first.messages)]


@pytest.mark.req("RET-08")
@pytest.mark.slow
async def test_a_build_that_still_runs_dies_with_the_agent(tmp_path: Path) -> None:
    bench = Bench(tmp_path, says("Done."))
    for n in range(900):
        (bench.root / f"m{n}.py").write_text(
            "".join(f"def f_{n}_{k}(a, b): return a + b\n" for k in range(200))
        )
    bench.client = Patient(bench, lambda: builders(bench.root) != [])
    await bench.run(prompt="Go.", stream=True)
    assert load(bench.home, bench.root) is None
    assert builders(bench.root) == []


def builders(root: Path) -> list[str]:
    """The processes that build a map of ``root``."""
    lines: list[str] = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            line = (entry / "cmdline").read_bytes().decode("utf-8", "replace") if entry.name.isdigit() else ""
            if "context.repomap" in line and str(root) in line:
                lines.append(line)
    return lines


@pytest.mark.req("RET-03", "RET-06")
async def test_every_request_is_the_pickers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picked: list[tuple[Message, ...]] = []
    request = ContextPicker.request

    def spy(self: ContextPicker, *args: Any) -> tuple[Message, ...]:
        picked.append(request(self, *args))
        return picked[-1]

    monkeypatch.setattr(ContextPicker, "request", spy)
    bench = Bench(tmp_path, calls(call("list_files", path=".")), says("Done."))
    await bench.run(prompt="Go.")
    assert [asked.messages for asked in bench.model.requests] == picked
    assert len(picked) == 2


@pytest.mark.req("RET-07")
async def test_what_a_rule_forbids_is_not_attached_either(tmp_path: Path) -> None:
    class Closed(Gate):
        def judge(self, tool: object, args: object, *, by_hook: bool = False) -> Verdict:
            return deny("rules", "not this file")

    ctx = make_context(tmp_path)
    (tmp_path / "a.py").write_text("x = 1\n")
    gate = Closed(level=ApprovalLevel.AUTO, mode=Mode.NORMAL, root=tmp_path, scope=ctx.scope)
    found = await read_mentions("@a.py @./", ctx, gate, 9_000, "")
    assert (found.blocks, found.notes) == (
        (),
        ("@a.py is not attached: not this file", "@./ is not attached: not this file"),
    )
