"""The command line in this process, with a state root, a project and an environment of its own."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opendev.cli.main import run


@dataclass(frozen=True)
class Done:
    """How a command line ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class CommandLine:
    """``cli("config", "show")`` runs it; ``home`` and ``project`` are its folders."""

    home: Path
    project: Path
    patch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]
    told: str = ""  # a test's note of what stood on stderr

    def __call__(self, *arguments: str) -> Done:
        self.capture.readouterr()
        code = run(list(arguments))
        out, err = self.capture.readouterr()
        return Done(code, out, err)

    def settings(self, value: Any, *, project: bool = False) -> Path:
        path = self.project / ".opendev" / "settings.json" if project else self.home / "settings.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=1))
        return path


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    for name in list(os.environ):  # noqa: TID251 - a test's own process
        if name.startswith(("OPENDEV_", "OPENAI_", "ANTHROPIC_")):
            monkeypatch.delenv(name)
    made = CommandLine(tmp_path / "home", tmp_path / "project", monkeypatch, capsys)
    made.project.mkdir()
    monkeypatch.setenv("OPENDEV_HOME", str(made.home))
    monkeypatch.setenv("OPENDEV_DISABLE_REMOTE_MODELS", "1")  # no test leaves the machine
    monkeypatch.chdir(made.project)
    return made
