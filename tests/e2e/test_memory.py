"""`opendev -p` learns: the playbook of a project is written beside the work and shown to the next run (MEM-06..12)."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from opendev.store.layout import Layout
from support.command_line import Sandbox
from support.model_server import ModelServer, Reply, Seen, call, text

pytestmark = pytest.mark.slow
Serve = Callable[..., ModelServer]
REFLECTION = {
    "reasoning": "r",
    "root_cause": "wrong folder",
    "correct_approach": "run make check from the root",
}
BATCH = {"operations": [{"type": "ADD", "content": "Run make check from the root."}]}


class Project:
    """A model: six listings and an end for every run; it reflects and curates when asked to."""

    def __init__(self) -> None:
        self.turns = 0
        self.systems: list[str] = []

    def __call__(self, seen: Seen) -> Reply:
        body = json.dumps(seen.body)
        if "You look back at a piece of work" in body:
            return text(json.dumps(REFLECTION))
        if "You keep the playbook" in body:
            return text(json.dumps(BATCH))
        self.systems.append(body)
        self.turns += 1
        if self.turns % 7:
            return call("list_files", {"path": ".", "max_results": self.turns + 1})
        return text("Listed.")


def playbook(sandbox: Sandbox) -> list[str]:
    path = Layout(sandbox.home / "opendev").project(sandbox.project) / "playbook.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"bullets": []}
    return [bullet["text"] for bullet in found["bullets"]]


@pytest.mark.req("MEM-07", "MEM-10", "C-21")
@pytest.mark.usefixtures("litellm_loaded")
def test_a_lesson_of_one_run_is_shown_to_the_next(sandbox: Sandbox, serve: Serve) -> None:
    sandbox.model = "openai/gpt-4o-mini"
    model = Project()
    serve(model)
    first = sandbox.here("-p", "List it.", "--output", "json", "--approve", "auto")
    assert first.report["status"] == "done"
    assert playbook(sandbox) == ["Run make check from the root."]
    assert "Run make check" not in model.systems[0]
    sandbox.here("-p", "List it again.", "--output", "json", "--approve", "auto")
    assert "Run make check from the root." in model.systems[-1]


@pytest.mark.usefixtures("litellm_loaded")
def test_the_setting_turns_it_off(sandbox: Sandbox, serve: Serve) -> None:
    sandbox.model = "openai/gpt-4o-mini"
    (sandbox.home / "opendev").mkdir()
    (sandbox.home / "opendev" / "settings.json").write_text(json.dumps({"memory": {"playbook": False}}))
    server = serve(Project())
    sandbox.here("-p", "List it.", "--output", "json", "--approve", "auto")
    assert playbook(sandbox) == []
    assert len(server.seen) == 7
