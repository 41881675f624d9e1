"""A missing language server: asked about once, installed, tried again; without a yes the error names the command (ARC-07)."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import support.tool_context
from opendev.core.approval import Mode
from opendev.core.errors import OpenDevError
from opendev.core.tool import AgentMemo, ToolContext, ToolResult
from opendev.tools.catalog import BUILTIN
from opendev.tools.lsp.symbols import LspSymbols
from opendev.tools.shell.process import ProcessShell
from support.agents import People
from support.tool_context import make_context

FIND = next(tool for tool in BUILTIN if tool.name == "find_symbol")


SERVER = Path(support.tool_context.__file__).with_name("language_server.py")
SOURCE = "# defines name\n"  # where the scripted server says it is


class Place:
    """A Ruby project on a machine without its server; its package manager is a script, ``installs`` what that does."""

    def __init__(self, tmp_path: Path) -> None:
        self.root, self.bin, self.ran = tmp_path / "project", tmp_path / "bin", tmp_path / "ran"
        for folder in (self.root, self.bin, tmp_path / "project-scratch"):
            folder.mkdir()
        (self.root / "a.rb").write_text(SOURCE)
        self.env = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(tmp_path)}
        server = f"exec {sys.executable} {SERVER} none {tmp_path / 'log'}"
        self.installs(f"printf '#!/bin/sh\\n{server}\\n' > {self.bin}/ruby-lsp\nchmod +x {self.bin}/ruby-lsp")
        self.people = People()
        self.memo = AgentMemo()
        self.symbols = LspSymbols(env=self.env, cache_dir=tmp_path / "cache", path=self.env["PATH"])
        self.shell = ProcessShell(log_dir=tmp_path / "logs", marker={})

    def installs(self, script: str) -> None:
        gem = self.bin / "gem"
        gem.write_text(f"#!/bin/sh\necho $* >> {self.ran}\n{script}\n")
        gem.chmod(0o755)

    def context(self, **more: Any) -> ToolContext:
        fields = {"ask": self.people, "env": self.env, "symbols": self.symbols, "shell": self.shell}
        return make_context(self.root, memo=self.memo, **fields, **more)

    async def find(self, **more: Any) -> ToolResult:
        args = FIND.args.model_validate({"symbol_name": "name", "file_path": "a.rb"})
        return await FIND.run(args, self.context(**more))


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    yield made
    await made.symbols.close()


@pytest.mark.req("ARC-07")
async def test_with_a_yes_it_is_installed_and_the_call_made_again(place: Place) -> None:
    place.people.decisions = ["once"]
    found = await place.find()
    assert (found.ok, "a.rb" in found.text) == (True, True)
    assert place.ran.read_text() == "install ruby-lsp\n"
    (asked,) = place.people.asked
    assert (asked.tool, asked.arguments) == ("install", {"command": "gem install ruby-lsp"})
    assert "No language server for ruby" in asked.reason
    assert (await place.find()).ok


@pytest.mark.req("ARC-07")
@pytest.mark.parametrize("decision", ["deny", "no_answer"])
async def test_without_a_yes_nothing_runs_and_the_error_names_the_command(
    place: Place, decision: str
) -> None:
    place.people.decisions = [decision, "once"]
    for _ in range(2):
        with pytest.raises(OpenDevError, match="Install one: `gem install ruby-lsp`"):
            await place.find()
    assert (len(place.people.asked), place.ran.exists()) == (1, False)  # not asked again


@pytest.mark.req("ARC-07")
async def test_offline_it_says_what_failed_and_what_to_use_instead(place: Place) -> None:
    place.installs("echo 'Could not reach the index' >&2; exit 2")
    place.people.decisions = ["once"]
    with pytest.raises(OpenDevError, match=r"failed: Could not reach the index Go on without it: `search`"):
        await place.find()


@pytest.mark.req("ARC-07")
async def test_plan_mode_installs_nothing(place: Place) -> None:
    place.people.decisions = ["once"]
    with pytest.raises(OpenDevError, match="Install one"):
        await place.find(mode=Mode.PLAN)
    assert (place.people.asked, place.ran.exists()) == ([], False)
