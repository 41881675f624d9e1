"""Every slash command on a real project folder: no model, no hook, no approval (REPL-01..07)."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from opendev.cli.repl.base import Handler
from opendev.cli.repl.controller import Controller
from opendev.cli.repl.dispatch import HANDLERS
from opendev.core.approval import Mode
from opendev.store.consent import agree, foreign_files, read_foreign
from support.model_server import ModelServer, call, text

from .conftest import MODEL, Opened

Open = Callable[..., Opened]
Folders = tuple[Path, Path]
PLAIN = str(Path(__file__).parents[3] / "support" / "plain_mcp_server.py")
MUST = "clear compact mode plan models mcp agents skills plugins init help sessions thinking exit"
MORE = "approve resume cost tasks tools export config"


async def said(repl: Controller, line: str, *, ok: bool = True) -> str:
    """What a command answers."""
    result = await repl.submit(line)
    assert result.success is ok, result
    assert not result.prompt or ok
    return result.message


@pytest.mark.req("REPL-02", "REPL-03", "REPL-04")
async def test_nine_handlers_have_every_command_and_help_knows_it(talk: Open) -> None:
    assert len(HANDLERS) == 9
    assert all(issubclass(kind, Handler) for kind in HANDLERS)
    async with talk() as one:
        names = {command.name for command in one.repl.commands()}
        assert names >= {*MUST.split(), *MORE.split()}
        listed = await said(one.repl, "/help")
        assert all(f"/{name}" in listed for name in names)
        assert (await said(one.repl, "/help /mode")).startswith("/mode [normal|plan]")
        assert "no command /nothing" in await said(one.repl, "/help nothing", ok=False)


@pytest.mark.req("REPL-01")
async def test_an_unknown_command_names_near_ones_and_a_path_is_text(talk: Open, folders: Folders) -> None:
    with ModelServer([text("It is a file.")] * 3) as server:
        async with talk(server) as one:
            assert "Did you mean /sessions?" in await said(one.repl, "/sesions", ok=False)
            assert "/sessions" in await said(one.repl, "/")
            for line in ("/etc/hosts is what?", "/tmp is full", f"{folders[0]}/a.py:3 fails"):
                await one.say(line)
            assert [
                seen.says(line[:9])
                for seen, line in zip(server.seen, ("/etc/host", "/tmp is f", "/a.py:3 f"), strict=True)
            ]
            assert len(server.seen) == 3


@pytest.mark.req("REPL-05")
async def test_mode_plan_thinking_and_approval(talk: Open) -> None:
    with ModelServer([text("A plan.")]) as server:
        async with talk(server) as one:
            assert await said(one.repl, "/mode") == "Mode plan."
            assert one.repl.status().mode is Mode.PLAN
            assert await said(one.repl, "/mode normal") == "Mode normal."
            assert "none of: normal, plan" in await said(one.repl, "/mode fast", ok=False)
            assert await said(one.repl, "/plan") == "Mode plan."
            await said(one.repl, "/mode normal")
            assert (await one.say("/plan the work")).prompt == "the work"
            assert server.seen[0].says("the work")
            assert one.repl.status().mode is Mode.PLAN
            assert await said(one.repl, "/thinking") == "Thinking: off"
            assert await said(one.repl, "/thinking low") == "Thinking low."
            assert "none of" in await said(one.repl, "/thinking deep", ok=False)
            assert await said(one.repl, "/approve") == "Approval level auto."
            assert await said(one.repl, "/approve manual") == "Approval level manual."


@pytest.mark.req("REPL-06")
async def test_another_model_answers_from_the_next_turn_on(talk: Open) -> None:
    with ModelServer([text("One."), text("Two."), text("Three.")]) as server:
        async with talk(server) as one:
            await one.say("Hi.")
            assert MODEL in await said(one.repl, "/models")
            assert "from the next turn on" in await said(one.repl, "/models openai/gpt-4.1-mini")
            assert "is no model" in await said(one.repl, "/models nonsense", ok=False)
            await one.say("Hi.")
            assert [seen.body["model"] for seen in server.seen] == ["gpt-4o-mini", "gpt-4.1-mini"]
            assert one.repl.status().model == "openai/gpt-4.1-mini"
            await said(one.repl, "/models compact openai/gpt-4.1-nano")
            assert "compact    openai/gpt-4.1-nano" in await said(one.repl, "/models")
            await said(one.repl, "/thinking low")
            await one.say("Hi.")
            assert len(server.seen) > 3 - 1  # the suite thinks now: more than one request a turn


@pytest.mark.req("REPL-06", "MCP-09")
@pytest.mark.slow
async def test_a_connected_server_is_there_in_the_next_turn(talk: Open, folders: Folders) -> None:
    project, _ = folders
    server_of = {"command": sys.executable, "args": ["-S", PLAIN]}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": server_of}}))
    replies = [text("One."), call("mcp__theirs__echo", {"text": "hello"}), text("Two."), text("Three.")]
    with ModelServer(replies) as server:
        async with talk(server) as one:
            await one.say("Hi.")
            assert not server.seen[0].says("`theirs`")
            assert "not trusted" in await said(one.repl, "/mcp")
            shown = await said(one.repl, "/mcp connect theirs", ok=False)
            assert PLAIN in shown
            assert "1 tools are there" in await said(one.repl, "/mcp connect theirs yes")
            assert "mcp__theirs__echo" in await said(one.repl, "/mcp tools theirs")
            await one.say("Say hello.")
            assert server.seen[2].says("hello")
            assert len(_children_of(PLAIN)) == 1  # it stays for the next turn
            assert "gone" in await said(one.repl, "/mcp disconnect theirs")
            await one.say("Hi.")
            assert _children_of(PLAIN) == []
            assert [seen.says("theirs") for seen in server.seen[1:2]] == [True]
            assert "There is no MCP server nobody" in await said(one.repl, "/mcp connect nobody", ok=False)
            assert "Known: list, connect, disconnect, tools" in await said(one.repl, "/mcp frob", ok=False)


def _children_of(program: str) -> list[int]:
    """Processes of this run of the tests that execute ``program``."""
    found = [path for path in Path("/proc").glob("[0-9]*/cmdline") if program.encode() in _read(path)]
    return [int(path.parent.name) for path in found]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.req("REPL-04", "CFG-11")
async def test_an_agent_type_is_created_and_can_be_started_at_once(talk: Open, folders: Folders) -> None:
    spawn = call("spawn_subagent", {"agent": "Reader", "prompt": "look"})
    with ModelServer([text("One."), spawn, text("Seen."), text("Two.")]) as server:
        async with talk(server) as one:
            await one.say("Hi.")
            assert str(folders[1]) in await said(
                one.repl, "/agents create Reader Reads one file: its name, its size."
            )
            assert "already" in await said(one.repl, "/agents create Reader again", ok=False)
            assert "not a word" in await said(one.repl, "/agents create ../x evil", ok=False)
            assert "Say what it is for" in await said(one.repl, "/agents create Other", ok=False)
            assert "Reader" in await said(one.repl, "/agents")
            assert "Reads one file: its name, its size." in await said(one.repl, "/agents show Reader")
            await one.say("Have it read.")
        assert server.seen[2].says("You are Reader.")
    assert one.all("agent_finished")[-2].name == "Reader"


@pytest.mark.req("REPL-07")
async def test_init_asks_for_opendev_md_through_code_explorer(talk: Open, folders: Folders) -> None:
    write = call("write_file", {"file_path": "OPENDEV.md", "content": "# Map\n"})
    explore = call("spawn_subagent", {"agent": "Code-Explorer", "prompt": "which commands build it?"})
    with ModelServer([explore, text("make"), write, text("Written.")]) as server:
        async with talk(server) as one:
            assert (await one.say("/init")).success
        assert server.seen[0].says("Code-Explorer")
        assert server.seen[0].says("OPENDEV.md")
    assert [event.name for event in one.all("agent_started")] == ["Main", "Code-Explorer"]
    assert (folders[0] / "OPENDEV.md").read_text() == "# Map\n"


async def test_skills_are_listed_created_and_agreed_to(talk: Open, folders: Folders) -> None:
    theirs = folders[0] / ".opendev" / "skills" / "deploy.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("---\nname: deploy\ndescription: how it is deployed\n---\nPush it.\n")
    async with talk() as one:
        assert "not trusted" in await said(one.repl, "/skills")
        assert "Push it." in await said(one.repl, "/skills show deploy")
        assert "You agreed" in await said(one.repl, "/skills trust deploy")
        assert "deploy               project" in await said(one.repl, "/skills")
        await said(one.repl, "/skills create review When a change is reviewed.")
        assert "When a change is reviewed." in await said(one.repl, "/skills show review")
        assert "No such" in (await said(one.repl, "/skills show none", ok=False)).replace(
            "There is no such", "No such"
        )


@pytest.mark.req("CFG-07")
async def test_a_plugin_is_a_folder_that_counts_as_the_users_own(talk: Open, folders: Folders) -> None:
    source = folders[0] / "kit"
    for name, content in {
        "agents/Tester.md": "---\ndescription: runs the tests\n---\nYou run tests.\n",
        "skills/lint.md": "---\nname: lint\ndescription: how to lint\n---\nmake lint\n",
        "commands/ship.md": "Ship $ARGUMENTS now.",
        "hooks/evil.sh": "touch MARK",
    }.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(content)
    (source / "agents" / "link.md").symlink_to("/etc/passwd")
    with ModelServer([text("Shipped.")]) as server:
        async with talk(server) as one:
            assert "is no plugin" in await said(one.repl, "/plugins install .opendev", ok=False)
            assert "1 agents, 1 skills, 1 commands" in await said(one.repl, "/plugins install kit")
            assert "already" in await said(one.repl, "/plugins install kit", ok=False)
            assert "kit" in await said(one.repl, "/plugins")
            assert "Tester" in await said(one.repl, "/agents")
            assert "lint" in await said(one.repl, "/skills")
            await one.say("/ship version 2")
            assert server.seen[0].says("Ship version 2 now.")
            assert sorted(p.name for p in (folders[1] / "plugins" / "kit").rglob("*") if p.is_file()) == [
                "Tester.md",
                "lint.md",
                "ship.md",
            ]
            await said(one.repl, "/plugins remove kit")
            assert "Tester" not in await said(one.repl, "/agents")
            assert "no plugin" in await said(one.repl, "/plugins remove ../home", ok=False)


async def test_settings_are_shown_explained_and_set(talk: Open, folders: Folders) -> None:
    async with talk() as one:
        assert json.loads(await said(one.repl, "/config show agents.max_depth")) == 2
        assert "no setting" in await said(one.repl, "/config show agents.none", ok=False)
        assert "agents.max_depth is set" in await said(one.repl, "/config set agents.max_depth 1")
        assert json.loads(await said(one.repl, "/config show agents.max_depth")) == 1
        assert json.loads((folders[1] / "settings.json").read_text())["agents"]["max_depth"] == 1
        assert "settings.json" in await said(one.repl, "/config path")
        assert "defaults" in await said(one.repl, "/config explain agents.max_depth")
        before = (folders[1] / "settings.json").read_bytes()
        await said(one.repl, "/config set agents.max_depth many", ok=False)
        await said(one.repl, "/config set agents.none 1", ok=False)
        assert (folders[1] / "settings.json").read_bytes() == before


@pytest.mark.req("SES-11", "MOD-07")
async def test_a_session_is_costed_exported_listed_and_deleted(talk: Open, folders: Folders) -> None:
    with ModelServer([text("The key is fine."), text("Second.")]) as server:
        async with talk(server) as one:
            assert "nothing to export" in await said(one.repl, "/export")
            await one.say("Look at sk-abcdefghijklmnopqrstuvwxyz0123456789.")
            id = one.repl.status().session_id
            cost = await said(one.repl, "/cost")
            assert f"{server.billed().input:,} tokens in" in cost
            assert "1 model calls" in cost
            assert f"opendev-session-{id}.md" in await said(one.repl, "/export")
            written = (folders[0] / f"opendev-session-{id}.md").read_text()
            assert "The key is fine." in written
            assert "sk-abcdefghijklmnop" not in written
            assert "left alone" in await said(one.repl, "/export", ok=False)
            await said(one.repl, "/export html out.html")
            await said(one.repl, "/export out.json")
            assert json.loads((folders[0] / "out.json").read_text())
            assert "no format" in await said(one.repl, "/export out.pdf", ok=False)
            assert "You are in that session" in await said(one.repl, f"/sessions delete {id}", ok=False)
            await said(one.repl, "/clear")
            assert id in await said(one.repl, "/sessions")
            assert id in await said(one.repl, "/resume")
            await said(one.repl, f"/sessions delete {id}")
            assert id not in await said(one.repl, "/sessions")
            left = await one.repl.submit("/exit")
            assert left.leave


async def test_tools_are_listed_and_shown(talk: Open) -> None:
    async with talk() as one:
        assert "run_command" in await said(one.repl, "/tools")
        assert (await said(one.repl, "/tools show read_file")).startswith("read_file\n")
        assert "Near: read_file" in await said(one.repl, "/tools show read_fil", ok=False)
        assert await said(one.repl, "/tasks") == "Nothing runs in the background."


async def test_commands_of_the_user_and_after_consent_of_the_project(talk: Open, folders: Folders) -> None:
    project, home = folders
    own, theirs = home / "commands", project / ".opendev" / "commands"
    for folder in (own / "git", theirs):
        folder.mkdir(parents=True)
    (own / "fix.md").write_text(
        "---\ndescription: mend an issue\nargument-hint: NUMBER\n---\nMend issue $1 of $ARGUMENTS."
    )
    (own / "git" / "tidy.md").write_text("Tidy the branch.")
    (own / "help.md").write_text("Never seen.")
    (theirs / "deploy.md").write_text("Deploy it.")
    (theirs / "fix.md").write_text("Theirs.")
    with ModelServer([text("Done.")] * 3) as server:
        async with talk(server) as one:
            found = {command.name: command for command in one.repl.commands()}
            assert (found["fix"].usage, found["fix"].summary) == ("NUMBER", "mend an issue (commands)")
            assert "git:tidy" in found
            assert "deploy" not in found
            assert found["help"].summary == "what there is"
            await one.say("/fix 7 the parser")
            assert server.seen[0].says("Mend issue 7 of 7 the parser.")
            await one.say("/git:tidy all of it")
            assert server.seen[1].says("Tidy the branch.\\\\n\\\\nall of it") or server.seen[1].says(
                "Tidy the branch.\\n\\nall of it"
            )
            refused = await said(one.repl, "/deploy", ok=False)
            assert "opendev config trust .opendev/commands/deploy.md" in refused
            path = (theirs / "deploy.md").resolve()
            assert path in foreign_files(project)
            agree(home, str(path), read_foreign(path)[1])
            await one.say("/deploy")
            assert server.seen[2].says("Deploy it.")
            path.write_text("Deploy it elsewhere.")
            assert "not agreed" in await said(one.repl, "/deploy", ok=False)


async def test_files_of_the_project_complete_a_mention(talk: Open, folders: Folders) -> None:
    for name in ("src/a.py", "src/b.py", "tests/src_test.py", "node_modules/x.js"):
        (folders[0] / name).parent.mkdir(parents=True, exist_ok=True)
        (folders[0] / name).write_text("")
    async with talk() as one:
        assert one.repl.files("src") == ("src/a.py", "src/b.py", "tests/src_test.py")
        assert one.repl.files("x.js") == ()


@pytest.mark.req("UND-07", "REPL-04")
async def test_a_step_is_undone_shown_and_brought_back(talk: Open, folders: Folders) -> None:
    made, kept = folders[0] / "made.txt", folders[0] / "kept.txt"
    kept.write_text("mine\n")
    write = call("write_file", {"file_path": "made.txt", "content": "by the agent\n"})
    with ModelServer([write, text("Made.")]) as server:
        async with talk(server) as one:
            assert "no step" in await said(one.repl, "/undo", ok=False)
            await one.say("Make it.")
            assert "by the agent" in await said(one.repl, "/diff")
            assert "Make it." in await said(one.repl, "/undo list")
            kept.write_text("mine, changed\n")
            undone = await said(one.repl, "/undo")
            assert "-by the agent" in undone
            assert not made.exists()
            await said(one.repl, "/redo")
            assert made.read_text() == "by the agent\n"
            made.write_text("the user's own words\n")
            assert "made.txt" in await said(one.repl, "/undo", ok=False)
            assert made.read_text() == "the user's own words\n"
    assert kept.read_text() == "mine, changed\n"
