"""Agent types of the user's own, from the command line: listed, offered, spawned, run by `--agent` (CFG-11, SUB-15)."""

from collections.abc import Callable

import pytest
from support.command_line import Sandbox
from support.model_server import ModelServer, call, text

Serve = Callable[..., ModelServer]
HAIKU = """---
name: Poet
description: Writes a poem about a file.
tools: [read_file, write_todos]
model: openai/gpt-4.1-nano
---
You are a poet of code.
"""


def put(sandbox: Sandbox, text: str, *, project: bool = False) -> None:
    home = sandbox.home / "opendev"
    path = (sandbox.project / ".opendev" if project else home) / "agents" / "poet.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.req("CFG-11", "SUB-15")
def test_it_is_listed_shown_offered_and_spawned(sandbox: Sandbox, serve: Serve) -> None:
    put(sandbox, HAIKU)
    listed = sandbox.here("agents", "list")
    assert "Poet               reads   Writes a poem about a file." in listed.stdout
    assert '"You are a poet of code.\\n"' in sandbox.here("agents", "show", "Poet").stdout
    server = serve(
        sessions={
            "the main task": [call("spawn_subagent", {"agent": "Poet", "prompt": "sing"}), text("Sung.")],
            "sing": [text("Roses are red.")],
        }
    )
    done = sandbox.here("-p", "Do the main task.", "--output", "json", "--runtime", "local")
    assert (done.code, done.report["text"]) == (0, "Sung.")
    main, poet, last = server.seen
    offers = next(tool for tool in main.body["tools"] if tool["function"]["name"] == "spawn_subagent")
    assert "- Poet: Writes a poem about a file." in offers["function"]["description"]
    assert poet.body["model"] == "gpt-4.1-nano"
    assert poet.messages[0]["content"].startswith("You are a poet of code.")
    assert [tool["function"]["name"] for tool in poet.body["tools"]] == ["read_file"]
    assert last.says("Roses are red.")


@pytest.mark.req("CFG-11")
def test_it_runs_as_the_foreground_agent(sandbox: Sandbox, serve: Serve) -> None:
    put(sandbox, HAIKU)
    server = serve(text("A poem."))
    done = sandbox.here("-p", "Sing.", "--agent", "Poet", "--output", "json", "--runtime", "local")
    assert (done.code, done.report["text"]) == (0, "A poem.")
    assert server.seen[0].body["model"] == "gpt-4.1-nano"


def test_a_projects_own_is_named_and_not_used(sandbox: Sandbox, serve: Serve) -> None:
    put(sandbox, HAIKU, project=True)
    listed = sandbox.here("agents", "list")
    assert listed.code == 0
    assert "Poet" not in listed.stdout
    assert "you have not agreed to it" in listed.stderr
    assert sandbox.here("-p", "Sing.", "--agent", "Poet", "--output", "json").code == 2
    server = serve(text("Main's words."))
    done = sandbox.here("-p", "Sing.", "--output", "stream-json", "--runtime", "local")
    assert done.code == 0
    assert any("you have not agreed to it" in str(event.get("text")) for event in done.events)
    assert not server.seen[0].says("poet")


@pytest.mark.req("SUB-10")
@pytest.mark.parametrize(
    ("own", "asked", "option", "used"),
    [
        ("haiku", None, (), "gpt-4.1-nano"),  # the tier's model
        ("opus", None, (), "gpt-4o-mini"),  # a tier without one: the asking agent's
        ("openai/gpt-4.1", "haiku", (), "gpt-4.1-nano"),  # what a spawn asks for is above the file
        ("openai/gpt-4.1", None, (), "gpt-4.1"),
        ("openai/gpt-4.1", None, ("--agent", "Poet"), "gpt-4.1"),
        ("haiku", None, ("--agent", "Poet"), "gpt-4.1-nano"),
        ("openai/gpt-4.1", None, ("--agent", "Poet", "--model", "openai/gpt-4.1-mini"), "gpt-4.1-mini"),
    ],
)
def test_which_model_it_gets(
    sandbox: Sandbox, serve: Serve, own: str, asked: str | None, option: tuple[str, ...], used: str
) -> None:
    put(sandbox, HAIKU.replace("openai/gpt-4.1-nano", own))
    sandbox.env["OPENDEV_TIERS__HAIKU"] = "openai/gpt-4.1-nano"
    wish = {"agent": "Poet", "prompt": "sing", **({"model": asked} if asked else {})}
    server = serve(
        sessions={
            "the main task": [call("spawn_subagent", wish), text("Sung.")],
            "sing": [text("Roses are red.")],
        }
    )
    done = sandbox.here(
        "-p", "sing" if option else "Do the main task.", *option, "--output", "json", "--runtime", "local"
    )
    assert done.code == 0, done
    poets = [seen for seen in server.seen if "You are a poet" in str(seen.messages[0]["content"])]
    assert [seen.body["model"] for seen in poets] == [used]
