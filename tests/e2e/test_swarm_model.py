"""Tickets that a model works on, with a scripted server: what it is told, what it costs, and how its failures are called."""

import itertools
import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from support.command_line import marked
from support.model_server import Billed, ModelServer, Reply, Seen, call, failing, text
from support.repos import fingerprint, git, tree_files
from support.swarm_cli import Bench, make_bench, put, task, wait_for

pytestmark = pytest.mark.slow
MODELS = ("openai/gpt-4o-mini", pytest.param("anthropic/claude-sonnet-4-5", marks=pytest.mark.soak))


class Serve(Protocol):
    """Starts the server of a test."""

    def __call__(
        self, script: Callable[[Seen], Reply], *, model: str = "", latency_s: float = 0.0
    ) -> ModelServer: ...


VERDICTS = {
    "good": 'Fine.\n\n```verdict\n{"verdict": "approve", "findings": []}\n```',
    "bad": '```verdict\n{"verdict": "reject", "findings": [{"path": "bad.txt", "line": 1, "severity": "error", "text": "wrong word"}]}\n```',
    "mute": "Looks good to me!",
}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench(tmp_path)
    yield made
    made.close()


@pytest.fixture
def serve(bench: Bench) -> Iterator[Serve]:
    with ModelServer() as server:

        def start(script: Callable[[Seen], Reply], *, model: str = "", latency_s: float = 0.0) -> ModelServer:
            server.script, server.latency_s = script, latency_s
            bench.sandbox.server, bench.sandbox.model = server, model or MODELS[0]
            return server

        yield start


def ticket_of(seen: Seen) -> str:
    """The ticket a request is about."""
    found = re.search(r"[Gg]oal: Do (\w+)\.", json.dumps(seen.messages))
    assert found is not None, seen.messages
    return found[1]


def reviews(seen: Seen) -> bool:
    return seen.says("Review one change")


def worked(seen: Seen) -> bool:
    """Whether the model has had a tool's result."""
    return "tool_call_id" in json.dumps(seen.messages) or "tool_result" in json.dumps(seen.messages)


def writes(seen: Seen, path: str, content: str) -> Reply:
    """Write one file, then say so."""
    if worked(seen):
        return text(f"I wrote {path}.")
    return call("write_file", {"file_path": path, "content": content})


@pytest.mark.req("SWM-12", "SWM-15", "MOD-07")
@pytest.mark.parametrize("model", MODELS)
def test_coders_work_and_reviewers_gate(bench: Bench, serve: Serve, model: str) -> None:
    def answer(seen: Seen) -> Reply:
        name = ticket_of(seen)
        if reviews(seen):
            return text(VERDICTS[name])
        return text("All done.") if name == "lazy" else writes(seen, f"{name}.txt", f"{name}\n")

    server = serve(answer, model=model)
    names = ("good", "bad", "mute", "lazy")
    done = bench.run(
        *(task(name, scope=[f"{name}.txt"], verify=f"test -f {name}.txt", review=["PR-Reviewer"], attempts=1) for name in names if name != "lazy"),
        task("lazy", scope=["lazy.txt"], attempts=1),
    )  # fmt: skip
    assert done.statuses == {"good": "merged", "bad": "rejected", "mute": "rejected", "lazy": "agent_failed"}
    assert (done.code, done.run.status, bench.commits()) == (1, "partial", ["Do good."])
    rows = {row.id: row for row in done.run.tasks}
    assert [[item.verdict for item in rows[name].reviews] for name in names] == [
        ["approve"],
        ["reject"],
        ["reject"],
        [],
    ]
    assert "wrong word" in (rows["bad"].error or "")
    assert "verdict" in (rows["mute"].error or "")
    assert "changed nothing" in (rows["lazy"].error or "")
    billed = server.billed()
    assert (done.run.tokens.input, done.run.tokens.output) == (billed.input, billed.output)
    assert done.run.model_calls == len(server.seen)
    assert done.run.cost_usd > 0
    shown = json.loads(bench.opendev("sessions", "show", done.run.run_id, "--json").stdout)
    assert (shown["tokens"], shown["model_calls"]) == (done.run.tokens.model_dump(), done.run.model_calls)
    assert shown["cost_usd"] == pytest.approx(done.run.cost_usd)
    assert sum(agent["tokens"]["input"] for agent in shown["agents"]) == billed.input
    assert {seen.dialect for seen in server.seen} == {model.split("/")[0]}
    review = next(seen for seen in server.seen if reviews(seen) and ticket_of(seen) == "good")
    assert review.says("+good")
    tools = json.dumps(review.body["tools"])
    assert "write_file" not in tools
    assert "edit_file" not in tools
    assert not any(b"test-key" in path.read_bytes() for path in bench.home.rglob("*") if path.is_file())


