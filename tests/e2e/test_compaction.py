"""`opendev -p` in a small window: the compactor actor summarises over the wire, and the task goes on (ACT-13, CMP-07, CMP-16)."""

import json
from collections.abc import Callable

import pytest
from support.command_line import Sandbox, paired
from support.model_server import ModelServer, Reply, Seen, call, text

pytestmark = pytest.mark.slow
Serve = Callable[..., ModelServer]


class Busy:
    """A model that talks much for 24 turns; it also is the compact model."""

    def __init__(self) -> None:
        self.turns = 0
        self.summaries = 0
        self.last = ""

    def __call__(self, seen: Seen) -> Reply:
        body = json.dumps(seen.body)
        if "You summarise the work of a coding agent" in body:
            self.summaries += 1
            return text(f"## Goal\nSummary number {self.summaries}: count the files.")
        self.turns += 1
        self.last = body
        if self.turns <= 24:
            say = f"Turn {self.turns}. " + "I think about it. " * 130
            return call("list_files", {"path": ".", "max_results": self.turns}, say=say)
        return text("Counted.")


@pytest.mark.req("ACT-13", "CMP-07", "CMP-16")
@pytest.mark.usefixtures("litellm_loaded")
@pytest.mark.parametrize("model", ["openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5"])
@pytest.mark.soak
def test_a_long_task_in_a_small_window_is_summarised_and_ends(
    sandbox: Sandbox, serve: Serve, model: str
) -> None:
    sandbox.model = model
    (sandbox.home / "opendev").mkdir()
    chosen = {"max_context_tokens": 16_000, "max_tokens": 1_000, "memory": {"playbook": False}}
    (sandbox.home / "opendev" / "settings.json").write_text(json.dumps(chosen))
    busy = Busy()
    server = serve(busy)
    done = sandbox.here("-p", "COUNT THE FILES", "--output", "json", "--approve", "auto")
    assert (done.report["status"], busy.turns) == ("done", 25)
    assert busy.summaries >= 1
    assert "Summary number" in busy.last
    assert "COUNT THE FILES" in busy.last
    assert all(paired(seen) for seen in server.seen)
    billed = server.billed()
    shown = json.loads(sandbox.here("sessions", "show", done.report["session_id"], "--json").stdout)
    assert (shown["tokens"]["input"], shown["tokens"]["output"]) == (billed.input, billed.output)
    assert shown["model_calls"] == done.report["model_calls"] == len(server.seen)
