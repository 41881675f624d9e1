"""A missing language server: asked about once, installed, tried again; without a yes the error names the command (ARC-07)."""

from pathlib import Path
from typing import Any

import pytest
from opendev.core.approval import Mode
from opendev.core.clock import SystemClock
from opendev.core.errors import OpenDevError
from opendev.core.tool import ToolContext, ToolResult
from opendev.tools.catalog import BUILTIN
from opendev.tools.lsp.symbols import LspSymbols
from opendev.tools.shell.process import ProcessShell
from support.agents import People
from support.tool_context import make_context

pytestmark = pytest.mark.req("ARC-07")
FIND = next(tool for tool in BUILTIN if tool.name == "find_symbol")


class Place:
    """A Ruby project on a machine where the package manager is a script and the server is the Python one under another name."""

    def __init__(self, tmp_path: Path, installer: str) -> None:
        self.root, self.bin = tmp_path / "project", tmp_path / "bin"
        for folder in (self.root, self.bin, tmp_path / "project-scratch"):
            folder.mkdir()
        (self.root / "a.rb").write_text("class Greeter\nend\n")
        self.ran = tmp_path / "ran"
        self.script("gem", f"echo gem >> {self.ran}\n{installer}")
        self.people = People()
        self.env = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(tmp_path)}
        self.symbols = LspSymbols(
            env=self.env, cache_dir=tmp_path / "cache", path=self.env["PATH"], clock=SystemClock()
        )
        self.shell = ProcessShell(log_dir=tmp_path / "logs", marker={})
        self.memo: dict[str, Any] = {}

    def script(self, name: str, text: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / name).chmod(0o755)

    def context(self, **more: Any) -> ToolContext:
        fields = {"ask": self.people, "env": self.env, "symbols": self.symbols, "shell": self.shell}
        return make_context(self.root, **fields, **self.memo, **more)

    async def find(self, context: ToolContext) -> ToolResult:
        return await FIND.run(FIND.args.model_validate({"symbol_name": "Greeter", "file_path": "a.rb"}), context)