@pytest.mark.req("SWM-07", "SWM-11")
def test_the_second_attempt_is_told_why_the_first_failed_and_best_of_takes_the_smaller(
    bench: Bench, serve: Serve
) -> None:
    sizes = itertools.count()

    def answer(seen: Seen) -> Reply:
        if ticket_of(seen) == "best":
            return writes(seen, "best.txt", "right\n" + "x" * (500 if next(sizes) == 0 else 0))
        again = "An earlier attempt" in json.dumps(seen.messages)
        return writes(seen, "again.txt", "right\n" if again else "wrong\n")

    server = serve(answer)
    done = bench.run(
        task(
            "again", scope=["again.txt"], verify="echo NEEDLE$((40+2)); grep -q right again.txt", attempts=2
        ),
        task("best", scope=["best.txt"], verify="grep -q right best.txt", best_of=2),
        task("child", scope=["child.txt"], recipe=[put("child.txt", "c\n")], depends_on=["again"]),
    )
    assert (done.code, done.statuses) == (0, dict.fromkeys(("again", "best", "child"), "merged"))
    rows = {row.id: row for row in done.run.tasks}
    assert (rows["again"].attempts, rows["best"].attempts) == (2, 1)
    first = [seen for seen in server.seen if ticket_of(seen) == "again"]
    assert not first[0].says("NEEDLE42")
    second = next(seen for seen in first if seen.says("An earlier attempt"))
    assert second.says("NEEDLE42")
    assert not any(message["role"] == "assistant" for message in second.messages)  # a fresh conversation
    files = tree_files(bench.repo, "swarm/x")
    assert (files["again.txt"], files["best.txt"]) == ("right", "right")
    assert any("best of 2" in note for note in done.run.notes)
    billed = server.billed()
    assert (done.run.tokens.input, done.run.tokens.output) == (billed.input, billed.output)


def endless(seen: Seen) -> Reply:
    return call("list_files", {"path": ".", "max_results": 1 + len(seen.messages)})


def cost(billed: Billed) -> float:
    """In US dollars at the price of gpt-4o-mini."""
    return (billed.input * 0.15 + billed.output * 0.6) / 1e6


@pytest.mark.req("MOD-07", "ACT-14")
def test_budgets_of_task_and_run_stop_before_the_next_call(bench: Bench, serve: Serve) -> None:
    bench.sandbox.env["OPENDEV_AGENTS__SUBAGENT_ITERATIONS"] = "200"
    server = serve(endless)
    capped = bench.run(task("one", max_cost_usd=0.003), task("two", put("two.txt", "2\n")))
    assert (capped.code, capped.statuses) == (5, {"one": "budget", "two": "merged"})
    dearest = max(cost(seen.billed) for seen in server.seen if seen.billed)
    assert 0.001 < capped.run.cost_usd < 0.003 + dearest
    assert capped.run.cost_usd == pytest.approx(cost(server.billed()))
    assert "budget" in (capped.run.tasks[0].error or "").lower()
    calls = len(server.seen)
    shared = bench.run(*(task(name) for name in ("a", "b", "c")), max_cost_usd=0.006, into="swarm/y")
    assert (shared.code, set(shared.statuses.values())) == (5, {"budget"})
    assert 0.002 < shared.run.cost_usd < 0.006 + dearest
    assert shared.run.model_calls == len(server.seen) - calls


