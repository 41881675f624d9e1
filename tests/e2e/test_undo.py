"""`opendev -p` and then `opendev undo`, as the user types them; and in a process of its own under Ray."""

from collections.abc import Callable

import pytest
from support.command_line import Sandbox
from support.model_server import ModelServer, call, text
from support.repos import write

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("openai_loaded")]
Serve = Callable[..., ModelServer]


def prompt(sandbox: Sandbox, runtime: str = "local", *more: str) -> str:
    done = sandbox.here("-p", "Work.", "--output", "json", "--approve", "auto", "--runtime", runtime, *more)
    assert done.code == 0, done
    return done.report["session_id"]


@pytest.mark.req("UND-07", "C-24", "CLI-03")
@pytest.mark.parametrize("runtime", ["local", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.soak])])
def test_a_step_of_a_prompt_is_shown_and_reversed_and_comes_again(
    sandbox: Sandbox, serve: Serve, runtime: str
) -> None:
    root = sandbox.project
    write(root, {"keep.txt": "keep\n", "old.txt": "old\n"})
    serve(
        call("write_file", {"file_path": "made.txt", "content": "made\n"}),
        call("run_command", {"command": "rm old.txt; echo shell > shell.txt; echo changed > keep.txt"}),
        text("Done."),
    )
    session = prompt(sandbox, runtime)
    assert not (root / "old.txt").exists()
    assert f"{session}.1" in sandbox.here("undo", "--list").stdout
    (root / "mine.txt").write_text("mine\n")
    done = sandbox.here("undo")
    assert done.code == 0, done
    assert "+keep" in done.stdout
    assert "-changed" in done.stdout
    assert f"Undid step {session}.1" in done.stdout
    names = {path.name for path in root.iterdir() if path.is_file()}
    assert {"keep.txt", "old.txt", "mine.txt"} <= names
    assert not names & {"made.txt", "shell.txt"}
    assert (root / "keep.txt").read_text() == "keep\n"
    assert sandbox.here("undo").code == 2
    assert "undone" in sandbox.here("undo", "--list").stdout
    assert sandbox.here("undo", "--to", f"{session}.1").code == 0
    assert (root / "made.txt").read_text() == "made\n"
    (root / "keep.txt").write_text("mine\n")
    refused = sandbox.here("undo")
    assert refused.code != 0
    assert "keep.txt" in refused.stderr
    assert (root / "made.txt").exists()
