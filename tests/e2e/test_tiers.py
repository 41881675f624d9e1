"""A spawn that names a tier calls the model the settings give that tier (SUB-10)."""

from collections.abc import Callable

import pytest
from support.command_line import Sandbox
from support.model_server import Call, ModelServer, Reply, Seen, calls, text

LIMIT = "Look around"


def answer(seen: Seen) -> Reply:
    if seen.says(LIMIT) and not seen.says("the main task"):
        return text("Nothing of note.")
    if any(row["role"] == "assistant" for row in seen.messages):
        return text("Done.")
    fields = {"agent": "Code-Explorer", "prompt": LIMIT}
    return calls(
        *(Call("spawn_subagent", {**fields, "model": model}) for model in ("haiku", "opus", "openai/own"))
    )


@pytest.mark.req("SUB-10")
def test_a_spawn_by_tier_calls_the_tiers_model(sandbox: Sandbox, serve: Callable[..., ModelServer]) -> None:
    server = serve(answer)
    sandbox.env |= {"OPENDEV_TIERS__HAIKU": "openai/small"}
    done = sandbox.here("-p", "Do the main task.", "--output", "json", "--runtime", "local")
    assert done.report["text"] == "Done."
    asked = sorted(str(seen.body["model"]) for seen in server.seen)
    assert asked == ["gpt-4o-mini", "gpt-4o-mini", "gpt-4o-mini", "own", "small"]