@pytest.mark.req("MOD-05", "SWM-15")
@pytest.mark.parametrize(("status", "word"), [(429, "429"), (401, "key"), (500, "")])
@pytest.mark.soak
def test_a_server_that_always_fails_is_infrastructure_after_few_calls(
    bench: Bench, serve: Serve, status: int, word: str
) -> None:
    bench.sandbox.env["OPENDEV_RETRY__CAP_S"] = "0.05"  # how long a provider that is down is left alone
    server = serve(lambda _: failing(status, "slow down" if status == 429 else "no"))
    done = bench.run(
        *(task(name) for name in ("a", "b", "c")), task("child", put("c.txt", ""), depends_on=["a"])
    )
    assert (done.code, done.run.status) == (6, "failed")
    assert done.statuses == {"a": "infra", "b": "infra", "c": "infra", "child": "skipped"}
    assert len(server.seen) <= (3 if status == 401 else 3 * 2 * 12)
    assert word in (done.run.tasks[0].error or "").lower()
    assert (done.run.tokens.input, done.run.cost_usd) == (0, 0.0)


@pytest.mark.req("MOD-01")
def test_a_ticket_without_recipe_needs_a_model(bench: Bench) -> None:
    before = fingerprint(bench.repo)
    file = bench.tickets(task("one"), task("two", put("t.txt", "")))
    done = bench.opendev("swarm", str(file), "--runtime", "local", "--output", "json")
    assert (done.code, json.loads(done.stdout)["exit_code"]) == (2, 2)
    assert "OPENDEV_MODEL" in done.stderr
    assert "one" in done.stderr
    bench.assert_tidy(before)
    assert "swarm/x" not in git(bench.repo, "branch", "--list")


@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.req("ACT-08")
@pytest.mark.soak
def test_under_ray_the_model_service_may_die(bench: Bench, serve: Serve) -> None:
    before = fingerprint(bench.repo)
    server = serve(lambda seen: writes(seen, f"{ticket_of(seen)}.txt", "x\n"), latency_s=1.5)
    file = bench.tickets(*(task(name, scope=[f"{name}.txt"]) for name in ("one", "two")))
    process = bench.start("swarm", str(file), "--output", "json")
    wait_for(lambda: process.poll() is not None or len(server.seen) >= 2)
    os.kill(service_of(bench.sandbox.runs()[0], server), signal.SIGKILL)
    done = bench.wait(process)
    assert (done.code, done.statuses) == (0, {"one": "merged", "two": "merged"}), done.stderr
    assert sorted(bench.commits()) == ["Do one.", "Do two."]
    bench.assert_tidy(before)


def service_of(run: str, server: ModelServer) -> int:
    """The process of the run's model service: the one that talks to the server."""
    port = f"{int(server.url.rpartition(':')[2]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(f":{port}")}
    found = [pid for pid in marked(run) if sockets & set(map(link, Path(f"/proc/{pid}/fd").iterdir()))]
    assert len(found) == 1, found
    return found[0]


def link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""


@pytest.mark.soak
@pytest.mark.req("MOD-10")
@pytest.mark.parametrize("own", ["", "openai/own"])
def test_a_second_attempt_is_the_stronger_models_unless_the_ticket_names_its_own(
    bench: Bench, serve: Serve, own: str
) -> None:
    def script(seen: Seen) -> Reply:
        if seen.body["model"] == "strong":
            return writes(seen, "a.txt", "a\n")
        return text("Nothing to do.")

    server = serve(script)
    bench.sandbox.env |= {"OPENDEV_TIERS__OPUS": "openai/strong", "OPENDEV_AGENTS__ESCALATE_AFTER": "3"}
    done = bench.run(task("a", model=own, attempts=2))
    first, later = server.seen[0].body["model"], {str(seen.body["model"]) for seen in server.seen[1:]}
    assert (first, later) == (("own", {"own"}) if own else ("gpt-4o-mini", {"strong"}))
    assert (done.statuses, done.run.tasks[0].attempts) == ({"a": "agent_failed" if own else "merged"}, 2)
