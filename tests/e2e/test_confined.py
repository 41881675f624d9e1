"""The command line confines what agents and verification run, and says so when it cannot (SAF-08)."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from opendev.tools.shell import sandbox as shell_sandbox
from opendev.tools.shell.places import temporary
from opendev.tools.shell.sandbox import SandboxSettings, choose
from support.command_line import Sandbox
from support.model_server import ModelServer, call, text
from support.swarm_cli import FILES, make_bench, put, report_of, sh, task

CACHE = Path(__file__).resolve().parents[2] / ".cache"


@pytest.fixture
def outside() -> Iterator[Path]:
    """A place that is no temporary folder."""
    if (found := choose(SandboxSettings())).kind == "none":
        pytest.skip(found.why)
    temp = temporary({})
    bases = [base for base in (CACHE, Path.home()) if not any(base.resolve().is_relative_to(t) for t in temp)]
    if not bases:
        pytest.skip("the checkout and the home folder both lie in a temporary folder")
    bases[0].mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".opendev-test-", dir=bases[0]))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.req("SAF-08")
@pytest.mark.parametrize("runtime", ["local", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.soak])])
def test_a_batch_changes_nothing_outside_by_agents_set_up_or_verification(
    tmp_path: Path, outside: Path, runtime: str
) -> None:
    config = f"echo x >> {tmp_path}/repo/.git/config"
    if choose(SandboxSettings()).kind == "landlock":
        config = ""  # it opens temporary folders as a whole, and this repository lies in one
    escape = f"touch {outside}/$1\n{config}\ncat {outside}/keys/id\necho $1 >> steps\n"
    bench = make_bench(tmp_path, {**FILES, "escape.sh": escape, ".gitignore": "__pycache__/\nsteps\n"})
    (outside / "keys").mkdir()
    (outside / "keys/id").write_text("THE KEY")
    bench.sandbox.env["OPENDEV_SANDBOX__HIDE"] = json.dumps([f"{outside}/key*"])
    done = bench.run(
        task(
            "a",
            put("new.py", "n = 1\n"),
            sh("sh escape.sh agent"),
            verify="sh escape.sh verify && grep -q setup steps",
        ),
        runtime=runtime,
        setup="sh escape.sh setup",
        verify="sh escape.sh composed",
    )
    assert done.statuses == {"a": "merged"}, done
    assert [path.name for path in outside.iterdir()] == ["keys"]
    assert done.run.sandbox in ("bubblewrap", "landlock")
    assert "THE KEY" not in "".join(path.read_text() for path in bench.home.glob("runs/*/verify/*.log"))


@pytest.mark.slow
def test_a_batch_without_a_sandbox_says_so_in_its_report(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, {"README": "x\n"})
    bench.sandbox.env["OPENDEV_SANDBOX__MODE"] = "off"
    file = bench.tickets(task("a", put("new.py", "n = 1\n")))
    done = bench.sandbox.here("swarm", "run", str(file), "--runtime", "local", "--output", "json")
    report = report_of(json.loads(done.stdout))
    assert (report.sandbox, done.code) == ("none", 0)
    assert "without a sandbox" in " ".join(report.notes)
    assert "without a sandbox" in done.stderr


@pytest.mark.usefixtures("openai_loaded")
def test_a_prompt_s_commands_are_confined_and_without_a_sandbox_it_says_so(
    sandbox: Sandbox, serve: Callable[..., ModelServer], outside: Path
) -> None:
    (sandbox.project / "escape.sh").write_text(f"touch {outside}/x; echo y > made\n")
    turns = (call("run_command", {"command": "sh escape.sh"}), text("Done."))
    sandbox.server = serve(*turns)
    done = sandbox.here("-p", "Try.", "--output", "json", "--approve", "auto")
    assert (list(outside.iterdir()), (sandbox.project / "made").read_text()) == ([], "y\n"), done
    assert "notes" not in json.loads(done.stdout)
    sandbox.server, sandbox.env["OPENDEV_SANDBOX__MODE"] = serve(*turns), "off"
    done = sandbox.here("-p", "Try.", "--output", "json", "--approve", "auto")
    assert [path.name for path in outside.iterdir()] == ["x"]
    assert "without a sandbox" in json.loads(done.stdout)["notes"][0]
    assert "without a sandbox" in done.stderr


@pytest.mark.usefixtures("openai_loaded")
def test_a_sandbox_that_is_missing_stops_everything_and_the_doctor_names_the_remedy(
    sandbox: Sandbox, serve: Callable[..., ModelServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.server = serve(text("Done."))
    sandbox.env["OPENDEV_SANDBOX__MODE"] = "bubblewrap"
    monkeypatch.setattr(shell_sandbox, "bubblewrap_fault", "bubblewrap is not installed, {}".format)
    done = sandbox.here("-p", "Try.", "--output", "json")
    assert (done.code, json.loads(done.stdout)["error"]["kind"]) == (2, "config")
    assert sandbox.server.seen == []
    seen = sandbox.here("doctor").stdout
    assert "MISSING  sandbox" in seen
    assert "Install bubblewrap" in seen
