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


def go(sandbox: Sandbox, *words: str) -> None:
    done = sandbox.here("-p", *words, "--output", "json", "--approve", "auto", "--runtime", "local")
    assert done.report["status"] == "done"


@pytest.mark.req("MEM-07", "MEM-08", "MEM-10", "C-21")
@pytest.mark.usefixtures("openai_loaded")
def test_a_prompt_pays_for_its_task_only_and_a_session_that_goes_on_learns(
    sandbox: Sandbox, serve: Serve
) -> None:
    sandbox.model = "openai/gpt-4o-mini"
    model = Project()
    server = serve(model)
    go(sandbox, "List it.")
    assert (len(server.seen), playbook(sandbox)) == (7, [])
    go(sandbox, "List it again.", "--continue")
    assert playbook(sandbox) == ["Run make check from the root."]
    kinds = ["learns" if _learning(seen) else "works" for seen in server.seen[7:]]
    assert kinds == ["works"] * 7 + ["learns"] * 2  # never beside the loop
    go(sandbox, "List it once more.")
    assert "Run make check from the root." in model.systems[-1]
    assert len(server.seen) == 7 + 9 + 7


def _learning(seen: Seen) -> bool:
    body = json.dumps(seen.body)
    return "You look back at a piece of work" in body or "You keep the playbook" in body


@pytest.mark.usefixtures("openai_loaded")
@pytest.mark.parametrize(("learn", "calls", "lessons"), [("always", 9, 1), ("never", 7, 0)])
def test_the_setting_says_whether_a_prompt_learns(
    sandbox: Sandbox, serve: Serve, learn: str, calls: int, lessons: int
) -> None:
    sandbox.model = "openai/gpt-4o-mini"
    (sandbox.home / "opendev").mkdir()
    (sandbox.home / "opendev" / "settings.json").write_text(json.dumps({"memory": {"learn": learn}}))
    server = serve(Project())
    go(sandbox, "List it.")
    assert (len(server.seen), len(playbook(sandbox))) == (calls, lessons)
