"""Sub-agents of one `opendev -p`: in parallel, in processes and worktrees of their own, results in order, all costs in one sum."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import Json, Outcome, Sandbox
from support.model_server import Call, ModelServer, Reply, Seen, call, calls, failing, text
from support.repos import fingerprint, git, make_repo, tree_files, worktrees

Serve = Callable[..., ModelServer]
LOCAL = "local"
RUNTIMES = (
    LOCAL,
    pytest.param("auto", marks=[pytest.mark.ray, pytest.mark.slow]),
    pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.soak]),
)


def spawn(agent: str, prompt: str) -> Call:
    return Call("spawn_subagent", {"agent": agent, "prompt": prompt})


class Three:
    """The main agent starts three at once; each acts once, and is answered again only when all three have asked."""

    def __init__(self) -> None:
        three = (
            spawn("Code-Explorer", "ask one"),
            spawn("Coder", "write it"),
            spawn("Code-Explorer", "ask two"),
        )
        self._plan = {
            "the main task": [calls(*three), text("All three are back.")],
            "ask one": [call("read_file", {"file_path": "a.py"}), text("A is one.")],
            "ask two": [call("search", {"pattern": "B = "}), text("B is one.")],
            "write it": [
                call("write_file", {"file_path": "new.py", "content": "N = 1\n"}),
                call("task_complete", {"status": "success", "summary": "new.py is there."}),
            ],
        }
        self._meeting = threading.Barrier(3)

    def __call__(self, seen: Seen) -> Reply:
        who = next(marker for marker in self._plan if seen.says(marker))
        turn = sum(row["role"] == "assistant" for row in seen.messages)
        if who != "the main task" and turn == 1:
            self._meeting.wait(30)
        return self._plan[who][turn]


def started(done: Outcome) -> dict[str, Json]:
    """The start of each agent, by what it was; explorers get a number."""
    found: dict[str, Json] = {}
    for event in done.events:
        if event["kind"] == "agent_started":
            found[event["name"] if event["name"] not in found else f"{event['name']} 2"] = event
    return found


@pytest.mark.req("ACT-02", "ACT-06", "ACT-07", "SUB-06")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_three_at_once_each_in_its_place_and_told_in_order(
    sandbox: Sandbox, serve: Serve, tmp_path: Path, runtime: str
) -> None:
    repo = sandbox.project = make_repo(tmp_path / "repo")
    before = fingerprint(repo)
    server = serve(Three())
    go = sandbox.here if runtime == LOCAL else sandbox.run
    options = ("--output", "stream-json", "--approve", "auto", "--runtime", runtime)
    done = go("-p", "Do the main task.", *options)
    agents, report = started(done), done.events[-1]
    assert (done.code, report["text"]) == (0, "All three are back.")
    assert set(agents) == {"Main", "Code-Explorer", "Code-Explorer 2", "Coder"}
    assert server.peak == 3
    _pids_fit(runtime, agents)
    # what each said, in the order of the calls
    results = [row["content"] for row in server.seen[-1].messages if row["role"] == "tool"]
    assert [
        said in result for said, result in zip(("A is one.", "new.py", "B is one."), results, strict=True)
    ] == [True] * 3
    # all that was billed, in one sum
    billed = server.billed()
    assert report["tokens"] == {"input": billed.input, "output": billed.output, "cached": 0}
    assert report["model_calls"] == len(server.seen) == 8
    assert report["cost_usd"] == pytest.approx(billed.input * 0.15e-6 + billed.output * 0.60e-6)
    # the writer worked elsewhere: its work is a branch, and the user's checkout is as it was
    (lease,) = [event["lease"] for event in done.events if event["kind"] == "lease_granted"]
    assert fingerprint(repo) == before
    assert worktrees(repo) == []
    assert tree_files(repo, lease["branch"])["new.py"] == "N = 1"
    assert lease["branch"] in results[1]
    assert git(repo, "rev-parse", f"{lease['branch']}~1") == git(repo, "rev-parse", "HEAD")


def _pids_fit(runtime: str, agents: dict[str, Json]) -> None:
    """Under Ray each has a process of its own, the main agent too (ACT-02); auto begins here and gives a writer one (readers wait
    half a second for Ray, no longer)."""
    pids = {name: event["pid"] for name, event in agents.items()}
    if runtime == "auto":
        assert pids["Coder"] not in {pid for name, pid in pids.items() if name != "Coder"}
    else:
        assert len(set(pids.values())) == (1 if runtime == LOCAL else 4)


def test_a_writer_without_a_repository_is_refused_in_words(sandbox: Sandbox, serve: Serve) -> None:
    server = serve(calls(spawn("Coder", "write it")), text("Failure accepted: it cannot be done here."))
    done = sandbox.here("-p", "Do it.", "--output", "json", "--approve", "auto", "--runtime", "local")
    assert server.seen[1].says("is no git repository")
    assert done.report["text"].startswith("Failure accepted")
    assert list(sandbox.project.iterdir()) == []


def test_a_failed_sub_agent_is_told_as_failed_and_paid_for(sandbox: Sandbox, serve: Serve) -> None:
    server = serve(
        sessions={
            "the main task": [
                calls(spawn("Code-Explorer", "ask one")),
                text("Failure accepted: I read it myself."),
            ],
            "ask one": [call("list_files", {}), failing(400, "no more")],
        }
    )
    done = sandbox.here("-p", "Do the main task.", "--output", "json", "--runtime", "local")
    assert server.seen[-1].says("no more")
    assert done.report["model_calls"] == len(server.seen) == 4
    assert done.report["tokens"]["input"] == server.billed().input


def test_the_budget_of_the_run_binds_its_sub_agents(sandbox: Sandbox, serve: Serve) -> None:
    server = serve(
        sessions={
            "the main task": [calls(spawn("Code-Explorer", "ask one")), text("never")],
            "ask one": [call("read_file", {"file_path": f"{n}.py"}) for n in range(50)],
        }
    )
    done = sandbox.here(
        "-p", "Do the main task.", "--output", "json", "--runtime", "local", "--max-cost", "0.005"
    )
    assert (done.code, done.report["status"]) == (5, "budget")
    assert done.report["model_calls"] == len(server.seen) < 15
    assert done.report["cost_usd"] < 0.005 * 1.2
